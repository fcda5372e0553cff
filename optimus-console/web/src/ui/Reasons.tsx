// The lines of an explanation. The server numbers those that stand in an order.

import { Text } from "./Text";

const NUMBERED = /^\d+\. /;

export function Reasons({ lines, class: name }: { lines: string[]; class?: string }) {
  return (
    <ul class={name} aria-label="Why">
      {lines.map((line, index) => (
        <li key={`${index} ${line}`} class={NUMBERED.test(line) ? "is-numbered" : undefined}>
          <Text value={line} max={500} />
        </li>
      ))}
    </ul>
  );
}
