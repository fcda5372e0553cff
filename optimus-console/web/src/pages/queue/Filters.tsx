// The fields that narrow down the tasks. They apply when the reader presses Enter or leaves a
// field, because each change costs a scan.

import { useLayoutEffect, useState } from "preact/hooks";
import { refine } from "../../state/route";
import { Icon } from "../../ui/Icon";
import { mistake } from "./filter";

const FIELDS = [
  { name: "task", label: "Task", hint: "welcome" },
  { name: "header", label: "Header", hint: "tenant=eu" },
  { name: "age", label: "Older than", hint: "5m" },
  { name: "text", label: "Text", hint: "id, name, header or error" },
] as const;

export function Filters({ asked }: { asked: Record<string, string> }) {
  const [typed, setTyped] = useState<Record<string, string>>({ ...asked });
  const [typedWrong, setTypedWrong] = useState<string>();
  // A link, such as one of the search, changes the filter of an open page.
  useLayoutEffect(() => {
    setTyped({ ...asked });
    setTypedWrong(undefined);
  }, [JSON.stringify(FIELDS.map(({ name }) => asked[name]))]);
  const apply = (values: Record<string, string>) => {
    const wrong = mistake(values);
    setTypedWrong(wrong);
    if (wrong === undefined)
      refine(Object.fromEntries(FIELDS.map(({ name }) => [name, values[name]?.trim()])));
  };
  const error = typedWrong ?? mistake(asked);
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
      {error !== undefined && (
        <p class="form-error" role="alert">
          {error}
        </p>
      )}
      <button class="hidden">Apply the filters</button>
    </form>
  );
}
