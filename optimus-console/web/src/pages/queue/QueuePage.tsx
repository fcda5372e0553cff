// A queue: its numbers, its tasks by state, its statistics and its history.

import { useEffect } from "preact/hooks";
import { path } from "../../api/client";
import { queueRow, watched } from "../../api/events";
import { type Resource, useResource } from "../../api/resource";
import type { QueueDetail } from "../../api/types";
import { QueueActs } from "../../acts/QueueActs";
import { StatsCharts } from "../../chart/StatsCharts";
import { refine, route } from "../../state/route";
import { Await } from "../../ui/Await";
import { Text } from "../../ui/Text";
import { Tabs } from "../../ui/Tabs";
import { About } from "./About";
import { ByTask } from "./ByTask";
import { History } from "./History";
import { PausedBanner } from "./PausedBanner";
import { QueueFacts } from "./QueueFacts";
import { Tasks } from "./Tasks";

const VIEWS = [
  { value: "tasks", text: "Tasks" },
  { value: "statistics", text: "Statistics" },
  { value: "history", text: "History" },
] as const;
type View = (typeof VIEWS)[number]["value"];

/**
 * The stream carries the opened queue's row, once the server has shown the queue: it refuses the
 * stream of a queue that the reader may not see.
 */
function useWatch(queue: string, isShown: boolean): void {
  useEffect(() => {
    if (!isShown) return;
    watched.value = queue;
    return () => {
      watched.value = undefined;
    };
  }, [queue, isShown]);
}

/** The newer of what the stream and the last answer say: a stream can fall behind, or end. */
function newer(data: QueueDetail, { at }: Resource<QueueDetail>): QueueDetail {
  const streamed = queueRow.value;
  const isNewer = streamed?.row.queue === data.queue && streamed.at > at;
  return isNewer ? { ...data, ...streamed.row } : data;
}

export function QueuePage({ queue }: { queue: string }) {
  const detail = useResource<QueueDetail>(path("queues", queue));
  useWatch(queue, detail.data !== undefined);
  const asked = route.value.query["view"];
  const view: View = VIEWS.find((one) => one.value === asked)?.value ?? "tasks";
  return (
    <Await of={detail}>
      {(data) => {
        const row = newer(data, detail);
        return (
          <>
            <div class="page-head">
              <h1>
                <span class="crumb">
                  <a href="#/queues">Queues</a> /
                </span>{" "}
                <Text value={queue} max={200} />
              </h1>
              <div class="acts">
                <QueueActs
                  queue={queue}
                  isPaused={row.paused !== null}
                  done={() => void detail.refresh()}
                />
              </div>
            </div>
            <PausedBanner paused={row.paused} />
            <QueueFacts row={row} />
            <About detail={data} />
            <Tabs
              label="Parts of the queue"
              of={[...VIEWS]}
              value={view}
              choose={(value) => refine({ view: value })}
            />
            {view === "tasks" && <Tasks key={queue} queue={queue} counts={row.counts} />}
            {view === "statistics" && (
              <>
                <StatsCharts call={path("queues", queue, "stats")} title="Statistics" />
                <ByTask rows={data.tasks} />
              </>
            )}
            {view === "history" && <History queue={queue} kept={data.history} />}
          </>
        );
      }}
    </Await>
  );
}
