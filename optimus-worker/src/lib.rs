//! The running process of the Optimus task queue. Applications use the facade crate `optimus`.
//!
//! When you call [`Worker::run`], the worker checks its `registry` of tasks and registers under a
//! lease in each queue that it serves. The `claimer` then takes turns. Each turn is one write to
//! Redis. It contains the reports since the last turn, which the `reporter` keeps, and a claim for
//! as many tasks as there are idle slots. The `executor` runs each claimed task, and
//! `decide_outcome` turns its end into a report.
//!
//! The `maintenance` thread runs outside the handlers' runtime, with its own connections. Its roles
//! are `heartbeat`, `deadlines`, `fallback_reporter`, `driver_watch`, `work_listener`,
//! `cancel_listener`, `reaper`, `janitor`, `steward` and `summary`. They run even if handlers block
//! every thread of their runtime. The worker also ends on the maintenance thread: in the phases of
//! `worker_end`, and then with `worker_leave`. `shutdown` and `process` start the end.
//!
//! Both sides share the table `attempts`, which contains every attempt that runs or whose report is
//! still held.

mod answered_reports;
mod attempts;
mod builder;
mod cancel_listener;
mod claim_request;
mod claimer;
mod claims;
mod config;
mod deadlines;
mod decide_outcome;
mod driver_watch;
mod ended_calls;
mod environment;
mod executor;
mod fallback_reporter;
mod heartbeat;
#[cfg(test)]
mod idle_worker;
mod janitor;
mod ledgers;
mod maintenance;
mod marked_dead;
mod misfit;
mod outcome_log;
mod polls;
mod prepare;
mod process;
mod quarantine;
mod queues;
mod reaper;
mod reconcile;
mod refused_wait;
mod registry;
mod rejected_beats;
mod relay;
mod report_batch;
mod report_buffer;
mod reporter;
mod role;
mod running_worker;
mod served_queue;
mod shared;
mod shares;
mod shutdown;
mod signals;
mod slots;
mod span;
mod standing;
mod steward;
mod summary;
mod tally;
mod user_code;
mod wakeups;
mod work_listener;
mod worker;
mod worker_end;
mod worker_leave;
mod worker_start;

pub use self::{builder::WorkerBuilder, worker::Worker};
