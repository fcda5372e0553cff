// A time as the span from now, which stays current. The title has the whole time.

import { ago, duration, moment } from "../text/format";
import { now } from "../state/time";

function iso(at: number): string | undefined {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}

export function Ago({ at }: { at: number | null | undefined }) {
  if (at === null || at === undefined) return <span class="dim">–</span>;
  return (
    <time dateTime={iso(at)} title={moment(at)} class="num">
      {ago(at, now.value)}
    </time>
  );
}

/** How long something has lasted since a time. */
export function Since({ at }: { at: number | null | undefined }) {
  if (at === null || at === undefined) return <span class="dim">–</span>;
  const span = Math.max(0, now.value - at);
  return (
    <time dateTime={iso(at)} title={moment(at)} class="num">
      {duration(Math.floor(span / 1000) * 1000 || 0)}
    </time>
  );
}

/** A time of day, or a day with it. The title says in which zone. */
export function Clock({ at, text }: { at: number; text: string }) {
  return (
    <time dateTime={iso(at)} title={moment(at)} class="num">
      {text}
    </time>
  );
}
