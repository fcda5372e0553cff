// The buttons that act on given tasks, each with its question.

import { useState } from "preact/hooks";
import { may } from "../api/session";
import { Confirm } from "../ui/Confirm";
import { Icon } from "../ui/Icon";
import { count } from "../text/format";
import { ACTS, type TaskAct } from "./names";
import { actOn } from "./tasks";

interface Props {
  ids: string[];
  acts: TaskAct[];
  done: () => void;
}

export function TaskActs({ ids, acts, done }: Props) {
  const [asked, setAsked] = useState<TaskAct>();
  const allowed = acts.filter((act) => may(ACTS[act].needs));
  const what = ids.length === 1 ? "this task" : count(ids.length, "task");
  return (
    <>
      {allowed.map((act) => (
        <button key={act} type="button" class="btn" onClick={() => setAsked(act)}>
          <Icon name={ACTS[act].icon} />
          {ACTS[act].verb}
        </button>
      ))}
      {asked && (
        <Confirm
          title={`${ACTS[asked].verb} ${what}?`}
          act={ACTS[asked].verb}
          danger={ACTS[asked].danger}
          close={() => setAsked(undefined)}
          run={async (reason) => {
            const text = await actOn(asked, ids, reason);
            done();
            return text;
          }}
        >
          <p>{ACTS[asked].means}</p>
        </Confirm>
      )}
    </>
  );
}
