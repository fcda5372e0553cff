// Asks for a token.

import { useEffect, useRef, useState } from "preact/hooks";
import { signIn } from "../api/session";
import { words } from "../api/client";
import { Logo } from "../ui/Icon";

/** A console that takes no token learns from a proxy, or from the browser, who reads. */
export function Unknown() {
  return (
    <main class="sign-in">
      <div class="panel form">
        <h1>
          <Logo /> You are not signed in to Optimus
        </h1>
        <p>This console takes no token. Sign in where it is served, then open it again.</p>
        <button type="button" class="btn is-main" onClick={() => location.reload()}>
          Open it again
        </button>
      </div>
    </main>
  );
}

export function SignIn() {
  const [token, setToken] = useState("");
  const [error, setError] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      await signIn(token.trim());
    } catch (problem) {
      setError(words(problem));
      field.current?.select();
    } finally {
      setBusy(false);
    }
  };
  return (
    <main class="sign-in">
      <form class="panel form" onSubmit={(event) => void submit(event)}>
        <h1>
          <Logo /> Sign in to Optimus
        </h1>
        <div class="field">
          <label for="token">Token</label>
          <input
            id="token"
            ref={field}
            type="password"
            autocomplete="current-password"
            required
            value={token}
            aria-describedby={error === undefined ? undefined : "token-error"}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </div>
        {error !== undefined && (
          <p class="form-error" id="token-error" role="alert">
            {error}
          </p>
        )}
        <button class="btn is-main" disabled={isBusy}>
          Sign in
        </button>
        <p class="dim">The person who started the console has the token.</p>
      </form>
    </main>
  );
}
