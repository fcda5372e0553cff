// A question above the page. Updates are held back while it is open.

import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { useHold } from "../state/hold";
import { Icon } from "./Icon";

interface Props {
  title: string;
  close: () => void;
  children: ComponentChildren;
  class?: string;
}

export function Dialog({ title, close, children, class: name = "" }: Props) {
  const id = useId();
  const element = useRef<HTMLDialogElement>(null);
  useHold("a dialog is open");
  // Before the next key arrives: what is typed at once belongs to the dialog.
  useLayoutEffect(() => {
    const before = document.activeElement;
    const dialog = element.current;
    dialog?.showModal();
    return () => {
      // Nothing behind an open dialog can have the focus.
      dialog?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      class={`dialog ${name}`}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
    >
      <header class="dialog-head">
        <h2 id={id}>{title}</h2>
        <button type="button" class="btn is-icon is-plain" aria-label="Close" onClick={close}>
          <Icon name="close" />
        </button>
      </header>
      {children}
    </dialog>
  );
}
