// How far an operation is, in a bar and in numbers.

import type { Operation } from "../api/types";
import { Meter } from "../ui/Meter";
import { StateTag } from "../ui/StateTag";
import { Text } from "../ui/Text";
import { duration, rate, whole } from "../text/format";
import { part } from "./part";

export function Progress({ operation }: { operation: Operation }) {
  const { matched, done, refused, gone, left, rate_s, state } = operation;
  const rest = state === "running" && rate_s ? ` · ${duration((left / rate_s) * 1000)} left` : "";
  return (
    <div class="operation">
      <p class="operation-line">
        <StateTag state={state} />
        <span class="num" role="status">
          {whole(done)} of {whole(matched)} done
        </span>
        {refused > 0 && <span class="num">{whole(refused)} refused</span>}
        {gone > 0 && <span class="num">{whole(gone)} gone</span>}
        {state === "running" && rate_s !== null && (
          <span class="dim num">
            {rate(rate_s)}
            {rest}
          </span>
        )}
      </p>
      <Meter part={part(operation)} label="Progress of the operation" />
      {operation.text && (
        <p class="dim">
          <Text value={operation.text} />
        </p>
      )}
    </div>
  );
}
