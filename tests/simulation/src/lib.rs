//! Runs whole clients and workers on the embedded store and on virtual time. One seed decides ids,
//! jitter, the order of tasks, and faults.
//!
//! In reading order: [`world`] is a store with all its processes, on one thread, and its
//! [`queues`]. [`network`] and [`gate`] connect the processes to the store, and [`fault_plan`]
//! decides about each [`fault`] there. [`probe`] observes each `redis.call` of each script, and
//! [`sites`] lists these calls. [`work`] and [`hostile`] contain the tasks. A [`user`] submits and
//! operates, a [`nemesis`] causes harm, and [`ending`] removes faults, drains the queues and checks
//! the run. [`calm`] then runs plain tasks and checks shares. [`run`] does all of that from a seed.
//! [`sweep`] causes one fault at each place of short scenes.
//!
//! The simulation has limits. Handlers never block their thread. Connections break but are never
//! refused. The clock of a store that is rolled back is never set back, because the store could
//! then give a fence twice.

pub mod calm;
pub mod dump;
pub mod ending;
pub mod fault;
pub mod fault_plan;
pub mod gate;
pub mod hostile;
pub mod journal;
pub mod nemesis;
pub mod network;
pub mod probe;
pub mod queues;
pub mod run;
pub mod sites;
pub mod sweep;
pub mod tally;
pub mod trace;
pub mod user;
pub mod work;
pub mod world;
