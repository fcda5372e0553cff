// The bar above each page: where the reader is, search, whether data is live, who is signed in.

import { liveness, overview } from "../api/events";
import { session, signOut } from "../api/session";
import { attempt } from "../state/notes";
import { overlay } from "../state/keys";
import { choose, type Theme, theme } from "../state/theme";
import { Icon, type IconName, Logo } from "../ui/Icon";
import { Text } from "../ui/Text";

const NEXT: Record<Theme, Theme> = { auto: "light", light: "dark", dark: "auto" };
const ICONS: Record<Theme, IconName> = { auto: "auto", light: "sun", dark: "moon" };

function ThemeSwitch() {
  const is = theme.value;
  const label = `Colours: ${is === "auto" ? "as the system" : is}. Change to ${NEXT[is]}`;
  return (
    <button
      type="button"
      class="btn is-icon is-plain"
      aria-label={label}
      title={label}
      onClick={() => choose(NEXT[is])}
    >
      <Icon name={ICONS[is]} />
    </button>
  );
}

function Live() {
  const { kind, text } = liveness.value;
  return (
    <span class={`live is-${kind}`} title={text}>
      <span class="live-dot" aria-hidden="true" />
      <span class="live-text">{text}</span>
    </span>
  );
}

function Who() {
  const is = session.value;
  if (is === undefined) return null;
  return (
    <span class="who">
      {is.identity !== null && (
        <b>
          <Text value={is.identity} max={40} />
        </b>
      )}
      <span class="chip">{is.role}</span>
      {is.auth === "token" && (
        <button
          type="button"
          class="btn is-icon is-plain"
          aria-label="Sign out"
          title="Sign out"
          onClick={() => void attempt(async () => (await signOut(), undefined))}
        >
          <Icon name="exit" />
        </button>
      )}
    </span>
  );
}

export function Header({ isOpen, toggle }: { isOpen: boolean; toggle: () => void }) {
  const namespace = session.value?.namespace ?? overview.value?.namespace;
  return (
    <header class="top">
      <button
        type="button"
        class="btn is-icon is-plain menu"
        aria-label="Menu"
        aria-expanded={isOpen}
        aria-controls="nav"
        onClick={toggle}
      >
        <Icon name={isOpen ? "close" : "menu"} />
      </button>
      <a class="brand" href="#/overview" aria-label="Optimus: overview">
        <Logo />
        <span class="brand-name">Optimus</span>
      </a>
      {namespace !== undefined && (
        <span class="namespace mono" title="Namespace">
          <Text value={namespace} max={60} />
        </span>
      )}
      <button type="button" class="find" onClick={() => (overlay.value = "palette")}>
        <Icon name="search" />
        <span class="find-text">Search tasks, queues, failures</span>
        <kbd>/</kbd>
      </button>
      <Live />
      <Who />
      <ThemeSwitch />
      <button
        type="button"
        class="btn is-icon is-plain help-button"
        aria-label="Keys"
        title="Keys"
        onClick={() => (overlay.value = "help")}
      >
        ?
      </button>
    </header>
  );
}
