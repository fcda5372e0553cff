// Why the queue is as it is, and which processes serve it.

import type { QueueDetail } from "../../api/types";
import { write } from "../../state/hash";
import { Reasons } from "../../ui/Reasons";
import { Text } from "../../ui/Text";

const MOST = 24;

export function About({ detail }: { detail: QueueDetail }) {
  const { explain, workers } = detail;
  return (
    <div class="about">
      {explain.length > 0 && <Reasons lines={explain} class="explain" />}
      <p class="served">
        <span class="dim">Served by</span>{" "}
        {workers.length === 0 && <span class="is-bad">no process</span>}
        {workers.slice(0, MOST).map((worker) => (
          <a
            key={worker.id}
            class="chip"
            href={write(["workers"], { process: worker.id })}
            title={`${worker.running} running`}
          >
            <Text value={`${worker.host}:${worker.pid}`} max={60} />
            <b class="num">{worker.running}</b>
          </a>
        ))}
        {workers.length > MOST && <a href="#/workers">and {workers.length - MOST} more</a>}
      </p>
    </div>
  );
}
