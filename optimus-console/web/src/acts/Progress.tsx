// How far an operation is, in a bar and in numbers.

import type { Operation } from "../api/types";
import { Meter } from "../ui/Meter";
import { StateTag } from "../ui/StateTag";
import { Text } from "../ui/Text";
import { count, duration, rate, whole } from "../text/format";
import { part } from "./part";

/** What an operation has come to in numbers. */
function Numbers({ operation }: { operation: Operation }) {
  const { matched, done, asked_to_stop, refused, gone, left, rate_s, state } = operation;
  const rest = state === "running" && rate_s ? ` · ${duration((left / rate_s) * 1000)} left` : "";
  if (state === "counting" || state === "counted") {
    const soFar = state === "counting" ? " so far" : "";
    const verb = matched === 1 ? "matches" : "match";
    return (
      <span class="num" role="status">
        {count(matched, "task")} {verb}
        {soFar}; nothing has changed yet
      </span>
    );
  }
  return (
    <>
      <span class="num" role="status">
        {whole(done)} of {whole(matched)} done
      </span>
      {asked_to_stop > 0 && <span class="num">{whole(asked_to_stop)} asked to stop</span>}
      {refused > 0 && <span class="num">{whole(refused)} refused</span>}
      {gone > 0 && <span class="num">{whole(gone)} gone</span>}
      {state === "running" && rate_s !== null && (
        <span class="dim num">
          {rate(rate_s)}
          {rest}
        </span>
      )}
    </>
  );
}

export function Progress({ operation }: { operation: Operation }) {
  const { state, failure, problems } = operation;
  const isOpen = state === "counting" || state === "counted";
  const why = failure ?? problems[0]?.error;
  return (
    <div class="operation">
      <p class="operation-line">
        <StateTag state={state} />
        <Numbers operation={operation} />
      </p>
      {!isOpen && <Meter part={part(operation)} label="Progress of the operation" />}
      {why && (
        <p class="dim">
          {failure ? "It has failed: " : "Refused, for example: "}
          <Text value={why} />
        </p>
      )}
    </div>
  );
}
