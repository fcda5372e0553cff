// The state of a task or an operation: a shape, a colour and its word.

const SHAPES: Record<string, string> = {
  ready: "M5 1.5a3.5 3.5 0 1 1 0 7 3.5 3.5 0 0 1 0-7z",
  delayed: "M5 1.5a3.5 3.5 0 1 1 0 7 3.5 3.5 0 0 1 0-7zM5 3v2l1.4 1",
  blocked: "M2 2h6v6H2zM2 5h6",
  retry: "M8.3 5A3.3 3.3 0 1 1 7 2.4M8.3 1v2H6.3",
  working: "M5 1.5a3.5 3.5 0 1 1 0 7z",
  dead: "M2 2l6 6M8 2L2 8",
  cancelled: "M5 1.5a3.5 3.5 0 1 1 0 7 3.5 3.5 0 0 1 0-7zM2.6 7.4l4.8-4.8",
  success: "M1.5 5.2l2.5 2.5 4.5-5",
};

const LIKE: Record<string, string> = {
  counting: "working",
  counted: "delayed",
  running: "working",
  done: "success",
  failed: "dead",
  paused: "blocked",
  overdue: "retry",
  active: "success",
  open: "success",
};

export function StateTag({ state }: { state: string }) {
  const kind = SHAPES[state] ? state : LIKE[state.toLowerCase()];
  return (
    <span class={`state is-${kind ?? "other"}`}>
      {kind !== undefined && (
        <svg viewBox="0 0 10 10" aria-hidden="true">
          <path d={SHAPES[kind]} />
        </svg>
      )}
      <bdi>{state.slice(0, 60)}</bdi>
    </span>
  );
}

/** A state's name at the start of a sentence. */
export function stateName(state: string): string {
  return state.charAt(0).toUpperCase() + state.slice(1);
}
