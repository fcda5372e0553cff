//! Whole clients and workers on the embedded store and on virtual time. One seed decides
//! everything: ids, jitter, the order of tasks, and faults.
//!
//! In reading order: [`world`] is a store with all its processes, on one thread, and its
//! [`queues`]. [`network`] and [`gate`] connect them; there [`fault_plan`] decides about each
//! [`fault`]. [`probe`] sees each `redis.call` of each script, and [`sites`] lists them. [`work`]
//! and [`hostile`] are the tasks, a [`user`] submits and operates, a [`nemesis`] causes harm, and
//! [`ending`] removes faults, drains and checks. [`calm`] then runs plain tasks and checks shares.
//! [`run`] is all of that from a seed; [`sweep`] is one fault at each place of short scenes.
//!
//! Limits: handlers never block their thread, and a connection is never refused, only broken. A
//! store that is rolled back never has its clock set back, too: then a fence could be given twice.

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
