// Asks whether a counted operation may change its tasks: how many there are, which, and what
// happens to them.

import { useState } from "preact/hooks";
import { takeOperation } from "../api/events";
import { path, post, words } from "../api/client";
import type { Operation } from "../api/types";
import { say } from "../state/notes";
import { Reason } from "../ui/Confirm";
import { count, whole } from "../text/format";
import { ACTS, actOf } from "./names";
import { Samples } from "./Samples";

export function Question({ operation, leave }: { operation: Operation; leave: () => void }) {
  const [reason, setReason] = useState("");
  const [error, setError] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const { matched, id } = operation;
  const act = ACTS[actOf(operation.act)];
  const confirm = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    try {
      const body = { expect: matched, reason: reason.trim() || undefined };
      takeOperation(await post<Operation>(`${path("operations", id)}/confirm`, body));
      say(`The operation over ${count(matched, "task")} runs.`);
    } catch (problem) {
      setError(words(problem));
      setBusy(false);
    }
  };
  return (
    <form onSubmit={(event) => void confirm(event)}>
      <p class="big-count" role="status">
        <b class="num">{whole(matched)}</b> {matched === 1 ? "task matches" : "tasks match"}
      </p>
      {matched > 0 && <p>{act.means}</p>}
      <Samples operation={operation} />
      {matched > 0 && <Reason value={reason} change={setReason} />}
      {error !== undefined && (
        <p class="form-error" role="alert">
          {error}
        </p>
      )}
      <footer class="dialog-foot">
        <button type="button" class="btn" onClick={leave}>
          Back
        </button>
        {matched > 0 && (
          <button class={`btn ${act.danger ? "is-danger" : "is-main"}`} disabled={isBusy}>
            {act.verb} {count(matched, "task")}
          </button>
        )}
      </footer>
    </form>
  );
}
