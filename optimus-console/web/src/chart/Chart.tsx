// A chart of lines over time, with a legend in words and a table with the same numbers.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { palette } from "../state/theme";
import { type Line, options } from "./options";
import { Legend } from "./Legend";
import { Twin } from "./Twin";

interface Props {
  title: string;
  /** Milliseconds since 1970, in order. */
  times: number[];
  lines: Line[];
  format: (value: number) => string;
  /** The time of a row in words. */
  when: (at: number) => string;
  scale?: "linear" | "log";
}

const HEIGHT = 132;

export function Chart({ title, times, lines, format, when, scale = "linear" }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | undefined>(undefined);
  const [width, setWidth] = useState(0);
  const [at, setAt] = useState<number>();
  const colours = palette.value;
  const form = lines.map((line) => line.label).join();

  useLayoutEffect(() => {
    const element = place.current;
    if (element === null) return;
    const watch = new ResizeObserver(() => setWidth(Math.floor(element.clientWidth)));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);

  const data = [times.map((time) => time / 1000), ...lines.map((line) => line.values)];
  const latest = useRef(data);
  latest.current = data;

  // The chart is built again when its form changes; new numbers only redraw it.
  useEffect(() => {
    const element = place.current;
    if (element === null || width === 0) return;
    const look = { width, height: HEIGHT, format, scale, hover: setAt };
    const built = new uPlot(options(lines, look), latest.current as uPlot.AlignedData, element);
    chart.current = built;
    return () => {
      built.destroy();
      chart.current = undefined;
    };
    // `lines` and `format` change with `form` alone.
  }, [width, colours, form, scale]);

  useEffect(() => {
    chart.current?.setData(latest.current as uPlot.AlignedData);
  }, [times, lines]);

  const index = at ?? times.length - 1;
  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{title}</span>
        <Legend lines={lines} index={index} format={format} />
      </figcaption>
      <div class="chart-place" ref={place} role="img" aria-label={`${title}, as a chart`} />
      <footer class="chart-foot">
        <span class="dim num">{times[index] === undefined ? "" : when(times[index])}</span>
        <Twin title={title} times={times} lines={lines} format={format} when={when} />
      </footer>
    </figure>
  );
}
