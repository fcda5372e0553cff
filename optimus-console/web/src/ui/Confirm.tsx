// Asks before an act, with a reason that goes into the audit.

import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";
import { words } from "../api/client";
import { say } from "../state/notes";
import { Dialog } from "./Dialog";

interface Props {
  title: string;
  /** The word on the button: what happens. */
  act: string;
  danger?: boolean;
  reasonHint?: string | undefined;
  run: (reason: string | undefined) => Promise<string | undefined>;
  close: () => void;
  children?: ComponentChildren;
}

export function Confirm({ title, act, danger, reasonHint, run, close, children }: Props) {
  const [reason, setReason] = useState("");
  const [error, setError] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    try {
      const text = await run(reason.trim() || undefined);
      if (text !== undefined) say(text);
      close();
    } catch (problem) {
      setError(words(problem));
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} close={close}>
      <form class="form" onSubmit={(event) => void submit(event)}>
        {children}
        <Reason value={reason} change={setReason} hint={reasonHint} />
        {error !== undefined && (
          <p class="form-error" role="alert">
            {error}
          </p>
        )}
        <footer class="dialog-foot">
          <button type="button" class="btn" onClick={close}>
            Back
          </button>
          <button class={`btn ${danger ? "is-danger" : "is-main"}`} disabled={isBusy}>
            {act}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

interface ReasonProps {
  value: string;
  change: (value: string) => void;
  hint?: string | undefined;
}

export function Reason({ value, change, hint = "For the audit, such as a ticket" }: ReasonProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>Reason</label>
      <input
        id={id}
        value={value}
        maxLength={500}
        placeholder={hint}
        autofocus
        autocomplete="off"
        onInput={(event) => change(event.currentTarget.value)}
      />
    </div>
  );
}
