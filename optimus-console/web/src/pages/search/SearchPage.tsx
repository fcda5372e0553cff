// Finds a task by its id or business id, a queue, a failure or a worker; offers to scan queues for
// any other text.

import { useEffect } from "preact/hooks";
import type { Hits } from "../../api/types";
import { inner } from "../../state/hash";
import { refine, replace, route } from "../../state/route";
import { count } from "../../text/format";
import { Empty, Problem, Waiting } from "../../ui/Await";
import { Panel } from "../../ui/Panel";
import { type Column, Table } from "../../ui/Table";
import { Text } from "../../ui/Text";
import { exact } from "./exact";
import { useSearch } from "./useSearch";

type Hit = Hits["hits"][number];

function Link({ hit }: { hit: Hit }) {
  const text = <Text value={hit.id} class="mono" />;
  const href = inner(hit.href);
  return href === undefined ? text : <a href={href}>{text}</a>;
}

const COLUMNS: Column<Hit>[] = [
  { name: "kind", head: "Kind", cell: (hit) => hit.kind.replace("_", " ") },
  { name: "id", head: "Name", cell: (hit) => <Link hit={hit} /> },
  { name: "text", head: "What it is", grow: true, cell: (hit) => <Text value={hit.text} /> },
];

function Scan({ hits }: { hits: Hits }) {
  const queues = hits.scan.filter((one) => inner(one.href) !== undefined);
  if (queues.length === 0) return null;
  return (
    <Panel title="Scan the tasks of a queue for this text">
      <ul class="chips is-padded">
        {queues.map((one) => (
          <li key={one.queue}>
            <a class="chip" href={inner(one.href)}>
              <Text value={one.queue} max={80} />
            </a>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** How many queues are named. */
const NAMED = 10;

/** Tasks of these queues may be missing. */
function Unread({ queues }: { queues: string[] }) {
  if (queues.length === 0) return null;
  const more = queues.length - NAMED;
  const said =
    queues.length === 1 ? "A queue can't be read, so its" : "Queues can't be read, so their";
  return (
    <div class="banner is-warning" role="status">
      <p>
        {said} tasks may be missing:{" "}
        {queues.slice(0, NAMED).map((queue, index) => (
          <span key={queue}>
            {index > 0 && ", "}
            <Text value={queue} max={80} />
          </span>
        ))}
        {more > 0 && ` and ${more} more`}
      </p>
    </div>
  );
}

/** What the results leave out. */
function LeftOut({ hits }: { hits: Hits }) {
  const parts = hits.more.map((kind) => `More than these match as ${kind.replace("_", " ")}.`);
  if (hits.causes_left_out > 0) {
    const queues = count(hits.causes_left_out, "further queue");
    parts.push(`The failures in ${queues} were not looked through.`);
  }
  if (hits.biz_ids_left_out > 0) {
    const queues = count(hits.biz_ids_left_out, "queue");
    parts.push(`Business ids were not looked up in ${queues}: no worker tells their tasks.`);
  }
  return parts.length === 0 ? null : (
    <p class="more num" role="status">
      {parts.join(" ")}
    </p>
  );
}

export function SearchPage() {
  const typed = route.value.query["q"] ?? "";
  const { hits, error } = useSearch(typed.trim());
  const task = exact(hits, typed.trim());
  useEffect(() => {
    const href = task === undefined ? undefined : inner(task);
    if (href !== undefined) replace(href);
  }, [task]);
  return (
    <>
      <div class="page-head">
        <h1>Search</h1>
      </div>
      <form class="search-form" role="search" onSubmit={(event) => event.preventDefault()}>
        <label class="hidden" for="search">
          Search
        </label>
        <input
          id="search"
          type="search"
          placeholder="Id, business id, queue, error, host"
          autocomplete="off"
          spellcheck={false}
          value={typed}
          onInput={(event) => refine({ q: event.currentTarget.value })}
        />
      </form>
      {error !== undefined && <Problem error={error} />}
      {typed === "" && (
        <Empty>
          Search finds ids and business ids of tasks, names of queues, failures by their text or
          fingerprint, and workers by their host.
        </Empty>
      )}
      {typed !== "" && hits === undefined && error === undefined && <Waiting />}
      {hits !== undefined && typed !== "" && (
        <>
          <Unread queues={hits.unread} />
          {hits.hits.length === 0 ? (
            <Empty>Nothing has this name.</Empty>
          ) : (
            <div class="panel">
              <Table
                label="Results"
                columns={COLUMNS}
                rows={hits.hits}
                id={(hit) => `${hit.kind} ${hit.id}`}
              />
            </div>
          )}
          <LeftOut hits={hits} />
          <Scan hits={hits} />
        </>
      )}
    </>
  );
}
