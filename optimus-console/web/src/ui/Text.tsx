// Shows text of unknown origin: as text, isolated from the direction of the text around it, and
// with what can't be seen made visible.

import { cut, pieces, plain } from "../text/marks";

/** What a cell shows at most. The title has more. */
const CELL = 300;
const TITLE = 1000;

interface Props {
  value: string | null | undefined;
  /** The most UTF-16 units that are shown. */
  max?: number;
  class?: string;
}

function Pieces({ value, keep }: { value: string; keep?: "lines" }) {
  return (
    <>
      {pieces(value, keep).map((piece, index) =>
        piece.mark ? (
          <span key={index} class="mark" title={piece.name}>
            {piece.text}
          </span>
        ) : (
          piece.text
        ),
      )}
    </>
  );
}

/** One line of text. */
export function Text({ value, max = CELL, class: name = "" }: Props) {
  if (value === null || value === undefined) return <span class="dim">–</span>;
  if (value === "") return <span class="dim">(empty)</span>;
  const shown = cut(value, max);
  const more = value.length > shown.length;
  return (
    <bdi class={`text ${name}`} title={value.length > 24 ? plain(cut(value, TITLE)) : undefined}>
      <Pieces value={shown} />
      {more && "…"}
    </bdi>
  );
}

/** Text with its lines. */
export function Lines({ value, max = 200_000, class: name = "" }: Props) {
  const shown = cut(value ?? "", max);
  const left = (value ?? "").length - shown.length;
  return (
    <bdi class={`lines ${name}`}>
      <Pieces value={shown} keep="lines" />
      {left > 0 && <span class="dim"> … and {left} more characters</span>}
    </bdi>
  );
}
