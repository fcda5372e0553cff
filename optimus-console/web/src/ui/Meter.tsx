// How far something is.

import type { Progress } from "../api/types";
import { percent } from "../text/format";
import { Text } from "./Text";

export function Meter({ part, label }: { part: number; label: string }) {
  const value = Math.max(0, Math.min(1, Number.isFinite(part) ? part : 0));
  return <progress class="meter" max={1} value={value} aria-label={label} />;
}

/** What a running task has said of itself. */
export function ProgressCell({ progress }: { progress: Progress | null | undefined }) {
  if (!progress) return <span class="dim">–</span>;
  const { part } = progress;
  return (
    <span class="progress">
      {part !== null && (
        <>
          <Meter part={part} label="Progress of the task" />
          <span class="num">{percent(part)}</span>
        </>
      )}
      {progress.text && <Text value={progress.text} max={120} />}
    </span>
  );
}
