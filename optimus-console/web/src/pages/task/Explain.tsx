// The answer to "why isn't it running?".

import { Icon } from "../../ui/Icon";
import { Reasons } from "../../ui/Reasons";

export function Explain({ lines }: { lines: string[] | null }) {
  if (!lines || lines.length === 0) return null;
  return (
    <section class="why" aria-label="Why it is where it is">
      <h2>
        <Icon name="info" /> Why it is where it is
      </h2>
      <Reasons lines={lines} />
    </section>
  );
}
