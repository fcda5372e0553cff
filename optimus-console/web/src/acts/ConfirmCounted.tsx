// Confirms an operation that somebody has counted, here or with the command line.

import { useState } from "preact/hooks";
import { may } from "../api/session";
import type { Operation } from "../api/types";
import { now } from "../state/time";
import { Ago } from "../ui/Ago";
import { Dialog } from "../ui/Dialog";
import { Icon } from "../ui/Icon";
import { Text } from "../ui/Text";
import { ACTS, actOf, filterWords } from "./names";
import { Progress } from "./Progress";
import { Question } from "./Question";

/** Whether an operation was counted so long ago that the server refuses to confirm it. */
export function isLate(operation: Operation, at: number): boolean {
  const until = operation.confirm_until_ms;
  return until !== null && until !== undefined && until < at;
}

export function ConfirmCounted({ operation }: { operation: Operation }) {
  const [isAsked, setAsked] = useState(false);
  const { state, matched } = operation;
  const act = ACTS[actOf(operation.act)];
  const isOpen = state === "counted" && matched > 0 && !isLate(operation, now.value);
  // The dialog stays after the answer, and shows what becomes of the operation.
  const isOffered = isOpen && may("operate") && may(act.needs);
  return (
    <>
      {isOffered && (
        <button type="button" class="btn is-small is-main" onClick={() => setAsked(true)}>
          <Icon name="check" />
          Confirm
        </button>
      )}
      {isAsked && (
        <Dialog title="Confirm this operation?" close={() => setAsked(false)} class="is-wide">
          <div class="form">
            <p>
              <b>{act.verb}</b> tasks of <Text value={filterWords(operation.filter)} />
            </p>
            <p class="dim">
              Counted by <Text value={operation.who ?? "somebody"} max={60} />,{" "}
              <Ago at={operation.created_ms} />. Only tasks that were there then are changed.
            </p>
            {state === "counted" ? (
              <Question operation={operation} leave={() => setAsked(false)} />
            ) : (
              <>
                <Progress operation={operation} />
                <footer class="dialog-foot">
                  <button type="button" class="btn is-main" onClick={() => setAsked(false)}>
                    Close
                  </button>
                </footer>
              </>
            )}
          </div>
        </Dialog>
      )}
    </>
  );
}
