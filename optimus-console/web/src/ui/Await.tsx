// What is shown until an answer is there, and what is shown when it fails.

import type { ComponentChildren } from "preact";
import { ApiError, words } from "../api/client";
import { Icon } from "./Icon";
import { Text } from "./Text";

export function Problem({ error, again }: { error: unknown; again?: () => unknown }) {
  return (
    <div class="banner is-problem" role="alert">
      <Icon name="warn" />
      <p>
        <Text value={words(error)} max={2000} />
      </p>
      {again && (
        <button type="button" class="btn" onClick={() => void again()}>
          Try again
        </button>
      )}
    </div>
  );
}

interface Props<Data> {
  of: { data: Data | undefined; error: unknown; refresh: () => Promise<void> };
  children: (data: Data) => ComponentChildren;
}

export function Await<Data>({ of, children }: Props<Data>) {
  const status = of.error instanceof ApiError ? of.error.status : undefined;
  const gone = status === 404;
  return (
    <>
      {of.error !== undefined && (
        <Problem error={of.error} again={status === 403 ? undefined : of.refresh} />
      )}
      {of.data !== undefined && !gone && children(of.data)}
      {of.data === undefined && of.error === undefined && <Waiting />}
    </>
  );
}

/** Appears late, so that a fast answer doesn't flicker. */
export function Waiting() {
  return (
    <p class="waiting" role="status">
      Loading
    </p>
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}
