// The notes about acts.

import { dismiss, notes } from "../state/notes";
import { Icon } from "../ui/Icon";
import { Text } from "../ui/Text";

export function Notes() {
  return (
    <div class="notes" role="status" aria-live="polite">
      {notes.value.map((note) => (
        <div key={note.id} class={`note is-${note.level}`}>
          <Icon name={note.level === "ok" ? "check" : "warn"} />
          <Text value={note.text} max={600} />
          <button
            type="button"
            class="btn is-icon is-plain"
            aria-label="Dismiss"
            onClick={() => dismiss(note.id)}
          >
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}
