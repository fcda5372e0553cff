// The columns of a table of things: what the server says of each, and what can be done with it.

import { may } from "../../api/session";
import type { Fact, Feature, ThingRow } from "../../api/types";
import { Ago } from "../../ui/Ago";
import { Copy } from "../../ui/Copy";
import { StateTag } from "../../ui/StateTag";
import type { Column } from "../../ui/Table";
import { QueueLink, TaskLink } from "../../ui/TaskLink";
import { Text } from "../../ui/Text";
import { shortId } from "../../text/ids";
import { arranged, Facts, listed } from "./lists";

/** The state of a thing, which may say who has paused it, what blocks it, or why it is overdue. */
function ThingState({ state }: { state: string }) {
  const word = ["paused", "overdue", "blocked"].find((one) => state.startsWith(`${one} `)) ?? state;
  const isWord = /^[a-z]+$/.test(word);
  const rest = isWord ? state.slice(word.length).trim() : state;
  return (
    <span class="thing-state">
      {isWord && <StateTag state={word} />}
      {rest !== "" && <Text value={rest} max={240} class={isWord ? "dim" : ""} />}
    </span>
  );
}

/** An id that no page of its own has. */
function Id({ id }: { id: string }) {
  return (
    <span class="id-cell">
      <Text value={shortId(id)} class="mono" />
      <Copy text={id} label="Copy the id" />
    </span>
  );
}

/** How many tasks are named. */
const TASKS = 3;

function Value({ fact }: { fact: Fact | undefined }) {
  const value = fact?.value;
  if (value === undefined) return <Text value={value} />;
  if (fact?.kind === "instant" && !Number.isNaN(Date.parse(value)))
    return <Ago at={Date.parse(value)} />;
  if (fact?.kind !== "tasks") return <Text value={value} max={120} />;
  const ids = value.split(" ");
  return (
    <>
      {ids.slice(0, TASKS).map((id) => (
        <span key={id} class="id-cell">
          <TaskLink id={id} />
          <Copy text={id} label="Copy the id" />
        </span>
      ))}
      {ids.length > TASKS && <span class="dim"> and {ids.length - TASKS} more</span>}
    </>
  );
}

export type Ask = (act: string, row: ThingRow) => void;

/** `run_now` as `Run now`, for acts and columns. */
export function verb(act: string): string {
  const text = act.replaceAll("_", " ").slice(0, 40);
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function columns(kind: Feature, rows: ThingRow[], ask: Ask): Column<ThingRow>[] {
  const { single, lists } = arranged(rows);
  const hasQueue = rows.some((row) => row.queue);
  const hasActs = rows.some((row) => row.acts.length > 0) && may("operate");
  const of = (row: ThingRow, name: string) => row.facts.find((fact) => fact.name === name);
  return [
    kind === "groups"
      ? { name: "title", head: "Id", cell: (row) => <Id id={row.title} /> }
      : { name: "title", head: "Name", cell: (row) => <Text value={row.title} max={160} /> },
    ...(hasQueue
      ? [
          {
            name: "queue",
            head: "Queue",
            cell: (row: ThingRow) => (row.queue ? <QueueLink queue={row.queue} /> : "–"),
          },
        ]
      : []),
    { name: "state", head: "State", bare: true, cell: (row) => <ThingState state={row.state} /> },
    ...single.map((name) => ({
      name: `fact ${name}`,
      head: verb(name),
      isEmpty: (row: ThingRow) => of(row, name) === undefined,
      cell: (row: ThingRow) => <Value fact={of(row, name)} />,
    })),
    ...lists.map((list) => ({
      name: `list ${list.head}`,
      head: verb(list.head),
      isEmpty: (row: ThingRow) => listed(row, list).length === 0,
      cell: (row: ThingRow) => (
        <Facts of={list} facts={listed(row, list)} cell={(fact) => <Value fact={fact} />} />
      ),
    })),
    ...(hasActs
      ? [
          {
            name: "acts",
            head: "",
            kind: "acts" as const,
            bare: true,
            cell: (row: ThingRow) => <Acts row={row} ask={ask} />,
          },
        ]
      : []),
  ];
}

function Acts({ row, ask }: { row: ThingRow; ask: Ask }) {
  return (
    <span class="row-acts">
      {row.acts.slice(0, 4).map((act) => (
        <button key={act} type="button" class="btn is-small" onClick={() => ask(act, row)}>
          {verb(act)}
        </button>
      ))}
    </span>
  );
}
