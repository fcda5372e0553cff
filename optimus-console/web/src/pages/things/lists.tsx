// Facts of which a thing can have many, such as what is wrong with each slice: a list in one cell.

import type { ComponentChildren } from "preact";
import type { Fact, ThingRow } from "../../api/types";

/** A table with more columns than this can't be read. */
const MOST_COLUMNS = 10;
/** How many entries are seen at once. */
const MOST_ENTRIES = 4;

export interface FactList {
  head: string;
  names: string[];
}

/** The `slice` of `slice 2`. */
function series(name: string): string | undefined {
  return /^(.+) \d+$/.exec(name)?.[1];
}

/** Returns the facts that have a column each, and the lists that have the others. */
export function arranged(rows: ThingRow[]): { single: string[]; lists: FactList[] } {
  const names = [...new Set(rows.flatMap((row) => row.facts.map((fact) => fact.name)))];
  const single = names.filter((name) => series(name) === undefined);
  const heads = [...new Set(names.map(series))].filter((head) => head !== undefined);
  const lists = heads.map((head) => ({
    head,
    names: names.filter((name) => series(name) === head),
  }));
  const rest = single.slice(MOST_COLUMNS);
  if (rest.length > 0) lists.push({ head: "more", names: rest });
  return { single: single.slice(0, MOST_COLUMNS), lists };
}

export function listed(row: ThingRow, list: FactList): Fact[] {
  return row.facts.filter((fact) => list.names.includes(fact.name));
}

interface Props {
  of: FactList;
  facts: Fact[];
  cell: (fact: Fact) => ComponentChildren;
}

function Entries({ of, facts, cell }: Props) {
  const label = (name: string) =>
    series(name) === of.head ? name.slice(of.head.length + 1) : name;
  return (
    <ul class="fact-list">
      {facts.map((fact) => (
        <li key={fact.name}>
          <span class="dim">{label(fact.name)}</span> {cell(fact)}
        </li>
      ))}
    </ul>
  );
}

export function Facts({ facts, ...others }: Props) {
  const rest = facts.slice(MOST_ENTRIES);
  if (facts.length === 0) return <span class="dim">–</span>;
  return (
    <div class="facts-cell">
      <Entries facts={facts.slice(0, MOST_ENTRIES)} {...others} />
      {rest.length > 0 && (
        <details class="fact-rest">
          <summary>and {rest.length} more</summary>
          <Entries facts={rest} {...others} />
        </details>
      )}
    </div>
  );
}
