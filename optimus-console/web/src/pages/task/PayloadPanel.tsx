// Arguments or a result, as text. JSON is indented as text, too: nothing parses it.

import { useMemo, useState } from "preact/hooks";
import type { Payload } from "../../api/types";
import { indented, type Token } from "../../text/json";
import { Empty } from "../../ui/Await";
import { Copy } from "../../ui/Copy";
import { Panel } from "../../ui/Panel";
import { Tabs } from "../../ui/Tabs";
import { Lines } from "../../ui/Text";

/** Longer text is shown as it is, because each coloured piece costs an element. */
const MOST_INDENTED = 60_000;

type Form = "indented" | "raw";
const FORMS: { value: Form; text: string }[] = [
  { value: "indented", text: "Indented" },
  { value: "raw", text: "Raw" },
];

interface Props {
  title: string;
  payload: Payload | null;
  absent: string;
}

export function PayloadPanel({ title, payload, absent }: Props) {
  const [form, setForm] = useState<Form>("indented");
  const text = payload?.text ?? "";
  const tokens = useMemo(() => (text.length <= MOST_INDENTED ? indented(text) : undefined), [text]);
  const isShown = payload !== null && !payload.hidden && payload.text !== null;
  const aside = isShown && (
    <>
      {tokens && <Tabs label="Form" look="segments" of={FORMS} value={form} choose={setForm} />}
      <Copy text={text} label={`Copy: ${title}`} />
    </>
  );
  return (
    <Panel title={title} aside={aside || undefined}>
      {payload === null && <Empty>{absent}</Empty>}
      {payload?.hidden && <Empty>Hidden: this console doesn't show payloads to your role.</Empty>}
      {isShown && (
        <>
          <pre class="code" tabIndex={0} aria-label={title}>
            {tokens && form === "indented" ? <Tokens of={tokens} /> : <Lines value={text} />}
          </pre>
          <Notes payload={payload} />
        </>
      )}
    </Panel>
  );
}

function Tokens({ of }: { of: Token[] }) {
  return (
    <>
      {of.map((token, index) =>
        token.kind === "space" ? (
          token.text
        ) : (
          <span key={index} class={`json-${token.kind}`}>
            <Lines value={token.text} />
          </span>
        ),
      )}
    </>
  );
}

function Notes({ payload }: { payload: Payload }) {
  if (!payload.redacted && !payload.truncated) return null;
  return (
    <p class="code-note dim">
      {payload.redacted && "Parts are redacted. "}
      {payload.truncated && "The text is cut; the command line shows all of it."}
    </p>
  );
}
