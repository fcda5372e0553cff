// A table of rows with columns. It keeps the focus where the reader has put it when rows move.

import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { Icon } from "./Icon";
import { useKeptFocus } from "./focus";

export interface Column<Row> {
  /** Names the column for sorting. */
  name: string;
  head: string;
  cell: (row: Row) => ComponentChildren;
  /** Numbers are at the right; acts stay in sight on a narrow screen. */
  kind?: "number" | "text" | "acts";
  /** Hidden on a narrow screen, unless the rows are cards there. */
  wide?: boolean;
  /** On a card the value stands without the name of its column. */
  bare?: boolean;
  /** Whether a row has no value here: a card leaves it out. */
  isEmpty?: (row: Row) => boolean;
  /** Takes the space that is left. */
  grow?: boolean;
}

export interface Sorting {
  by: string;
  /** The columns that can be sorted by, and the direction of each. */
  can: Record<string, "ascending" | "descending">;
  choose: (name: string) => void;
}

interface Props<Row> {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  id: (row: Row) => string;
  sorting?: Sorting;
  /** Makes rows selectable. */
  selection?: Selection;
  /** On a narrow screen each row is a card with all its values, below its first one. */
  cards?: boolean;
  /** Draws attention to a row. */
  tone?: (row: Row) => string | undefined;
}

export interface Selection {
  has: (id: string) => boolean;
  toggle: (id: string) => void;
  all: (ids: string[]) => void;
}

function classes<Row>(column: Column<Row>, row?: Row): string {
  const names = [
    row !== undefined && column.isEmpty?.(row) && "is-none",
    column.kind === "number" && "number",
    column.kind === "acts" && "is-acts",
    column.wide && "wide",
    column.grow && "grow",
  ];
  return names.filter(Boolean).join(" ");
}

function Head<Row>({ column, sorting }: { column: Column<Row>; sorting?: Sorting | undefined }) {
  const direction = sorting?.can[column.name];
  const isChosen = sorting?.by === column.name;
  return (
    <th scope="col" class={classes(column)} aria-sort={isChosen ? direction : undefined}>
      {direction === undefined ? (
        column.head || <span class="hidden">Actions</span>
      ) : (
        <button type="button" class="sort" onClick={() => sorting?.choose(column.name)}>
          {column.head}
          {isChosen && <Icon name={direction === "ascending" ? "up" : "down"} />}
        </button>
      )}
    </th>
  );
}

export function Table<Row>(props: Props<Row>) {
  const { label, columns, rows, id, sorting, selection, tone, cards } = props;
  const region = useRef<HTMLDivElement>(null);
  useKeptFocus(region);
  const ids = rows.map(id);
  const isAll = ids.length > 0 && selection !== undefined && ids.every(selection.has);
  return (
    <div class="scroll" role="group" aria-label={label} tabIndex={0} ref={region}>
      <table class={cards ? "is-cards" : undefined}>
        <caption class="hidden">{label}</caption>
        <thead>
          <tr>
            {selection && (
              <th scope="col" class="check">
                <input
                  type="checkbox"
                  aria-label="Select all rows of this page"
                  checked={isAll}
                  onChange={() => selection.all(isAll ? [] : ids)}
                />
              </th>
            )}
            {columns.map((column) => (
              <Head key={column.name} column={column} sorting={sorting} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => {
            const key = ids[index] ?? "";
            const isSelected = selection?.has(key) ?? false;
            const name = [isSelected && "selected", tone?.(row)].filter(Boolean).join(" ");
            return (
              <tr key={key} data-row tabIndex={-1} class={name || undefined}>
                {selection && (
                  <td class="check">
                    <input
                      type="checkbox"
                      aria-label={`Select ${key}`}
                      checked={isSelected}
                      onChange={() => selection.toggle(key)}
                    />
                  </td>
                )}
                {columns.map((column, place) => (
                  <td
                    key={column.name}
                    class={classes(column, row) || undefined}
                    data-head={cards && place > 0 && !column.bare ? column.head : undefined}
                  >
                    {column.cell(row)}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
