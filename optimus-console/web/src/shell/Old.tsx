// Says plainly that what is shown may no longer be true.

import { liveness } from "../api/events";
import { Icon } from "../ui/Icon";

export function Old() {
  const { kind, text } = liveness.value;
  if (kind !== "old" && kind !== "lost") return null;
  return (
    <div class="banner is-warning" role="status">
      <Icon name="warn" />
      <p>{text}. What you see may be old.</p>
    </div>
  );
}
