// The end of a list: how much of it is shown, and the way to the rest.

import type { Pages } from "../api/pages";
import { short, whole } from "../text/format";

interface Props<Row> {
  of: Pages<Row>;
  /** What the rows are, in the plural. */
  noun: string;
}

/** Whether the server looked at more than it found. */
function isSearch<Row>({ rows, scanned }: Pages<Row>): boolean {
  return scanned !== undefined && scanned > (rows?.length ?? 0);
}

const SINGULAR: Record<string, string> = { entries: "entry", processes: "process" };

function counted(rows: number, noun: string): string {
  return `${whole(rows)} ${rows === 1 ? (SINGULAR[noun] ?? noun.replace(/s$/, "")) : noun}`;
}

function shown<Row>({ of, noun }: Props<Row>): string {
  const rows = of.rows?.length ?? 0;
  if (isSearch(of) && of.scanned !== undefined) {
    const total = of.total === undefined ? "" : ` of ${short(of.total)}`;
    return `${whole(rows)} found, scanned ${whole(of.scanned)}${total}`;
  }
  return of.total === undefined
    ? counted(rows, noun)
    : `${whole(rows)} of ${counted(of.total, noun)}`;
}

export function More<Row>(props: Props<Row>) {
  const { of } = props;
  if (of.rows === undefined) return null;
  return (
    <div class="more">
      <span class="num" role="status">
        {shown(props)}
      </span>
      {of.more && (
        <button type="button" class="btn" disabled={of.isLoading} onClick={() => void of.more?.()}>
          {of.isLoading ? "Loading" : isSearch(of) ? "Go on" : "Show more"}
        </button>
      )}
      {of.isLong && (
        <>
          <span class="dim">Not updated while more than one page is shown.</span>
          <button type="button" class="btn is-plain" onClick={() => void of.refresh()}>
            Back to the first page
          </button>
        </>
      )}
    </div>
  );
}
