// Chooses the page for a route.

import type { ComponentChildren } from "preact";
import type { Feature } from "../api/types";
import { FEATURES, LAST, PLACES } from "../shell/places";
import { Empty } from "../ui/Await";
import { AuditPage } from "./audit/AuditPage";
import { FailuresPage } from "./failures/FailuresPage";
import { OperationsPage } from "./operations/OperationsPage";
import { OverviewPage } from "./overview/OverviewPage";
import { QueuePage } from "./queue/QueuePage";
import { QueuesPage } from "./queues/QueuesPage";
import { RedisPage } from "./redis/RedisPage";
import { SearchPage } from "./search/SearchPage";
import { TaskPage } from "./task/TaskPage";
import { ThingsPage } from "./things/ThingsPage";
import { WorkersPage } from "./workers/WorkersPage";

const PAGES: Record<string, () => ComponentChildren> = {
  overview: () => <OverviewPage />,
  queues: () => <QueuesPage />,
  failures: () => <FailuresPage />,
  workers: () => <WorkersPage />,
  search: () => <SearchPage />,
  operations: () => <OperationsPage />,
  audit: () => <AuditPage />,
  redis: () => <RedisPage />,
};

function isThing(name: string): name is Feature {
  return FEATURES.some((place) => place.page === name);
}

export function page(parts: string[]): ComponentChildren {
  const [name = "overview", first, second] = parts;
  if (name === "queues" && first !== undefined) return <QueuePage key={first} queue={first} />;
  if (name === "tasks" && first !== undefined && second !== undefined) {
    return <TaskPage key={`${first}/${second}`} queue={first} uuid={second} />;
  }
  if (isThing(name)) return <ThingsPage key={name} kind={name} />;
  const found = Object.hasOwn(PAGES, name) ? PAGES[name] : undefined;
  return found ? found() : <NoPage />;
}

/** The name of a page, for the window. */
export function title(parts: string[]): string {
  const [name = "overview", first, second] = parts;
  if (name === "tasks" && second !== undefined) return `Task ${first}/${second}`;
  if (name === "queues" && first !== undefined) return `Queue ${first}`;
  const place = [...PLACES, ...FEATURES, ...LAST].find((one) => one.page === name);
  return place?.text ?? "No such page";
}

function NoPage() {
  return (
    <>
      <h1>No such page</h1>
      <Empty>
        Choose a page from the menu, or <a href="#/overview">open the overview</a>.
      </Empty>
    </>
  );
}
