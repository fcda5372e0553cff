// Copies text to the clipboard.

import { useState } from "preact/hooks";
import { say } from "../state/notes";
import { Icon } from "./Icon";

const SHOWN_MS = 1500;

export function Copy({ text, label }: { text: string; label: string }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      setTimeout(() => setDone(false), SHOWN_MS);
    } catch {
      say("The browser lets only pages over HTTPS or on this machine copy.", "problem");
    }
  };
  return (
    <button
      type="button"
      class="btn is-icon is-plain"
      aria-label={label}
      title={label}
      onClick={() => void copy()}
    >
      <Icon name={isDone ? "check" : "copy"} />
    </button>
  );
}
