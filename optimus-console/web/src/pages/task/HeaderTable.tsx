// The headers of a task.

import { Panel } from "../../ui/Panel";
import { Text } from "../../ui/Text";
import { Facts } from "../../ui/Facts";
import { plain } from "../../text/marks";

export function HeaderTable({ headers }: { headers: Record<string, string> }) {
  const all = Object.entries(headers);
  if (all.length === 0) return null;
  return (
    <Panel title="Headers" class="is-facts">
      <Facts of={all.map(([name, value]) => [plain(name), <Text value={value} class="mono" />])} />
    </Panel>
  );
}
