// All queues, in pages. The server sorts, because no page has them all.

import { usePages } from "../../api/pages";
import { query } from "../../api/client";
import type { QueueRow } from "../../api/types";
import { refine, route } from "../../state/route";
import { Empty, Problem, Waiting } from "../../ui/Await";
import { More } from "../../ui/More";
import { Table, type Sorting } from "../../ui/Table";
import { COLUMNS } from "./columns";

const CAN: Sorting["can"] = {
  name: "ascending",
  oldest: "descending",
  ready: "descending",
  dead: "descending",
};

export function QueuesPage() {
  const by = route.value.query["sort"] ?? "name";
  const text = route.value.query["text"];
  const pages = usePages<QueueRow>(`queues${query({ sort: by, text, limit: 100 })}`);
  const sorting = { by, can: CAN, choose: (name: string) => refine({ sort: name }) };
  return (
    <>
      <div class="page-head">
        <h1>Queues</h1>
        <input
          class="queue-filter"
          type="search"
          aria-label="Part of the name"
          placeholder="Part of the name"
          autocomplete="off"
          spellcheck={false}
          value={text ?? ""}
          onInput={(event) => refine({ text: event.currentTarget.value })}
        />
      </div>
      {pages.error !== undefined && <Problem error={pages.error} again={pages.refresh} />}
      {pages.rows === undefined && pages.error === undefined && <Waiting />}
      {pages.rows?.length === 0 && (
        <Empty>
          {text
            ? "No queue has this in its name."
            : "No queue yet. A queue appears when a task is submitted to it."}
        </Empty>
      )}
      {pages.rows !== undefined && pages.rows.length > 0 && (
        <div class="panel">
          <Table
            label="Queues"
            columns={COLUMNS}
            rows={pages.rows}
            id={(row) => row.queue}
            sorting={sorting}
            tone={(row) => (row.paused ? "is-paused" : undefined)}
          />
          <More of={pages} noun="queues" />
        </div>
      )}
    </>
  );
}
