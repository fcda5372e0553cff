//! The running process of the Optimus task queue. Applications use the facade crate `optimus`.
//!
//! When you call [`Worker::run`], the worker checks its tasks (`task_registry`) and registers under
//! a lease in each queue that it serves. The `claimer` then takes turns. Each turn is one write to
//! Redis. It contains the reports since the last turn, which the `reporter` keeps, and a claim for
//! as many tasks as there are idle slots. The `executor` runs each claimed task, and
//! `decide_outcome` turns its end into a report.
//!
//! The `maintenance` thread runs outside the handlers' runtime, with its own connections. Its roles
//! are `heartbeat`, `deadlines`, `fallback_reporter`, `io_driver_watch`, `work_listener`,
//! `cancel_listener`, `reaper`, `janitor`, `steward`, `operations`, `posts` and `summary`. They run
//! even if handlers block every thread of their runtime. The worker also ends on the maintenance
//! thread: in the phases of `shutdown_phases`, and then with `worker_leave`. `shutdown_state` and
//! `process` start the end.
//!
//! Both sides share the table `attempts`, which contains every attempt that runs or whose report is
//! still held.

mod answered_reports;
mod attempts;
mod attendance;
#[cfg(feature = "metrics")]
mod beats;
mod builder;
mod cancel_listener;
mod claim_request;
mod claimer;
mod claims;
mod code_schedules;
mod collect;
mod collects;
mod config;
mod deadlines;
mod decide_outcome;
mod declared_history;
mod each_call;
mod environment;
mod executor;
mod fallback_reporter;
mod handler_end;
#[cfg(feature = "metrics")]
mod health;
mod heartbeat;
mod id_hasher;
mod io_driver_watch;
mod janitor;
mod late_handlers;
mod layer_ended;
mod lease_state;
mod ledger_retention;
mod log_writer;
mod logged_once;
mod maintenance;
mod marked_dead;
#[cfg(feature = "metrics")]
mod metrics_port;
mod misfit;
mod on_thread;
mod operations;
mod outcome_log;
mod poll_schedule;
mod post_function;
mod post_run;
mod posts;
mod prepare;
mod process;
mod process_stops;
mod quarantine;
mod queue_claims;
mod reaper;
mod reconcile;
mod refused_rows;
mod refused_wait;
mod rejections;
mod relay;
mod report_batch;
mod report_buffer;
mod reporter;
mod role;
mod role_wakeups;
mod roster_member;
mod round_log;
mod row_end;
mod run_log;
mod run_outcome;
mod run_part;
mod running_worker;
mod runtime_probe;
mod scan_plan;
mod scheduler;
mod served_queue;
mod served_queues;
mod services;
mod shard_registry;
mod shared;
mod shares;
mod shutdown_phases;
mod shutdown_state;
mod signals;
mod slots;
mod source_desk;
mod source_layer;
mod source_registry;
mod source_scan;
mod span;
mod spin_watch;
mod steward;
mod store_risks;
mod success;
mod summary;
mod tally;
mod tally_writer;
mod task_registry;
mod task_tallies;
#[cfg(test)]
mod test_worker;
mod turn_limits;
mod user_code;
mod user_round;
mod user_threads;
mod vitals;
mod work_listener;
mod worker;
mod worker_leave;
#[cfg(feature = "metrics")]
mod worker_metrics;
mod worker_start;

pub use self::{builder::WorkerBuilder, worker::Worker};
