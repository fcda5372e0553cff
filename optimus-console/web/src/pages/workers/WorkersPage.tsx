// The processes of workers: which machine, since when, how busy, and what each runs.

import { useState } from "preact/hooks";
import { type Pages, usePages } from "../../api/pages";
import type { ProcessRow } from "../../api/types";
import { refine, route } from "../../state/route";
import { Empty, Problem, Waiting } from "../../ui/Await";
import { More } from "../../ui/More";
import { Text } from "../../ui/Text";
import { Process } from "./Process";

const OPEN_AT_FIRST = 3;

/** Why no process is shown. Tasks wait for a worker only if no process runs at all. */
function absent({ more, total }: Pages<ProcessRow>, isFiltered: boolean): string {
  if (isFiltered) {
    return more
      ? "This process is not among those that were looked at. Show more to go on."
      : "This process does not run. It has ended, or has not begun yet.";
  }
  if (more) return "None of the first processes serves your queues. Show more to go on.";
  return (total ?? 0) > 0
    ? "No process serves your queues. Ready tasks wait."
    : "No process runs a worker. Ready tasks wait.";
}

export function WorkersPage() {
  const only = route.value.query["process"];
  const pages = usePages<ProcessRow>("processes?limit=100");
  const [toggled, setToggled] = useState<Record<string, boolean>>({});
  const rows = pages.rows?.filter((row) => only === undefined || row.id === only);
  return (
    <>
      <div class="page-head">
        <h1>Workers</h1>
        <p class="dim">What runs on which machine.</p>
      </div>
      {only !== undefined && (
        <p class="page-filter">
          <span class="chip">
            process <Text value={only} max={60} class="mono" />
          </span>
          <button type="button" class="link" onClick={() => refine({ process: undefined })}>
            Show all
          </button>
        </p>
      )}
      {pages.error !== undefined && <Problem error={pages.error} again={pages.refresh} />}
      {rows === undefined && pages.error === undefined && <Waiting />}
      {rows?.length === 0 && <Empty>{absent(pages, only !== undefined)}</Empty>}
      <div class="stack">
        {rows?.map((row, index) => {
          const isOpen = toggled[row.id] ?? (index < OPEN_AT_FIRST || row.id === only);
          return (
            <Process
              key={row.id}
              row={row}
              isOpen={isOpen}
              toggle={() => setToggled({ ...toggled, [row.id]: !isOpen })}
              done={() => void pages.refresh()}
            />
          );
        })}
      </div>
      {rows !== undefined && (rows.length > 0 || pages.more) && (
        <More of={pages} noun="processes" />
      )}
    </>
  );
}
