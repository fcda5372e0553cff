// The answers of the server, as the API describes them.

export type Role = "viewer" | "operator" | "admin";
export type State =
  "ready" | "delayed" | "blocked" | "retry" | "working" | "dead" | "cancelled" | "success";

export interface Session {
  identity: string | null;
  role: Role;
  queues: string[];
  auth: "none" | "token" | "basic" | "header" | "custom";
  version: string;
  namespace: string;
  payloads: "hidden" | "redacted" | "full";
  now_ms: number;
}

export type Counts = Record<Exclude<State, "success">, number>;

/** A page of rows. `next` is the cursor of the following page. */
export interface Page<Row> {
  rows: Row[];
  next?: string | null;
  total?: number | null;
  scanned?: number | null;
}

export interface Paused {
  by: string | null;
  why: string | null;
  since_ms: number | null;
}

export interface QueueRow {
  queue: string;
  counts: Counts;
  totals: { success: number; dead: number; cancelled: number; retry: number };
  oldest_ms: number | null;
  paused: Paused | null;
  rate_s: number | null;
  failed_1h: number | null;
  slots: number | null;
  /** Whether tasks wait for a worker that is not there. */
  unserved: boolean;
  want_slots: number | null;
  drain_ms: number | null;
  problem: string | null;
}

export interface TaskStats {
  task: string;
  success: number;
  retry: number;
  dead: number;
  cancelled: number;
  lost: number;
  run_p50_ms: number | null;
  run_p99_ms: number | null;
  wait_p50_ms: number | null;
  wait_p99_ms: number | null;
}

export interface QueueDetail extends QueueRow {
  explain: string[];
  workers: { id: string; host: string; pid: number; running: number }[];
  tasks: TaskStats[];
  history: { days: number; bytes: number; budget: number } | null;
}

export interface ErrorRow {
  at_ms: number;
  attempt: number;
  reason: string;
  message: string;
  causes: string[];
  worker: string | null;
  fingerprint: string | null;
}

export interface Progress {
  part: number | null;
  text: string | null;
}

export interface TaskRow {
  id: string;
  /** Nothing is known of the name of a task that can't be decoded. */
  task: string | null;
  state: State;
  created_ms: number | null;
  at_ms: number | null;
  attempt: number | null;
  took_ms: number | null;
  worker: string | null;
  headers: Record<string, string>;
  error: ErrorRow | null;
  progress: Progress | null;
}

export interface StatsRow {
  since_ms: number;
  success: number;
  retry: number;
  dead: number;
  cancelled: number;
  lost: number;
  run_p50_ms: number | null;
  run_p95_ms: number | null;
  run_p99_ms: number | null;
  wait_p50_ms: number | null;
  wait_p95_ms: number | null;
  wait_p99_ms: number | null;
}

export type Unit = "minute" | "hour" | "day";

export interface Stats {
  unit: Unit;
  until_ms: number;
  rows: StatsRow[];
  by_task: TaskStats[];
  queues?: number;
  left_out?: number;
}

export interface HistoryRow {
  id: string;
  task: string;
  state: "success" | "dead";
  ended_ms: number;
  attempt: number;
  took_ms: number | null;
  worker: string | null;
  error: string | null;
}

export interface Payload {
  text: string | null;
  hidden: boolean;
  redacted: boolean;
  truncated: boolean;
}

export interface TimelineRow {
  kind:
    "submitted" | "due" | "started" | "failed" | "retry" | "ended" | "lost" | "asked" | "cancelled";
  at_ms: number;
  text: string;
}

export interface TaskDetail {
  id: string;
  queue: string;
  task: string | null;
  state: State;
  worker: string | null;
  at_ms: number | null;
  created_ms: number | null;
  attempt: number;
  max_retry: number | null;
  timeout_ms: number | null;
  failures: number;
  losses: number;
  misfits: number;
  biz_id: string | null;
  lane: string | null;
  priority: number | null;
  headers: Record<string, string>;
  errors: ErrorRow[];
  arguments: Payload | null;
  result: Payload | null;
  log: { lines: { at_ms: number; attempt: number; text: string }[]; dropped: number } | null;
  progress: Progress | null;
  running_since_ms: number | null;
  summary: { attempt: number; took_ms: number | null; worker: string | null } | null;
  undecodable: string | null;
  timeline: TimelineRow[];
  explain: string[] | null;
}

export interface FailureRow {
  queue: string;
  task: string | null;
  /** Errors that no worker wrote, such as losses, have none. */
  fingerprint: string | null;
  reason: string | null;
  outline: string | null;
  dead: number;
  first_ms: number | null;
  last_ms: number | null;
  sample: string | null;
  message: string | null;
}

export interface Failures {
  rows: FailureRow[];
  rows_left_out: number;
  queues: number;
  left_out: number;
}

export interface RunningTask {
  id: string;
  task: string;
  attempt: number | null;
  since_ms: number | null;
  /** For how long its handler has gone on after its timeout. */
  late_ms: number | null;
  progress: Progress | null;
}

export interface ProcessRow {
  id: string;
  name: string | null;
  host: string;
  pid: number;
  version: string | null;
  started_ms: number | null;
  seen_ms: number | null;
  /** Whether its lease is over. */
  lost: boolean;
  blocked_ms: number | null;
  queues: string[];
  concurrency: number | null;
  slots: number | null;
  busy: number;
  rss_bytes: number | null;
  cpu: number | null;
  running: RunningTask[];
}

export interface Hits {
  q: string;
  hits: { kind: string; id: string; text: string; href: string }[];
  /** The kinds of which there are more hits. */
  more: string[];
  scan: { queue: string; href: string }[];
  /** Queues that Redis refuses to read. */
  unread: string[];
  /** How many queues with dead tasks were not looked through for causes. */
  causes_left_out: number;
  /** In how many queues no biz id was looked up, because no worker tells the names of their tasks. */
  biz_ids_left_out: number;
}

export interface RedisPage {
  facts: { name: string; value: string }[];
  checks: { level: "ok" | "note" | "warning" | "problem"; text: string }[];
}

/** A row of a page that the server lays out, such as a lane or a schedule. */
export interface ThingRow {
  queue?: string | null;
  name: string;
  title: string;
  state: string;
  facts: Fact[];
  acts: string[];
}

export interface Fact {
  name: string;
  value: string;
  /** A time in RFC 3339, or ids of tasks with a space between them. */
  kind: "text" | "instant" | "tasks";
}

export interface AuditRow {
  id: string;
  at_ms: number;
  who: string | null;
  act: string;
  target: string;
  reason: string | null;
  outcome: string | null;
}

export type BulkAct = "requeue" | "cancel" | "delete" | "run_now";

export interface Filter {
  queue: string;
  state?: string | null;
  task?: string | null;
  fingerprint?: string | null;
  cause?: string | null;
  header?: string | null;
  older_ms?: number | null;
  text?: string | null;
}

/** The filter of an operation, which may have several of each. */
export interface OperationFilter {
  queue?: string | null;
  queues?: string[];
  state?: string | null;
  states?: string[];
  task?: string | null;
  fingerprint?: string | null;
  cause?: string | null;
  header?: string | null;
  headers?: string[];
  older_ms?: number | null;
  since_ms?: number | null;
  text?: string | null;
}

export interface Operation {
  id: string;
  act: BulkAct;
  filter: OperationFilter;
  state: "counting" | "counted" | "running" | "done" | "cancelled" | "failed";
  who: string | null;
  reason: string | null;
  matched: number;
  done: number;
  asked_to_stop: number;
  refused: number;
  gone: number;
  left: number;
  rate_s: number | null;
  created_ms: number;
  updated_ms: number;
  confirm_until_ms: number | null;
  can_undo: boolean;
  samples: TaskRow[];
  by_task: { task: string; count: number }[];
  problems: { id: string; error: string }[];
  failure: string | null;
  text: string;
}

/** A process whose handlers block its runtime, or go on after their timeouts. */
export interface StuckRow {
  id: string;
  host: string;
  pid: number;
  blocked_ms: number | null;
  /** How many handlers go on after their timeouts. */
  late: number;
  late_ms: number | null;
}

export type Feature =
  "lanes" | "limits" | "schedules" | "groups" | "shards" | "sources" | "dispensers";

export interface Overview {
  now_ms: number;
  sampled_ms: number;
  /** Nothing is known of its numbers if Redis refuses to tell them. */
  redis: {
    version: string | null;
    used_bytes: number | null;
    max_bytes: number | null;
    up: boolean;
  };
  namespace: string;
  counts: Counts;
  rates: { success_s: number; dead_s: number; retry_s: number };
  oldest_ms: number | null;
  slots: { busy: number; allowed: number };
  processes: number;
  queue_count: number;
  attention: QueueRow[];
  stuck: StuckRow[];
  failures: FailureRow[];
  operations: Operation[];
  features: Record<Feature, boolean>;
  series: { at_ms: number; success: number; retry: number; dead: number }[];
}
