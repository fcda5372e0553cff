// Icons of 16 by 16 units, drawn with lines. They are for the eye only: the text beside them, or
// the label of their button, says the same.

const PATHS = {
  overview: "M2 13h12M3.5 10.5l3-4 2.5 2 3.5-5",
  queues: "M2.5 4h11M2.5 8h11M2.5 12h7",
  failures: "M8 2.5l6 10.5H2zM8 6.5v3M8 11.3v.2",
  workers: "M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.1M5 11h.1",
  search: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM10.4 10.4L14 14",
  operations: "M2.5 4.5h7M2.5 8h4M2.5 11.5h7M11 6.5l3 1.5-3 1.5z",
  audit: "M4 2.5h8v11H4zM6 5.5h4M6 8h4M6 10.5h2",
  redis: "M2.5 4.5c0-2 11-2 11 0s-11 2-11 0v7c0 2 11 2 11 0v-7M2.5 8c0 2 11 2 11 0",
  lanes: "M4 2.5v11M8 2.5v3M8 7.5v2M8 11.5v2M12 2.5v11",
  limits: "M2.5 11a5.5 5.5 0 0 1 11 0M8 11l2.5-3.5",
  schedules: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM8 5v3l2 1.5",
  groups: "M3 3h4v4H3zM9 3h4v4H9zM3 9h4v4H3zM9 9h4v4H9z",
  shards: "M8 2l5.5 3v6L8 14l-5.5-3V5zM8 2v12",
  sources: "M2.5 8h8M7.5 5l3 3-3 3M13.5 3v10",
  dispensers: "M4 3h8v4H4zM8 7v6M5.5 10.5L8 13l2.5-2.5",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  play: "M5 3.5l7 4.5-7 4.5z",
  close: "M4 4l8 8M12 4l-8 8",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  sun: "M8 5.5a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5zM8 1.5v1.5M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.4l1 1M11.6 11.6l1 1M3.4 12.6l1-1M11.6 4.4l1-1",
  moon: "M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z",
  auto: "M8 2.5a5.5 5.5 0 1 1 0 11zM8 2.5a5.5 5.5 0 0 0 0 11z",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  retry: "M13 8a5 5 0 1 1-1.6-3.7M13 2v3h-3",
  trash: "M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.5 9h6l.5-9",
  stop: "M4 4h8v8H4z",
  up: "M8 13V3.5M4.5 7L8 3.5 11.5 7",
  down: "M8 3v9.5M4.5 9L8 12.5 11.5 9",
  open: "M3.5 6L8 10.5 12.5 6",
  right: "M6 3.5L10.5 8 6 12.5",
  check: "M3 8.5l3.5 3.5L13 4.5",
  warn: "M8 2.5l6 10.5H2zM8 6.5v3M8 11.3v.2",
  info: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM8 7.5v3.5M8 5v.2",
  exit: "M6.5 2.5h-4v11h4M6 8h7.5M11 5.5L13.5 8 11 10.5",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}

/** The sign of the project. */
export function Logo() {
  return (
    <svg class="logo" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="8" class="logo-ground" />
      <path d="M8 11h10M8 16h16M8 21h6" class="logo-lines" />
      <circle cx="23" cy="21" r="2.5" class="logo-dot" />
    </svg>
  );
}
