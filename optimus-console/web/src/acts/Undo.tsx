// Requeues the tasks that an operation has cancelled: they are counted first, as for any operation.

import { useState } from "preact/hooks";
import { may } from "../api/session";
import type { Operation } from "../api/types";
import { Icon } from "../ui/Icon";
import { Undoing } from "./Bulk";

export function Undo({ operation }: { operation: Operation }) {
  const [isAsked, setAsked] = useState(false);
  const isOver = operation.state === "done" || operation.state === "cancelled";
  const isOffered = operation.can_undo && isOver && may("operate");
  return (
    <>
      {isOffered && (
        <button type="button" class="btn is-small" onClick={() => setAsked(true)}>
          <Icon name="retry" />
          Undo
        </button>
      )}
      {isAsked && <Undoing operation={operation} close={() => setAsked(false)} />}
    </>
  );
}
