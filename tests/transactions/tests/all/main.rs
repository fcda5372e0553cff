//! Transactions of each database, with relays, a real Redis and workers. One binary, so that each
//! database server is started once.

mod away;
mod costs;
mod damaged;
mod databases;
mod dropped;
mod faults;
mod flows;
mod frozen;
mod guards;
mod half_open;
mod in_memory;
mod killed_waiting;
mod namespaces;
mod odd_queues;
mod once;
mod once_killed;
mod once_outputs;
mod outbox;
mod raced;
mod rolled_back;
mod savepoints;
mod settings;
mod setup;
mod shards;
mod shards_killed;
mod sizes;
mod speed;
mod speed_writers;
mod storm;
mod storm_runs;
mod truncated;
mod unreadable;
mod unsent;
mod workers;
mod writers;
