// A small line without axes.

interface Props {
  label: string;
  values: number[];
  colour: string;
}

const WIDTH = 120;
const HEIGHT = 24;

/** A line of fewer steps does not fill the width: it would show seconds as a steep trend. */
const STEPS = 24;

export function points(values: number[]): string {
  const most = Math.max(...values, 0);
  const step = WIDTH / Math.max(STEPS, values.length - 1);
  const start = WIDTH - step * (values.length - 1);
  const y = (value: number) => HEIGHT - 1 - (most > 0 ? (value / most) * (HEIGHT - 3) : 0);
  return values
    .map((value, index) => `${(start + index * step).toFixed(1)},${y(value).toFixed(1)}`)
    .join(" ");
}

export function Spark({ label, values, colour }: Props) {
  if (values.length < 2) return null;
  return (
    <svg
      class={`spark c-${colour}`}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${label} over the last minutes, as a line`}
    >
      <polyline points={points(values)} />
    </svg>
  );
}
