// A part of a page with a heading.

import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

interface Props {
  title: string;
  /** Beside the heading: buttons, a link, a count. */
  aside?: ComponentChildren;
  children: ComponentChildren;
  class?: string;
}

export function Panel({ title, aside, children, class: name = "" }: Props) {
  const id = useId();
  return (
    <section class={`panel ${name}`} aria-labelledby={id}>
      <header class="panel-head">
        <h2 id={id}>{title}</h2>
        {aside !== undefined && <div class="panel-aside">{aside}</div>}
      </header>
      {children}
    </section>
  );
}
