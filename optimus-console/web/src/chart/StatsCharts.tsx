// The four charts of a queue or of all queues: what succeeded, what failed, how long tasks waited
// and ran.

import type { Stats, StatsRow } from "../api/types";
import { Await } from "../ui/Await";
import { Tabs } from "../ui/Tabs";
import { useResource } from "../api/resource";
import { duration, rate, whole } from "../text/format";
import { refine, route } from "../state/route";
import { current } from "../state/time";
import { Chart } from "./Chart";
import type { Line } from "./options";
import { idleRows, type RangeName, RANGES, rangeOf, rates, telling, when } from "./ranges";

const EVERY_MS = 20_000;
const DASHED = [5, 3];
const DOTTED = [2, 2];

function times(rows: StatsRow[], kind: "run" | "wait"): Line[] {
  const column = (part: "p50" | "p95" | "p99") => rows.map((row) => row[`${kind}_${part}_ms`]);
  return [
    { label: "p50", values: column("p50"), colour: "series-1" },
    { label: "p95", values: column("p95"), colour: "series-2", dash: DASHED },
    { label: "p99", values: column("p99"), colour: "series-3", dash: DOTTED },
  ];
}

type Over = Parameters<typeof rates>[2];

function failed(rows: StatsRow[], over: Over): Line[] {
  return [
    { label: "dead", values: rates(rows, "dead", over), colour: "dead", fill: true },
    { label: "retry", values: rates(rows, "retry", over), colour: "retry", dash: DASHED },
  ];
}

function Charts({ stats, range }: { stats: Stats; range: RangeName }) {
  const isIdle = stats.until_ms === 0;
  const until = isIdle ? current() : stats.until_ms;
  const over = { seconds: RANGES[range].seconds, until };
  const rows = telling(isIdle ? idleRows(range, until) : stats.rows, until);
  const at = rows.map((row) => row.since_ms);
  const success = rates(rows, "success", over);
  const shared = { times: at, when: when(range) };
  const line: Line = { label: "success", values: success, colour: "success", fill: true };
  return (
    <div class="charts">
      <Chart title="Succeeded" lines={[line]} format={rate} {...shared} />
      <Chart title="Failed" lines={failed(rows, over)} format={rate} {...shared} />
      <Chart title="Wait" lines={times(rows, "wait")} format={duration} scale="log" {...shared} />
      <Chart title="Run" lines={times(rows, "run")} format={duration} scale="log" {...shared} />
    </div>
  );
}

const CHOICES = (Object.keys(RANGES) as RangeName[]).map((value) => ({ value, text: value }));

/** `call` is the address of the statistics without its query. */
export function StatsCharts({ call, title }: { call: string; title: string }) {
  const range = rangeOf(route.value.query["range"]);
  const { unit, last } = RANGES[range];
  const stats = useResource<Stats>(`${call}?unit=${unit}&last=${last}`, EVERY_MS);
  const leftOut = stats.data?.left_out ?? 0;
  return (
    <section class="stats" aria-label={title}>
      <div class="stats-head">
        <h2>{title}</h2>
        {leftOut > 0 && <span class="dim">without {whole(leftOut)} further queues</span>}
        <Tabs
          label="Span of time"
          look="segments"
          of={CHOICES}
          value={range}
          choose={(value) => refine({ range: value })}
        />
      </div>
      <Await of={stats}>{(data) => <Charts stats={data} range={range} />}</Await>
    </section>
  );
}
