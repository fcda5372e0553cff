// What can be wished of a process: to take no tasks, to take them again, to stop, to use other
// numbers of slots.

import { useId, useState } from "preact/hooks";
import { path, post } from "../../api/client";
import { may } from "../../api/session";
import type { ProcessRow } from "../../api/types";
import { Confirm } from "../../ui/Confirm";

type Wish = "quiet" | "resume" | "stop" | "slots";

const WORDS: Record<Wish, { verb: string; means: string; danger?: boolean }> = {
  quiet: { verb: "Quiet", means: "It starts no further tasks. Those that run go on." },
  resume: { verb: "Resume", means: "It starts tasks again." },
  stop: {
    verb: "Stop",
    means: "It starts no further tasks, waits for those that run, and ends.",
    danger: true,
  },
  slots: { verb: "Slots", means: "It runs at most this many tasks at a time." },
};

interface Props {
  row: ProcessRow;
  done: () => void;
}

export function ProcessActs({ row, done }: Props) {
  const [wish, setWish] = useState<Wish>();
  const [slots, setSlots] = useState(1);
  const field = useId();
  if (!may("operate")) return null;
  const ask = (one: Wish) => {
    setSlots(row.slots ?? row.concurrency ?? 1);
    setWish(one);
  };
  const offered: Wish[] = [row.slots === 0 ? "resume" : "quiet", "slots", "stop"];
  return (
    <>
      {offered.map((one) => (
        <button key={one} type="button" class="btn is-small" onClick={() => ask(one)}>
          {WORDS[one].verb}
        </button>
      ))}
      {wish && (
        <Confirm
          title={`${WORDS[wish].verb}: process ${row.pid}`}
          act={WORDS[wish].verb === "Slots" ? "Set the slots" : WORDS[wish].verb}
          danger={WORDS[wish].danger ?? false}
          close={() => setWish(undefined)}
          run={async (reason) => {
            const body = { act: wish, reason, ...(wish === "slots" ? { slots } : {}) };
            const answer = await post<{ text?: string } | undefined>(
              `${path("processes", row.id)}/act`,
              body,
            );
            done();
            return answer?.text ?? "The process will follow within seconds.";
          }}
        >
          <p>{WORDS[wish].means}</p>
          {wish === "slots" && (
            <div class="field">
              <label for={field}>Slots</label>
              <input
                id={field}
                type="number"
                min={0}
                max={row.concurrency ?? 100_000}
                value={slots}
                onInput={(event) => setSlots(Math.max(0, event.currentTarget.valueAsNumber || 0))}
              />
            </div>
          )}
        </Confirm>
      )}
    </>
  );
}
