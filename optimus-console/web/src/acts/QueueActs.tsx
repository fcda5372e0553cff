// Pauses and resumes a queue.

import { useState } from "preact/hooks";
import { may } from "../api/session";
import { path, post } from "../api/client";
import { attempt } from "../state/notes";
import { Confirm } from "../ui/Confirm";
import { Icon } from "../ui/Icon";

interface Props {
  queue: string;
  isPaused: boolean;
  done: () => void;
}

export function QueueActs({ queue, isPaused, done }: Props) {
  const [isAsked, setAsked] = useState(false);
  if (!may("operate")) return null;
  const resume = async () => {
    await post(`${path("queues", queue)}/resume`);
    done();
    return "The queue runs again.";
  };
  if (isPaused) {
    return (
      <button type="button" class="btn is-main" onClick={() => void attempt(resume)}>
        <Icon name="play" />
        Resume
      </button>
    );
  }
  return (
    <>
      <button type="button" class="btn" onClick={() => setAsked(true)}>
        <Icon name="pause" />
        Pause
      </button>
      {isAsked && (
        <Confirm
          title="Pause this queue?"
          act="Pause"
          reasonHint="Shown to everybody, such as a ticket"
          close={() => setAsked(false)}
          run={async (reason) => {
            await post(`${path("queues", queue)}/pause`, { reason });
            done();
            return "The queue is paused.";
          }}
        >
          <p>Workers start no further tasks of this queue. Tasks that run go on.</p>
        </Confirm>
      )}
    </>
  );
}
