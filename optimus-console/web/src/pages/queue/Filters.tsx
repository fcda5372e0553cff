// The fields that narrow down the tasks. They apply when the reader presses Enter or leaves a
// field, because each change costs a scan.

import { useState } from "preact/hooks";
import { refine } from "../../state/route";
import { Icon } from "../../ui/Icon";
import { readAge } from "./filter";

const FIELDS = [
  { name: "task", label: "Task", hint: "welcome" },
  { name: "header", label: "Header", hint: "tenant=eu" },
  { name: "age", label: "Older than", hint: "5m" },
  { name: "text", label: "Text", hint: "in arguments or errors" },
] as const;

export function Filters({ asked }: { asked: Record<string, string> }) {
  const [typed, setTyped] = useState<Record<string, string>>({ ...asked });
  const [error, setError] = useState("");
  const apply = (values: Record<string, string>) => {
    const age = values["age"] ?? "";
    const header = values["header"] ?? "";
    if (age.trim() !== "" && readAge(age) === undefined) {
      setError("Write an age as 90s, 5m, 2h or 7d.");
    } else if (header !== "" && !header.includes("=")) {
      setError("Write a header as name=value.");
    } else {
      setError("");
      refine(Object.fromEntries(FIELDS.map(({ name }) => [name, values[name]?.trim()])));
    }
  };
  const isSet = FIELDS.some(({ name }) => asked[name]);
  return (
    <form
      class="filters"
      role="search"
      aria-label="Filter the tasks"
      onSubmit={(event) => {
        event.preventDefault();
        apply(typed);
      }}
    >
      {FIELDS.map(({ name, label, hint }) => (
        <label key={name} class={`filter is-${name}`}>
          <span>{label}</span>
          <input
            value={typed[name] ?? ""}
            placeholder={hint}
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => setTyped({ ...typed, [name]: event.currentTarget.value })}
            onBlur={() => apply(typed)}
          />
        </label>
      ))}
      {isSet && (
        <button
          type="button"
          class="btn is-plain"
          onClick={() => {
            setTyped({});
            apply({});
          }}
        >
          <Icon name="close" />
          Clear filters
        </button>
      )}
      {error !== "" && (
        <p class="form-error" role="alert">
          {error}
        </p>
      )}
      <button class="hidden">Apply the filters</button>
    </form>
  );
}
