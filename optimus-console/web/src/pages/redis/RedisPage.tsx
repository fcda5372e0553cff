// Redis: whether it is set up so that no task is lost, and its facts.

import { useResource } from "../../api/resource";
import type { RedisPage as Answer } from "../../api/types";
import { Await } from "../../ui/Await";
import { Facts } from "../../ui/Facts";
import { Icon, type IconName } from "../../ui/Icon";
import { Panel } from "../../ui/Panel";
import { Text } from "../../ui/Text";
import { plain } from "../../text/marks";

const ICONS: Record<Answer["checks"][number]["level"], IconName> = {
  ok: "check",
  note: "info",
  warning: "warn",
  problem: "close",
};
const ORDER = ["problem", "warning", "note", "ok"];

const EVERY_MS = 10_000;

function Checks({ checks }: { checks: Answer["checks"] }) {
  const sorted = [...checks].sort((a, b) => ORDER.indexOf(a.level) - ORDER.indexOf(b.level));
  return (
    <ul class="checks">
      {sorted.map((check) => (
        <li key={check.text} class={`check-${check.level}`}>
          <Icon name={ICONS[check.level] ?? "info"} />
          <span class="check-level">{check.level}</span>
          <Text value={check.text} max={600} />
        </li>
      ))}
    </ul>
  );
}

export function RedisPage() {
  const answer = useResource<Answer>("redis", EVERY_MS);
  return (
    <>
      <div class="page-head">
        <h1>Redis</h1>
      </div>
      <Await of={answer}>
        {(data) => (
          <div class="columns">
            <Panel title="Checks">
              <Checks checks={data.checks} />
            </Panel>
            <Panel title="Facts" class="is-facts">
              <Facts
                of={data.facts.map((fact) => [plain(fact.name), <Text value={fact.value} />])}
              />
            </Panel>
          </div>
        )}
      </Await>
    </>
  );
}
