// The few numbers that say how the whole system is.

import type { ComponentChildren } from "preact";
import type { Overview } from "../../api/types";
import { Meter } from "../../ui/Meter";
import { bytes, duration, percent, rate, short, whole } from "../../text/format";
import { plain } from "../../text/marks";
import { Spark } from "./Spark";

interface TileProps {
  name: string;
  value: ComponentChildren;
  note?: ComponentChildren;
  tone?: string | undefined;
  children?: ComponentChildren;
}

function Tile({ name, value, note, tone, children }: TileProps) {
  return (
    <div class={tone ? `tile is-${tone}` : "tile"}>
      <dt>{name}</dt>
      <dd>
        <span class="tile-value num">{value}</span>
        {note !== undefined && <span class="tile-note">{note}</span>}
        {children}
      </dd>
    </div>
  );
}

const FULL = 0.9;

function memoryNote({ up, used_bytes, max_bytes }: Overview["redis"]): string {
  if (!up) return "not reached";
  if (used_bytes === null) return "Redis does not tell its memory";
  return max_bytes ? `of ${bytes(max_bytes)}` : "no limit set";
}

function Memory({ redis }: { redis: Overview["redis"] }) {
  const { used_bytes, max_bytes } = redis;
  const part = max_bytes && used_bytes !== null ? used_bytes / max_bytes : undefined;
  return (
    <Tile
      name={`Redis ${plain(redis.version ?? "–")}`}
      value={redis.up ? bytes(used_bytes) : "down"}
      note={memoryNote(redis)}
      tone={!redis.up || (part ?? 0) > FULL ? "bad" : undefined}
    >
      {part !== undefined && <Meter part={part} label="Memory in use" />}
    </Tile>
  );
}

/** How much time the small lines show. */
function span(series: Overview["series"]): string | undefined {
  const [first, last] = [series[0], series.at(-1)];
  return first && last && last !== first ? `last ${duration(last.at_ms - first.at_ms)}` : undefined;
}

export function Numbers({ data }: { data: Overview }) {
  const { rates, counts, slots, series } = data;
  const failing = rates.dead_s + rates.retry_s;
  const ended = rates.success_s + failing;
  const busy = slots.allowed > 0 ? slots.busy / slots.allowed : 0;
  return (
    <dl class="tiles">
      <Tile name="Succeeded" value={rate(rates.success_s)} note={span(series)}>
        <Spark label="Succeeded" values={series.map((row) => row.success)} colour="success" />
      </Tile>
      <Tile
        name="Failed"
        value={rate(failing)}
        note={ended > 0 ? `${percent(failing / ended)} of attempts` : "no attempts"}
        tone={rates.dead_s > 0 ? "bad" : undefined}
      >
        <Spark label="Failed" values={series.map((row) => row.retry + row.dead)} colour="dead" />
      </Tile>
      <Tile
        name="Ready"
        value={short(counts.ready)}
        note={data.oldest_ms === null ? "none waits" : `oldest ${duration(data.oldest_ms)}`}
      />
      <Tile
        name="Waiting for later"
        value={short(counts.delayed + counts.retry + counts.blocked)}
        note={`${short(counts.delayed)} delayed, ${short(counts.retry)} retry, ${short(counts.blocked)} blocked`}
      />
      <Tile
        name="Dead"
        value={short(counts.dead)}
        note="kept for you to decide"
        tone={counts.dead > 0 ? "warn" : undefined}
      />
      <Tile
        name="Slots"
        value={`${whole(slots.busy)} / ${whole(slots.allowed)}`}
        note={`${whole(data.processes)} ${data.processes === 1 ? "process" : "processes"}`}
        tone={data.processes === 0 ? "bad" : undefined}
      >
        <Meter part={busy} label="Slots in use" />
      </Tile>
      <Memory redis={data.redis} />
    </dl>
  );
}
