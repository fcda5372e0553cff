//! Whole clients and workers on the embedded store and on virtual time, where one seed decides all:
//! ids, jitter, who runs when, and what goes wrong.
//!
//! In reading order: [`world`] is a store with all who use it, on one thread, and its [`queues`];
//! [`network`] and [`gate`] are what lies between, where [`fault_plan`] decides about each
//! [`fault`]; [`probe`] sees each `redis.call` of each script, and [`sites`] knows which there are.
//! [`work`] and [`hostile`] are the tasks, a [`user`] submits and operates, a [`nemesis`] does
//! harm, and [`ending`] heals, drains and judges; [`calm`] has plain tasks after that, and judges
//! shares. [`run`] is all of that by a seed; [`sweep`] is one fault at each place of short scenes.
//!
//! What it is not: handlers never block their thread, and a connection is never refused, only
//! broken. A store that comes back as it was never has its clock set back, too: then a fence could
//! be given twice.

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
