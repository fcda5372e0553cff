// The acts on tasks: their words, who may do them, and the states that they apply to.

import type { BulkAct, OperationFilter, State } from "../api/types";
import type { Act } from "../api/session";
import type { IconName } from "../ui/Icon";
import { stamp } from "../text/format";

export type TaskAct = "retry" | "cancel" | "delete" | "run_now";

interface Words {
  /** On a button. */
  verb: string;
  /** The form of what has happened. */
  done: string;
  icon: IconName;
  needs: Act;
  danger: boolean;
  bulk: BulkAct;
  states: State[];
  /** What it means for a task. */
  means: string;
}

export const ACTS: Record<TaskAct, Words> = {
  retry: {
    verb: "Retry",
    done: "requeued",
    icon: "retry",
    needs: "operate",
    danger: false,
    bulk: "requeue",
    states: ["dead", "cancelled"],
    means: "The tasks run again, with new attempts: now, or when what they wait for is over.",
  },
  run_now: {
    verb: "Run now",
    done: "made ready",
    icon: "play",
    needs: "operate",
    danger: false,
    bulk: "run_now",
    states: ["delayed", "retry"],
    means: "The tasks become ready now instead of at their time.",
  },
  cancel: {
    verb: "Cancel",
    done: "cancelled",
    icon: "stop",
    needs: "operate",
    danger: true,
    bulk: "cancel",
    states: ["ready", "delayed", "blocked", "retry", "working"],
    means:
      "The tasks don't run. Attempts that run are asked to stop. Cancelled tasks can be retried.",
  },
  delete: {
    verb: "Delete",
    done: "deleted",
    icon: "trash",
    needs: "delete",
    danger: true,
    bulk: "delete",
    states: ["dead", "cancelled"],
    means: "The tasks and their arguments are removed. This can't be undone.",
  },
};

const ALL = Object.keys(ACTS) as TaskAct[];

/** Returns the acts that apply to tasks of a state. */
export function actsOn(state: State): TaskAct[] {
  return ALL.filter((act) => ACTS[act].states.includes(state));
}

export function actOf(bulk: BulkAct): TaskAct {
  return ALL.find((act) => ACTS[act].bulk === bulk) ?? "retry";
}

/** The words for an act on all tasks, or on all that match: `Retry all`, `Run all now`. */
export function allWords(act: TaskAct, isNarrow: boolean): string {
  const which = isNarrow ? "all that match" : "all";
  return act === "run_now" ? `Run ${which} now` : `${ACTS[act].verb} ${which}`;
}

/** How many queues of a filter are named. */
const NAMED = 5;

/** `queue a`, `queues a, b and 4 more`, or `all queues`. */
function queueWords({ queue, queues }: OperationFilter): string {
  const all = queues ?? (queue ? [queue] : []);
  if (all.length === 0) return "all queues";
  const more = all.length > NAMED ? ` and ${all.length - NAMED} more` : "";
  return `${all.length === 1 ? "queue" : "queues"} ${all.slice(0, NAMED).join(", ")}${more}`;
}

/** What an operation compares a text with, which is less than the list of a queue's tasks does. */
function errorWords(text: string): string {
  return `“${text}” in the first 200 characters of the last error, in the same letter case`;
}

/** The filter of an operation in words. */
export function filterWords(filter: OperationFilter): string {
  const parts = [queueWords(filter)];
  const states = filter.states ?? (filter.state ? [filter.state] : []);
  if (states.length > 0)
    parts.push(`${states.length === 1 ? "state" : "in"} ${states.join(" or ")}`);
  if (filter.task) parts.push(`task ${filter.task}`);
  if (filter.fingerprint) parts.push(`failure ${filter.fingerprint}`);
  if (filter.cause) parts.push(`cause ${filter.cause}`);
  const headers = filter.headers ?? (filter.header ? [filter.header] : []);
  for (const header of headers) parts.push(`header ${header}`);
  if (filter.older_ms) parts.push(`older than ${Math.round(filter.older_ms / 1000)} s`);
  if (filter.since_ms) parts.push(`ended since ${stamp(filter.since_ms)}`);
  if (filter.text) parts.push(errorWords(filter.text));
  return parts.join(", ");
}
