// Finds pages and, by asking the server, tasks, queues, failures and workers.

import { useEffect, useState } from "preact/hooks";
import { overlay } from "../state/keys";
import { open } from "../state/route";
import { inner, write } from "../state/hash";
import { Dialog } from "../ui/Dialog";
import { Text } from "../ui/Text";
import { useSearch } from "../pages/search/useSearch";
import { overview } from "../api/events";
import { may, seesAll } from "../api/session";
import { offered } from "./places";

interface Entry {
  kind: string;
  text: string;
  /** What it is, if the text is only its name. */
  more?: string;
  href: string;
}

function places(typed: string): Entry[] {
  const all = offered(overview.value, { seesAll: seesAll.value, acts: may("operate") }).flat();
  const wanted = all.filter((place) => place.text.toLowerCase().includes(typed.toLowerCase()));
  return wanted.map((place) => ({ kind: "page", text: place.text, href: write([place.page]) }));
}

function useEntries(typed: string): Entry[] {
  const { hits } = useSearch(typed);
  const found = (hits?.hits ?? []).flatMap((hit) => {
    const href = inner(hit.href);
    return href === undefined
      ? []
      : [{ kind: hit.kind.replace("_", " "), text: hit.id, more: hit.text, href }];
  });
  const scan = (hits?.scan ?? []).slice(0, 5).flatMap((one) => {
    const href = inner(one.href);
    return href === undefined
      ? []
      : [{ kind: "scan", text: `Scan ${one.queue} for this text`, href }];
  });
  const all = { kind: "search", text: "All results", href: write(["search"], { q: typed }) };
  return [...places(typed), ...found, ...(typed === "" ? [] : [...scan, all])].slice(0, 40);
}

export function Palette() {
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const entries = useEntries(typed.trim());
  const chosen = Math.min(at, entries.length - 1);
  const close = () => {
    overlay.value = "";
  };
  const go = (entry: Entry | undefined) => {
    if (entry === undefined) return;
    close();
    open(entry.href);
  };
  useEffect(() => {
    document.getElementById(`entry-${chosen}`)?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  const pressed = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) setAt((chosen + step + entries.length) % Math.max(1, entries.length));
    else if (event.key === "Enter") go(entries[chosen]);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Search" close={close} class="palette">
      <input
        class="palette-field"
        role="combobox"
        aria-label="Search"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={entries.length > 0 ? `entry-${chosen}` : undefined}
        placeholder="Id, business id, queue, error, host"
        autofocus
        autocomplete="off"
        spellcheck={false}
        value={typed}
        onInput={(event) => {
          setTyped(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={pressed}
      />
      <ul id="palette-list" role="listbox" aria-label="Results">
        {entries.map((entry, index) => (
          <li
            key={`${entry.kind} ${entry.href}`}
            id={`entry-${index}`}
            role="option"
            aria-selected={index === chosen}
            onClick={() => go(entry)}
          >
            <span class="palette-kind">{entry.kind}</span>
            <Text value={entry.text} max={200} />
            {entry.more && <Text value={entry.more} max={200} class="dim" />}
          </li>
        ))}
      </ul>
      <p class="palette-foot dim">
        <kbd>↑</kbd> <kbd>↓</kbd> choose · <kbd>Enter</kbd> open · <kbd>Esc</kbd> close
      </p>
    </Dialog>
  );
}
