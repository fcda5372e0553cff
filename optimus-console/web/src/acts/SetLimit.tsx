// Asks for a limit, and sets it instead of the one that tasks declare.

import { useId, useState } from "preact/hooks";
import { post } from "../api/client";
import type { ThingRow } from "../api/types";
import { Confirm } from "../ui/Confirm";
import { Text } from "../ui/Text";
import { fieldsOf, limitOf, limitWords } from "./limit";

const PLACES = [
  { kind: "queue", text: "the whole queue", name: undefined },
  { kind: "task", text: "tasks of a name", name: "Name of the task" },
  { kind: "limit", text: "a named limit", name: "Name of the limit" },
  { kind: "lane", text: "a lane", name: "Key of the lane" },
] as const;

interface Props {
  /** The limit that is changed; without it, another one is set. */
  row?: ThingRow | undefined;
  queue?: string | undefined;
  close: () => void;
  done: () => void;
}

interface FieldProps {
  label: string;
  value: string;
  hint: string;
  first?: boolean | undefined;
  change: (value: string) => void;
}

function Field({ label, value, hint, first, change }: FieldProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        value={value}
        maxLength={512}
        placeholder={hint}
        autofocus={first ?? false}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => change(event.currentTarget.value)}
      />
    </div>
  );
}

export function SetLimit({ row, queue, close, done }: Props) {
  const [fields, setFields] = useState(fieldsOf(row));
  const [of, setOf] = useState({ queue: row?.queue ?? queue ?? "", kind: "queue", name: "" });
  const select = useId();
  const place = PLACES.find(({ kind }) => kind === of.kind) ?? PLACES[0];
  const limit = limitOf(fields);
  const change = (name: keyof typeof fields) => (value: string) =>
    setFields({ ...fields, [name]: value });
  const run = async (reason: string | undefined) => {
    if (typeof limit === "string") throw new Error(limit);
    const name = row?.name ?? (of.kind === "queue" ? "queue" : `${of.kind}:${of.name.trim()}`);
    const body = { queue: of.queue.trim(), name, act: "set", limit, reason };
    const answer = await post<{ text?: string } | undefined>("things/limits/act", body);
    done();
    return answer?.text ?? "Done.";
  };
  return (
    <Confirm
      title={row ? "Set this limit?" : "Set a limit"}
      act="Set the limit"
      reasonHint="Shown to everybody, such as a ticket"
      close={close}
      run={run}
    >
      {row && (
        <p>
          <Text value={row.title} max={200} />, queue <Text value={row.queue} max={80} />
        </p>
      )}
      {!row && (
        <>
          <Field
            label="Queue"
            hint="mail"
            value={of.queue}
            first={queue === undefined}
            change={(value) => setOf({ ...of, queue: value })}
          />
          <div class="field">
            <label for={select}>Applies to</label>
            <select
              id={select}
              value={of.kind}
              onChange={(event) => setOf({ ...of, kind: event.currentTarget.value })}
            >
              {PLACES.map(({ kind, text }) => (
                <option key={kind} value={kind}>
                  {text}
                </option>
              ))}
            </select>
          </div>
          {place.name !== undefined && (
            <Field
              label={place.name}
              hint=""
              value={of.name}
              change={(value) => setOf({ ...of, name: value })}
            />
          )}
        </>
      )}
      <Field
        label="Rate"
        hint="100/s, 10/m or 5/h; empty for none"
        value={fields.rate}
        first={row !== undefined || queue !== undefined}
        change={change("rate")}
      />
      <Field
        label="Burst"
        hint="How many may start at once after a pause; empty for the usual"
        value={fields.burst}
        change={change("burst")}
      />
      <Field
        label="At once"
        hint="How many may run at once; empty for no limit"
        value={fields.working}
        change={change("working")}
      />
      <p role="status">{typeof limit === "string" ? limit : limitWords(limit)}</p>
      <p class="dim">
        It replaces what the code declares, also for tasks that wait, until somebody removes it.
      </p>
    </Confirm>
  );
}
