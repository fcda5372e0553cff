// The frame around each page.

import { useEffect, useRef, useState } from "preact/hooks";
import { loadSession, needsSignIn, session } from "../api/session";
import { get } from "../api/client";
import { takesToken } from "../api/signed";
import { overview, takeOverview } from "../api/events";
import type { Overview } from "../api/types";
import { overlay } from "../state/keys";
import { route } from "../state/route";
import { plain } from "../text/marks";
import { Problem, Waiting } from "../ui/Await";
import { Boundary } from "../ui/Boundary";
import { page, title } from "../pages/pages";
import { Header } from "./Header";
import { Help } from "./Help";
import { Nav } from "./Nav";
import { Notes } from "./Notes";
import { Old } from "./Old";
import { Palette } from "./Palette";
import { SignIn, Unknown } from "./SignIn";

function useSession(): { error: unknown; again: () => void } {
  const [error, setError] = useState<unknown>();
  const load = () => {
    setError(undefined);
    loadSession().catch(setError);
  };
  useEffect(load, []);
  return { error, again: load };
}

/** The stream brings the overview later; the first page should not wait for it. */
function useFirstOverview(isIn: boolean): void {
  useEffect(() => {
    if (!isIn || overview.peek() !== undefined) return;
    get<Overview>("overview").then(takeOverview, () => undefined);
  }, [isIn]);
}

/** Moves the focus to a page that has been opened, and names it. */
function useArrival(): void {
  const is = route.value;
  const place = is.parts.join("/");
  const first = useRef(true);
  useEffect(() => {
    document.title = `${plain(title(is.parts)).slice(0, 100)} · Optimus`;
    if (first.current) {
      first.current = false;
      return;
    }
    scrollTo(0, 0);
    document.querySelector<HTMLElement>("#main")?.focus({ preventScroll: true });
  }, [place]);
}

export function Shell() {
  const { error, again } = useSession();
  const isIn = session.value !== undefined && !needsSignIn.value;
  const [isOpen, setOpen] = useState(false);
  useFirstOverview(isIn);
  useArrival();
  if (needsSignIn.value) return takesToken() ? <SignIn /> : <Unknown />;
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("main")?.focus();
        }}
      >
        Skip to the page
      </a>
      <Header isOpen={isOpen} toggle={() => setOpen(!isOpen)} />
      <Nav isOpen={isOpen} close={() => setOpen(false)} />
      <main id="main" tabIndex={-1}>
        {isIn && <Old />}
        {error !== undefined && session.value === undefined ? (
          <Problem error={error} again={again} />
        ) : isIn ? (
          <Boundary key={route.value.parts.join("/")}>{page(route.value.parts)}</Boundary>
        ) : (
          <Waiting />
        )}
      </main>
      <Notes />
      {overlay.value === "palette" && <Palette />}
      {overlay.value === "help" && <Help />}
    </>
  );
}
