// What has happened to a task, with the spans between.

import type { TimelineRow } from "../../api/types";
import { clock, day, duration, moment, zone } from "../../text/format";
import { Empty } from "../../ui/Await";
import { Text } from "../../ui/Text";

const NAMES: Record<TimelineRow["kind"], string> = {
  submitted: "Submitted",
  due: "Due",
  started: "Started",
  failed: "Failed",
  retry: "Retry",
  ended: "Ended",
  lost: "Lost",
  asked: "Cancel requested",
  cancelled: "Cancelled",
};

/** The colour of a point. An end is good only if the task has succeeded. */
function tone({ kind, text }: TimelineRow): string {
  return kind === "ended" && text !== "success" ? "failed" : kind;
}

export function Timeline({ rows }: { rows: TimelineRow[] }) {
  if (rows.length === 0) return <Empty>Nothing is known of its past.</Empty>;
  return (
    <ol class="timeline">
      {rows.map((row, index) => {
        const before = rows[index - 1];
        const isNewDay = before === undefined || day(before.at_ms) !== day(row.at_ms);
        return (
          <li key={index} class={`at-${tone(row)}`}>
            <span class="timeline-dot" aria-hidden="true" />
            <time class="num" title={moment(row.at_ms)}>
              {clock(row.at_ms)}
            </time>
            <span class="timeline-what">
              <b>{NAMES[row.kind] ?? row.kind}</b>{" "}
              {isNewDay && (
                <span class="dim num">
                  on {day(row.at_ms)}, {zone(row.at_ms)}
                </span>
              )}{" "}
              {before !== undefined && row.at_ms > before.at_ms && (
                <span class="dim num">{duration(row.at_ms - before.at_ms)} later</span>
              )}
              {row.text !== "" && (
                <span class="timeline-text">
                  <Text value={row.text} max={240} />
                </span>
              )}
            </span>
          </li>
        );
      })}
    </ol>
  );
}
