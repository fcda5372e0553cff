//! The running process of the Optimus task queue. Applications use the facade crate `optimus`.
//!
//! What happens when you call [`Worker::run`]: the `registry` of tasks is checked, and the worker
//! registers under a lease in each queue it serves. The `claimer` then takes turns, each one write
//! to Redis: what finished since the last turn (kept by the `reporter`) and a claim for as many
//! tasks as there are idle slots. The `executor` runs each claimed task, and `judge` turns how it
//! ended into a report. Beside that runtime stands the `keeper`, a thread of its own with
//! connections of its own: `heartbeat`, `deadlines`, `relief`, `lookout`, the bells, `reaper`,
//! `janitor` and `steward` go on even if handlers block every thread they can reach. There the
//! worker ends, too, in the phases of `ending`, and signs off. Who may ask for that is in
//! `shutdown` and `process`.
//!
//! `attempts` is what both sides share: every attempt that runs or whose report is still held.

mod attempts;
mod builder;
mod claimer;
mod claims;
mod config;
mod deadlines;
mod ending;
mod executor;
mod group;
mod heartbeat;
mod janitor;
mod judge;
mod keeper;
mod lane;
mod ledgers;
mod lookout;
mod looks;
mod misfit;
mod outcome;
mod prepare;
mod process;
mod queues;
mod reaper;
mod reconcile;
mod registry;
mod relief;
mod reporter;
mod role;
mod running;
mod shared;
mod shares;
mod shutdown;
mod sign_off;
mod signals;
mod slots;
mod span;
mod start;
mod steward;
#[cfg(test)]
mod still;
mod stop_bell;
mod suspects;
mod user_code;
mod wakeups;
mod work_bell;
mod worker;

pub use self::{builder::WorkerBuilder, worker::Worker};
