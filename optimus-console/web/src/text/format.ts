// Numbers, durations and times as the pages show them.

const GROUPED = new Intl.NumberFormat("en");

/** `2310442` as `2,310,442`. */
export function whole(value: number): string {
  return GROUPED.format(Math.round(value));
}

/** A number in at most five characters: `950`, `12.4k`, `2.3M`. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size < 1000) return Number.isInteger(value) ? String(value) : digits(value);
  const units = ["k", "M", "G", "T", "P"];
  let scaled = value;
  let unit = "";
  for (const next of units) {
    if (Math.abs(scaled) < 999.5) break;
    scaled /= 1000;
    unit = next;
  }
  return digits(scaled) + unit;
}

function digits(value: number): string {
  const size = Math.abs(value);
  if (size >= 100) return value.toFixed(0);
  // The labels of an axis differ from each other, also if few tasks run.
  if (size < 0.1) return value.toFixed(3).replace(/\.?0+$/, "");
  return (size >= 10 ? value.toFixed(1) : value.toFixed(size >= 1 ? 1 : 2)).replace(/\.0+$/, "");
}

/** A rate in tasks a second: `310/s`, `0.25/s`. */
export function rate(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : `${short(value)}/s`;
}

const UNITS: [number, string][] = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1000, "s"],
];

/** A duration in one or two units: `41 ms`, `1.2 s`, `4 min 10 s`, `3 d 2 h`. */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return "–";
  if (ms < 0) return "0 ms";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 9950) return `${digits(Math.round(ms / 100) / 10)} s`;
  for (const [index, [size, unit]] of UNITS.entries()) {
    const [lower, name] = UNITS[index + 1] ?? [size, unit];
    const rounded = Math.round(ms / lower) * lower;
    if (rounded < size) continue;
    const many = Math.floor(rounded / size);
    const rest = Math.round((rounded - many * size) / lower);
    return rest === 0 ? `${many} ${unit}` : `${many} ${unit} ${rest} ${name}`;
  }
  return "–";
}

/** How long ago a time is: `5 s ago`, or `in 5 s`. */
export function ago(at: number | null | undefined, now: number): string {
  if (at === null || at === undefined) return "–";
  const span = now - at;
  if (Math.abs(span) < 1000) return "now";
  return span > 0 ? `${duration(coarse(span))} ago` : `in ${duration(coarse(-span))}`;
}

/** Drops the lower unit, so that a table of ages stays calm. */
function coarse(ms: number): number {
  for (const [size] of UNITS) if (ms >= size) return Math.floor(ms / size) * size;
  return Math.floor(ms / 1000) * 1000;
}

const two = (value: number) => String(value).padStart(2, "0");

/** A time of day in the reader's time zone: `09:12:40`. */
export function clock(at: number): string {
  const date = new Date(at);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** A day in the reader's time zone: `2026-11-27`. */
export function day(at: number): string {
  const date = new Date(at);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** A whole time: `2026-11-27 09:12:40.120`. */
export function stamp(at: number): string {
  return `${day(at)} ${clock(at)}.${String(new Date(at).getMilliseconds()).padStart(3, "0")}`;
}

/** The reader's time zone at a time: `UTC`, `UTC+1`, `UTC-3:30`. Zones change with the seasons. */
export function zone(at: number): string {
  const minutes = -new Date(at).getTimezoneOffset();
  if (!Number.isFinite(minutes) || minutes === 0) return "UTC";
  const rest = Math.abs(minutes) % 60;
  const hours = Math.floor(Math.abs(minutes) / 60);
  return `UTC${minutes < 0 ? "-" : "+"}${hours}${rest === 0 ? "" : `:${two(rest)}`}`;
}

/** A whole time with its zone, and in UTC, in which programs write: the title of a time. */
export function moment(at: number): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return "–";
  const utc = date.toISOString().replace("T", " ").replace("Z", " UTC");
  const name = zone(at);
  return name === "UTC" ? utc : `${stamp(at)} ${name}, which is ${utc}`;
}

/** A size in bytes: `812 MB`. */
export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let scaled = value;
  let unit = 0;
  while (scaled >= 999.5 && unit < units.length - 1) [scaled, unit] = [scaled / 1000, unit + 1];
  return `${unit === 0 ? scaled : digits(scaled)} ${units[unit] ?? ""}`;
}

/** A part of one as a percentage: `42 %`. */
export function percent(part: number | null | undefined): string {
  if (part === null || part === undefined || !Number.isFinite(part)) return "–";
  const of100 = part * 100;
  return `${of100 > 0 && of100 < 1 ? of100.toFixed(1) : Math.round(of100)} %`;
}

/** `1 task`, `2 tasks`. */
export function count(value: number, noun: string): string {
  return `${whole(value)} ${noun}${value === 1 ? "" : "s"}`;
}
