// The numbers of a chart as a table, newest first.

import { useState } from "preact/hooks";
import { Dialog } from "../ui/Dialog";
import { type Column, Table } from "../ui/Table";
import type { Line } from "./options";

interface Props {
  title: string;
  times: number[];
  lines: Line[];
  format: (value: number) => string;
  when: (at: number) => string;
}

export function Twin({ title, times, lines, format, when }: Props) {
  const [isOpen, setOpen] = useState(false);
  const columns: Column<number>[] = [
    { name: "when", head: "Time", cell: (index) => when(times[index] ?? 0) },
    ...lines.map((line): Column<number> => ({
      name: line.label,
      head: line.label,
      kind: "number",
      cell: (index) => {
        const value = line.values[index];
        return value === null || value === undefined ? "–" : format(value);
      },
    })),
  ];
  return (
    <>
      <button
        type="button"
        class="link"
        aria-label={`${title} as a table`}
        onClick={() => setOpen(true)}
      >
        As a table
      </button>
      {isOpen && (
        <Dialog title={title} close={() => setOpen(false)}>
          <Table
            label={title}
            columns={columns}
            rows={times.map((_, index) => index).reverse()}
            id={(index) => String(times[index])}
          />
        </Dialog>
      )}
    </>
  );
}
