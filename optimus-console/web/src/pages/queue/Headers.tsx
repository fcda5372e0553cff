// The headers of a task as small marks.

import { Text } from "../../ui/Text";

const MOST = 3;

export function Headers({ of }: { of: Record<string, string> }) {
  const all = Object.entries(of);
  if (all.length === 0) return <span class="dim">–</span>;
  return (
    <span class="headers">
      {all.slice(0, MOST).map(([name, value]) => (
        <span key={name} class="chip">
          <Text value={name} max={24} />=<Text value={value} max={32} />
        </span>
      ))}
      {all.length > MOST && <span class="dim">+{all.length - MOST}</span>}
    </span>
  );
}
