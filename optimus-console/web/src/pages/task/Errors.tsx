// The errors of a task's attempts, newest first, with their causes.

import type { ErrorRow } from "../../api/types";
import { Ago } from "../../ui/Ago";
import { Copy } from "../../ui/Copy";
import { Panel } from "../../ui/Panel";
import { Lines, Text } from "../../ui/Text";
import { write } from "../../state/hash";
import { cause } from "../../text/cause";

function Causes({ of }: { of: string[] }) {
  if (of.length === 0) return null;
  return (
    <ol class="causes" aria-label="Causes">
      {of.map(cause).map(({ isSource, text }, index) => (
        <li key={index}>
          {isSource && <span class="dim">caused by </span>}
          <Lines value={text} max={4000} />
        </li>
      ))}
    </ol>
  );
}

function One({ row, isNewest }: { row: ErrorRow; isNewest: boolean }) {
  return (
    <details class="error" open={isNewest}>
      <summary>
        <span class="tag is-bad">
          <Text value={row.reason} max={40} />
        </span>
        <span>attempt {row.attempt}</span>
        <Ago at={row.at_ms} />
        <span class="error-line dim">
          <Text value={row.message} max={160} />
        </span>
      </summary>
      <pre class="code is-error" tabIndex={0} aria-label={`Error of attempt ${row.attempt}`}>
        <Lines value={row.message} max={20_000} />
      </pre>
      <Causes of={row.causes} />
      <p class="error-foot dim">
        {row.worker !== null && (
          <span>
            on <Text value={row.worker} max={80} class="mono" />
          </span>
        )}
        {row.fingerprint !== null && (
          <a href={write(["failures"], { fingerprint: row.fingerprint })}>failures like this</a>
        )}
        <Copy text={[row.message, ...row.causes].join("\n")} label="Copy the error" />
      </p>
    </details>
  );
}

export function Errors({ rows }: { rows: ErrorRow[] }) {
  if (rows.length === 0) return null;
  const newest = [...rows].sort((a, b) => b.at_ms - a.at_ms);
  return (
    <Panel title="Errors" aside={<span class="dim num">{rows.length}</span>}>
      {newest.map((row, index) => (
        <One key={`${row.attempt} ${row.at_ms}`} row={row} isNewest={index === 0} />
      ))}
    </Panel>
  );
}
