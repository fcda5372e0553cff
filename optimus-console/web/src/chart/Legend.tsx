// The names of a chart's lines, with their values at the pointer or at the end.

import type { Line } from "./options";

interface Props {
  lines: Line[];
  index: number;
  format: (value: number) => string;
}

export function Legend({ lines, index, format }: Props) {
  return (
    <ul class="legend">
      {lines.map((line) => {
        const value = line.values[index];
        return (
          <li key={line.label} class={`c-${line.colour}`}>
            <svg viewBox="0 0 12 4" aria-hidden="true" class="legend-line">
              <path d="M0 2h12" stroke-dasharray={line.dash?.join(" ")} />
            </svg>
            {line.label}
            <b class="num">{value === null || value === undefined ? "–" : format(value)}</b>
          </li>
        );
      })}
    </ul>
  );
}
