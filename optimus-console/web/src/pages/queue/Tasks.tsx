// The tasks of a queue in one state, with filters, and acts on those that are selected or match.

import { useMemo, useState } from "preact/hooks";
import { path, query } from "../../api/client";
import { usePages } from "../../api/pages";
import { may } from "../../api/session";
import type { Counts, Filter, State, TaskRow } from "../../api/types";
import { ACTS, actsOn, allWords, type TaskAct } from "../../acts/names";
import { Bulk } from "../../acts/Bulk";
import { TaskActs } from "../../acts/TaskActs";
import { refine, route } from "../../state/route";
import { Empty, Problem, Waiting } from "../../ui/Await";
import { More } from "../../ui/More";
import { type Selected, useSelection } from "../../ui/selection";
import { stateName } from "../../ui/StateTag";
import { Table } from "../../ui/Table";
import { Tabs } from "../../ui/Tabs";
import { Text } from "../../ui/Text";
import { count, short } from "../../text/format";
import { columns } from "./columns";
import { Filters } from "./Filters";
import { filterOf, isNarrow, mistake, opening, STATES, stateOf } from "./filter";

interface Props {
  queue: string;
  counts: Counts;
}

/** What succeeded is counted, but few queues keep the tasks. So that tab has no number. */
function counted(state: State, counts: Counts): string | undefined {
  return state === "success" ? undefined : short(counts[state]);
}

const KEPT = "None is kept. The history has what succeeded, if the queue keeps one.";

/** What an operation says if the list was filtered by a text. */
const LESS = "The list finds a text in more places, so it may show tasks that are not among these.";

function absent(state: State, isNarrow: boolean): string {
  if (isNarrow) return `No ${state} task matches.`;
  return state === "success" ? KEPT : `No ${state} task.`;
}

export function Tasks({ queue, counts }: Props) {
  const { query: asked } = route.value;
  // The counts change while somebody reads, and the state stays.
  const [first] = useState(() => opening(counts));
  const state = stateOf(asked["state"], first);
  const filter = filterOf(queue, state, asked);
  const call = `${path("queues", queue, "tasks")}${query({
    state,
    task: filter.task,
    fingerprint: filter.fingerprint,
    header: filter.header,
    older_ms: filter.older_ms,
    text: filter.text,
    limit: 50,
  })}`;
  const isWrong = mistake(asked) !== undefined;
  const pages = usePages<TaskRow>(isWrong ? undefined : call);
  const selected = useSelection(call);
  const shown = useMemo(() => columns(state), [state]);
  const acts = actsOn(state);
  return (
    <section class="panel tasks" aria-label="Tasks">
      <Tabs
        label="State"
        of={STATES.map((value) => ({
          value,
          text: stateName(value),
          count: counted(value, counts),
        }))}
        value={state}
        choose={(value) => refine({ state: value })}
      />
      {filter.fingerprint && (
        <p class="page-filter is-inner">
          <span class="chip">
            failure <Text value={filter.fingerprint} max={40} class="mono" />
          </span>
          <button type="button" class="link" onClick={() => refine({ fingerprint: undefined })}>
            Show all
          </button>
        </p>
      )}
      <div class="tools">
        <Filters key={state} asked={asked} />
        {!isWrong && (
          <MatchActs acts={acts} filter={filter} isNarrow={isNarrow(filter)} done={pages.refresh} />
        )}
      </div>
      {pages.error !== undefined && <Problem error={pages.error} again={pages.refresh} />}
      {isWrong && <Empty>Correct the filter to see the tasks that match.</Empty>}
      {!isWrong && pages.rows === undefined && pages.error === undefined && <Waiting />}
      {pages.rows !== undefined && pages.rows.length > 0 && (
        <Table
          cards
          label={`${stateName(state)} tasks`}
          columns={shown}
          rows={pages.rows}
          id={(row) => row.id}
          {...(acts.length > 0 && may("operate") ? { selection: selected } : {})}
        />
      )}
      {pages.rows?.length === 0 && (
        <Empty>{pages.more ? "None so far." : absent(state, isNarrow(filter))}</Empty>
      )}
      <More of={pages} noun="tasks" />
      <SelectionActs acts={acts} selected={selected} done={pages.refresh} />
    </section>
  );
}

interface SelectionProps {
  acts: TaskAct[];
  selected: Selected;
  done: () => Promise<void>;
}

/** The acts on those that are selected. */
function SelectionActs({ acts, selected, done }: SelectionProps) {
  const { ids, clear } = selected;
  if (ids.length === 0) return null;
  return (
    <div class="selected" role="region" aria-label="Selection">
      <b class="num">{count(ids.length, "task")} selected</b>
      <TaskActs
        ids={ids}
        acts={acts}
        done={() => {
          clear();
          void done();
        }}
      />
      <button type="button" class="btn is-plain" onClick={clear}>
        Clear
      </button>
    </div>
  );
}

interface MatchProps {
  acts: TaskAct[];
  filter: Filter;
  isNarrow: boolean;
  done: () => Promise<void>;
}

/** The acts on all that match, by an operation. */
function MatchActs({ acts, filter, isNarrow, done }: MatchProps) {
  const [act, setAct] = useState<TaskAct>();
  const allowed = acts.filter((one) => may(ACTS[one].needs));
  return (
    <div class="acts">
      {allowed.map((one) => (
        <button key={one} type="button" class="btn" onClick={() => setAct(one)}>
          {allWords(one, isNarrow)}…
        </button>
      ))}
      {act && (
        <Bulk
          act={act}
          filter={filter}
          note={filter.text ? LESS : undefined}
          close={() => {
            setAct(undefined);
            void done();
          }}
        />
      )}
    </div>
  );
}
