// Says plainly that what is shown may no longer be true.

import { liveness, overview } from "../api/events";
import { Icon } from "../ui/Icon";

export function Old() {
  const { kind, text } = liveness.value;
  const isDown = overview.value?.redis.up === false;
  if (kind !== "old" && kind !== "lost" && !isDown) return null;
  return (
    <div class="banner is-warning" role="status">
      <Icon name="warn" />
      <p>
        {isDown ? "The console can't reach Redis. " : ""}
        {kind === "live" || kind === "held" ? "" : `${text}. `}
        What you see may be old.
      </p>
    </div>
  );
}
