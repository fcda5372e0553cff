// The answer to "why isn't it running?".

import { Icon } from "../../ui/Icon";
import { Text } from "../../ui/Text";

export function Explain({ lines }: { lines: string[] | null }) {
  if (!lines || lines.length === 0) return null;
  return (
    <section class="why" aria-label="Why it is where it is">
      <h2>
        <Icon name="info" /> Why it is where it is
      </h2>
      <ul>
        {lines.map((line) => (
          <li key={line}>
            <Text value={line} max={500} />
          </li>
        ))}
      </ul>
    </section>
  );
}
