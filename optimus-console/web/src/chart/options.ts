// How a chart looks. The colours come from the style sheet, because a canvas has none of its own.

import type uPlot from "uplot";

export interface Line {
  label: string;
  values: (number | null)[];
  /** The name of the colour: the custom property without its dashes. */
  colour: string;
  /** Lines differ by their dashes as well as by their colour. */
  dash?: number[];
  fill?: boolean;
}

export interface Look {
  width: number;
  height: number;
  format: (value: number) => string;
  /** Durations span several powers of ten. */
  scale?: "linear" | "log";
  hover: (index: number | undefined) => void;
}

function css(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Charts of one page share the place of the pointer. */
const GROUP = "optimus";

export function options(lines: Line[], look: Look): uPlot.Options {
  const axis = {
    stroke: css("text-2"),
    font: `11px ${css("font-ui")}`,
    ticks: { show: false },
    grid: { stroke: css("grid"), width: 1 },
  };
  const isLog = look.scale === "log";
  return {
    width: look.width,
    height: look.height,
    padding: [6, 6, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      drag: { x: false, y: false },
      sync: { key: GROUP },
      points: { size: 6 },
    },
    scales: {
      x: { time: true },
      y: isLog ? { distr: 3, range: logRange } : { range: (_, __, most) => [0, top(most)] },
    },
    axes: [
      { ...axis, grid: { show: false }, size: 22, space: 64, gap: 3, values: TIMES },
      {
        ...axis,
        size: (_, values) => axisWidth(values),
        gap: 4,
        space: 26,
        ...(isLog ? { filter: powers, grid: { ...axis.grid, filter: powers } } : {}),
        values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : look.format(tick))),
      },
    ],
    series: [{}, ...lines.map(series)],
    hooks: { setCursor: [(chart) => look.hover(chart.cursor.idx ?? undefined)] },
  };
}

const AXIS_LEAST = 46;
const CHARACTER = 5.8;
const AXIS_GAP = 10;

/** The width of an axis in which its longest label fits, such as `16 min 40 s`. */
export function axisWidth(labels: string[] | null): number {
  const longest = Math.max(0, ...(labels ?? []).map((label) => label.length));
  return Math.max(AXIS_LEAST, Math.ceil(longest * CHARACTER) + AXIS_GAP);
}

function series(line: Line): uPlot.Series {
  const stroke = css(line.colour);
  return {
    label: line.label,
    stroke,
    width: 1.5,
    points: { show: true, size: 5, width: 0, fill: stroke, filter: alone },
    ...(line.dash ? { dash: line.dash } : {}),
    ...(line.fill ? { fill: css(`${line.colour}-soft`) } : {}),
  };
}

/** The points that no line leads to. They would not be seen otherwise. */
function alone(chart: uPlot, index: number): number[] {
  const values = chart.data[index] ?? [];
  const isAbsent = (at: number) => values[at] === null || values[at] === undefined;
  return Array.from(values.keys()).filter(
    (at) => !isAbsent(at) && isAbsent(at - 1) && isAbsent(at + 1),
  );
}

/** The upper end of a linear axis. An empty chart has one, too. */
function top(most: number | null): number {
  return most === null || most <= 0 ? 1 : most * 1.1;
}

/** Keeps the powers of ten among the ticks of a logarithmic axis. */
function powers(_: uPlot, ticks: number[]): (number | null)[] {
  return ticks.map((tick) => (Math.abs(Math.log10(tick) % 1) < 1e-9 ? tick : null));
}

function logRange(_: uPlot, least: number | null, most: number | null): [number, number] {
  const low = least !== null && least > 0 ? least : 1;
  const high = most !== null && most > low ? most : low * 10;
  return [10 ** Math.floor(Math.log10(low)), 10 ** Math.ceil(Math.log10(high))];
}

const DAY_S = 86_400;
const two = (value: number) => String(value).padStart(2, "0");

/** Labels of times: the time of day, or the day when the ticks are a day apart. */
function TIMES(_: uPlot, ticks: number[], __: number, ___: number, step: number): string[] {
  return ticks.map((tick) => {
    const date = new Date(tick * 1000);
    const day = `${two(date.getMonth() + 1)}-${two(date.getDate())}`;
    const isMidnight = date.getHours() === 0 && date.getMinutes() === 0;
    return step >= DAY_S || isMidnight ? day : `${two(date.getHours())}:${two(date.getMinutes())}`;
  });
}
