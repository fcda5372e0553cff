//! Runs whole clients and workers on the embedded store and on virtual time. One seed decides ids,
//! jitter, the order of tasks, and faults.
//!
//! In reading order: [`world`] is a store with all its processes, on one thread, and its
//! [`queues`]. [`network`] and [`process_gate`] connect the processes to the store, and
//! [`fault_plan`] decides about each [`exchange_fault`] there. [`script_probe`] observes each
//! `redis.call` of each script, and [`script_coverage`] lists these calls. [`tasks`],
//! [`flow_tasks`], [`gathered`] and [`hostile`] contain the tasks. A [`user`] submits tasks and
//! operates on them,
//! according to the [`load`] of the run, a [`nemesis`] causes harm, and [`drain_and_check`] removes
//! faults, drains the queues and checks the run. With flows, there must be no [`leftovers`].
//! [`tick_journal`], [`post_journal`] and [`item_journal`] record schedules, rosters and
//! dispensers, and [`run_sources`] runs schedules and shards from a seed, with the tasks of
//! [`sources`]. [`rows`] is a table with a source.
//! [`calm`] then runs plain tasks and checks shares. [`run`] does all of that from a seed.
//! [`sweep`] causes one fault at each place of short scenes.
//!
//! The simulation has limits. Handlers never block their thread. Connections break but are never
//! refused. The clock of a store that is rolled back is never set back, because the store could
//! then give a fence twice.

pub mod calm;
pub mod drain_and_check;
pub mod dump;
pub mod exchange_fault;
pub mod fault_plan;
mod flow_limits;
pub mod flow_tasks;
pub mod gathered;
pub mod hostile;
pub mod item_journal;
pub mod journal;
pub mod leftovers;
pub mod load;
mod local_clock;
pub mod nemesis;
pub mod network;
pub mod post_journal;
pub mod process_gate;
pub mod queues;
mod relay;
pub mod rows;
pub mod run;
mod run_schedules;
mod run_shards;
pub mod run_sources;
pub mod script_coverage;
pub mod script_probe;
pub mod sources;
pub mod sweep;
pub mod tally;
pub mod tasks;
pub mod tick_journal;
pub mod trace;
pub mod user;
pub mod world;
