// The lines below the first one of a stored error: its sources, and other lines of its message.

const LABEL = /^\s*caused by: /;

/** Returns a line without the label that a stored source has, and whether it has one. */
export function cause(line: string): { isSource: boolean; text: string } {
  return { isSource: LABEL.test(line), text: line.replace(LABEL, "") };
}
