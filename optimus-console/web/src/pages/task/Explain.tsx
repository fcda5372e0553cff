// The answer to "why isn't it running?", and what to do before a retry.

import type { State } from "../../api/types";
import { Icon } from "../../ui/Icon";
import { Reasons } from "../../ui/Reasons";

export function Explain({ lines, state }: { lines: string[] | null; state: State }) {
  if (!lines || lines.length === 0) return null;
  const hasFailed = state === "dead" || state === "cancelled";
  const title = hasFailed ? "Before you retry it" : "Why it is where it is";
  return (
    <section class="why" aria-label={title}>
      <h2>
        <Icon name="info" /> {title}
      </h2>
      <Reasons lines={lines} />
    </section>
  );
}
