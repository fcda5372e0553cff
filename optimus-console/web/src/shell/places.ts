// The pages in the order of the menu.

import type { Feature, Overview } from "../api/types";
import type { IconName } from "../ui/Icon";
import { short } from "../text/format";

export interface Place {
  page: string;
  text: string;
  icon: IconName;
  /** Not for a reader who sees only some queues: the page is about all of them. */
  isWhole?: boolean;
  /** A number beside the name. */
  count?: (overview: Overview) => string | undefined;
}

export const PLACES: Place[] = [
  { page: "overview", text: "Overview", icon: "overview" },
  { page: "queues", text: "Queues", icon: "queues", count: (of) => short(of.queue_count) },
  {
    page: "failures",
    text: "Failures",
    icon: "failures",
    count: (of) => (of.counts.dead > 0 ? short(of.counts.dead) : undefined),
  },
  { page: "workers", text: "Workers", icon: "workers", count: (of) => short(of.processes) },
  { page: "search", text: "Search", icon: "search" },
  {
    page: "operations",
    text: "Operations",
    icon: "operations",
    count: (of) => {
      const running = of.operations.filter((one) => one.state === "running").length;
      return running > 0 ? short(running) : undefined;
    },
  },
];

/** Pages that appear when the store uses what they show. */
export const FEATURES: (Place & { page: Feature })[] = [
  { page: "lanes", text: "Lanes", icon: "lanes" },
  { page: "limits", text: "Limits", icon: "limits" },
  { page: "schedules", text: "Schedules", icon: "schedules" },
  { page: "groups", text: "Groups", icon: "groups" },
  { page: "shards", text: "Shards", icon: "shards", isWhole: true },
  { page: "sources", text: "Sources", icon: "sources", isWhole: true },
  { page: "dispensers", text: "Dispensers", icon: "dispensers", isWhole: true },
];

export const LAST: Place[] = [
  { page: "audit", text: "Audit", icon: "audit", isWhole: true },
  { page: "redis", text: "Redis", icon: "redis" },
];

/** Who reads: whether they see each queue, and whether they act. */
export interface Reader {
  seesAll: boolean;
  acts: boolean;
}

/**
 * Returns those pages that the reader may see, of the features that are in use. Who acts can set
 * the first limit.
 */
export function offered(of: Overview | undefined, reader: Reader): [Place[], Place[], Place[]] {
  const seen = (place: Place) => reader.seesAll || !place.isWhole;
  const used = FEATURES.filter(
    ({ page }) => of && (of.features[page] || (page === "limits" && reader.acts)),
  );
  return [PLACES, used.filter(seen), LAST.filter(seen)];
}

/** Returns the page that a route belongs to. */
export function placeOf(part: string | undefined): string {
  return part === undefined ? "overview" : part === "tasks" ? "queues" : part;
}
