// The operations that run now.

import type { Operation } from "../../api/types";
import { operations } from "../../api/events";
import { Progress } from "../../acts/Progress";
import { ACTS, actOf, filterWords } from "../../acts/names";
import { Panel } from "../../ui/Panel";
import { Text } from "../../ui/Text";

/** Takes the newer form of each operation: the stream's or the overview's. */
export function newest(rows: Operation[], streamed: Record<string, Operation>): Operation[] {
  return rows.map((row) => {
    const other = streamed[row.id];
    return other && other.updated_ms > row.updated_ms ? other : row;
  });
}

export function RunningOperations({ rows }: { rows: Operation[] }) {
  if (rows.length === 0) return null;
  return (
    <Panel title="Operations" aside={<a href="#/operations">All operations</a>}>
      <ul class="stack">
        {newest(rows, operations.value).map((row) => (
          <li key={row.id}>
            <p>
              <b>{ACTS[actOf(row.act)].verb}</b> tasks of <Text value={filterWords(row.filter)} />
            </p>
            <Progress operation={row} />
          </li>
        ))}
      </ul>
    </Panel>
  );
}
