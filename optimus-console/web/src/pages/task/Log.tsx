// The lines that a task has logged. While it runs, the newest stay in view, unless the reader has
// scrolled up.

import { useLayoutEffect, useRef } from "preact/hooks";
import type { TaskDetail } from "../../api/types";
import { clock, moment, whole } from "../../text/format";
import { Empty } from "../../ui/Await";
import { Panel } from "../../ui/Panel";
import { Lines } from "../../ui/Text";

interface Props {
  log: NonNullable<TaskDetail["log"]>;
  isLive: boolean;
}

const NEAR_PX = 24;

export function Log({ log, isLive }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    const element = place.current;
    if (element && isAtEnd.current) element.scrollTop = element.scrollHeight;
  }, [log]);
  const aside = (
    <span class="dim num">
      {isLive && "live, "}
      {whole(log.lines.length)} lines
      {log.dropped > 0 && `, ${whole(log.dropped)} older dropped`}
    </span>
  );
  return (
    <Panel title="Log" aside={aside}>
      {log.lines.length === 0 ? (
        <Empty>No line yet.</Empty>
      ) : (
        <div
          class="code log"
          ref={place}
          tabIndex={0}
          role="log"
          aria-label="Log"
          aria-live="off"
          onScroll={(event) => {
            const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
            isAtEnd.current = scrollHeight - scrollTop - clientHeight < NEAR_PX;
          }}
        >
          {log.lines.map((line, index) => (
            <div key={index} class="log-line">
              <time class="dim num" title={`${moment(line.at_ms)}, attempt ${line.attempt}`}>
                {clock(line.at_ms)}
              </time>
              <span class="dim num" title="Attempt">
                {line.attempt}
              </span>
              <Lines value={line.text} max={8192} />
            </div>
          ))}
        </div>
      )}
    </Panel>
  );
}
