// What an operator looks at first: does it run, how fast, and what needs attention.

import { overview } from "../../api/events";
import type { Overview } from "../../api/types";
import { StatsCharts } from "../../chart/StatsCharts";
import { Waiting } from "../../ui/Await";
import { Attention } from "./Attention";
import { NewFailures } from "./NewFailures";
import { Numbers } from "./Numbers";
import { RunningOperations } from "./RunningOperations";
import { Stuck } from "./Stuck";

function Parts({ data }: { data: Overview }) {
  return (
    <>
      <Numbers data={data} />
      <StatsCharts call="stats" title="All queues" />
      <div class="columns">
        <div class="stack">
          <Stuck rows={data.stuck} />
          <Attention rows={data.attention} />
        </div>
        <NewFailures rows={data.failures} />
      </div>
      <RunningOperations rows={data.operations} />
    </>
  );
}

export function OverviewPage() {
  const data = overview.value;
  return (
    <>
      <h1 class="hidden">Overview</h1>
      {data ? <Parts data={data} /> : <Waiting />}
    </>
  );
}
