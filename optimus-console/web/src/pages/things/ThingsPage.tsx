// A page of things that the server describes: lanes, limits, schedules, groups, shards, sources or
// dispensers.

import { useState } from "preact/hooks";
import { SetLimit } from "../../acts/SetLimit";
import { post, query } from "../../api/client";
import { usePages } from "../../api/pages";
import { may } from "../../api/session";
import type { Feature, ThingRow } from "../../api/types";
import { FEATURES } from "../../shell/places";
import { refine, route } from "../../state/route";
import { Confirm } from "../../ui/Confirm";
import { Empty, Problem, Waiting } from "../../ui/Await";
import { More } from "../../ui/More";
import { Table } from "../../ui/Table";
import { Text } from "../../ui/Text";
import { columns, verb } from "./columns";

const ABOUT: Record<Feature, string> = {
  lanes: "The tasks of a lane run in their order, as many at a time as it is wide.",
  limits: "How many tasks may run, or start, at a time.",
  schedules: "What submits tasks at times.",
  groups: "Tasks that were submitted together, and are awaited as one.",
  shards: "Functions whose work is divided among workers: each shard has one.",
  sources: "Tables whose rows become tasks.",
  dispensers: "Pools of items that people or programs take, and give back or finish.",
};

/** What to do to see something here. */
const EMPTY: Record<Feature, string> = {
  lanes: 'No task waits in a lane. A task joins a lane by its key, such as lane = "user-{user}".',
  limits:
    "No limit is set, declared or in use. Set one here, in the code of a task, or with optimus limit.",
  schedules: "No schedule. Add one in code, or with optimus schedule put.",
  groups: "No group of tasks is kept. A group is kept for a while after its last task has ended.",
  shards: "No sharded function. One is listed once a worker serves it.",
  sources: "No source. One is listed once a worker serves it.",
  dispensers: "No dispenser has items, or was used within a day. Add items to one to see it.",
};

/** What a pause means. */
const PAUSE: Partial<Record<Feature, string>> = {
  lanes: "Workers start no further task of this lane. Tasks that run go on.",
  limits: "Workers start no further task with this limit. Tasks that run go on.",
  schedules: "It submits no task until it is resumed. Instants that pass meanwhile are left out.",
  shards: "No worker works on its shards until it is resumed. Rounds that run end first.",
  sources: "No worker reads it until it is resumed. Tasks that it has submitted go on.",
};

/** What it means to remove something. */
const REMOVE: Partial<Record<Feature, { noun: string; means: string }>> = {
  limits: {
    noun: "limit",
    means: "What the code of the tasks declares applies again. Tasks that wait for it may start.",
  },
  schedules: {
    noun: "schedule",
    means:
      "It submits no more tasks, and its history is removed. This can't be undone. If the code of a worker has it, it returns when such a worker starts: pause it instead.",
  },
};

export function ThingsPage({ kind }: { kind: Feature }) {
  const queue = route.value.query["queue"];
  const pages = usePages<ThingRow>(`${kind}${query({ queue })}`);
  const [asked, setAsked] = useState<{ act: string; row?: ThingRow }>();
  const name = FEATURES.find((place) => place.page === kind)?.text ?? kind;
  const { rows } = pages;
  return (
    <>
      <div class="page-head">
        <h1>{name}</h1>
        <p class="dim">{ABOUT[kind]}</p>
        {kind === "limits" && may("operate") && (
          <div class="acts">
            <button type="button" class="btn" onClick={() => setAsked({ act: "set" })}>
              Set a limit
            </button>
          </div>
        )}
      </div>
      {queue !== undefined && (
        <p class="page-filter">
          <span class="chip">
            queue <Text value={queue} max={60} />
          </span>
          <button type="button" class="link" onClick={() => refine({ queue: undefined })}>
            Show all
          </button>
        </p>
      )}
      {pages.error !== undefined && <Problem error={pages.error} again={pages.refresh} />}
      {rows === undefined && pages.error === undefined && <Waiting />}
      {rows?.length === 0 && (
        <Empty>
          {pages.more ? "None in these queues. The next queues may have some." : EMPTY[kind]}
        </Empty>
      )}
      {rows !== undefined && (rows.length > 0 || pages.more) && (
        <div class="panel">
          {rows.length > 0 && (
            <Table
              cards
              label={name}
              columns={columns(kind, rows, (act, row) => setAsked({ act, row }))}
              rows={rows}
              id={(row) => `${row.queue ?? ""} ${row.name}`}
            />
          )}
          <More of={pages} noun={kind === "shards" ? "functions" : kind} />
        </div>
      )}
      {asked?.act === "set" && (
        <SetLimit
          row={asked.row}
          queue={queue}
          close={() => setAsked(undefined)}
          done={() => void pages.refresh()}
        />
      )}
      {asked?.row !== undefined && asked.act !== "set" && (
        <AskAct
          kind={kind}
          act={asked.act}
          row={asked.row}
          close={() => setAsked(undefined)}
          done={() => void pages.refresh()}
        />
      )}
    </>
  );
}

interface AskProps {
  kind: Feature;
  act: string;
  row: ThingRow;
  close: () => void;
  done: () => void;
}

function AskAct({ kind, act, row, close, done }: AskProps) {
  const remove = act === "remove" ? REMOVE[kind] : undefined;
  return (
    <Confirm
      title={remove ? `Remove this ${remove.noun}?` : `${verb(act)}?`}
      act={remove ? `Remove the ${remove.noun}` : verb(act)}
      danger={remove !== undefined}
      reasonHint={act === "pause" ? "Shown to everybody, such as a ticket" : undefined}
      close={close}
      run={async (reason) => {
        const body = { queue: row.queue ?? null, name: row.name, act, reason };
        const answer = await post<{ text?: string } | undefined>(`things/${kind}/act`, body);
        done();
        return answer?.text ?? "Done.";
      }}
    >
      <p>
        <Text value={row.title} max={200} />
        {row.queue && (
          <>
            , queue <Text value={row.queue} max={80} />
          </>
        )}
      </p>
      {act === "pause" && PAUSE[kind] && <p>{PAUSE[kind]}</p>}
      {remove && <p>{remove.means}</p>}
    </Confirm>
  );
}
