//! Workers and clients beside servers, links and processes that fail.

#[macro_use]
#[path = "../common/mod.rs"]
mod common;

mod connections;
mod credentials;
mod due_herd;
mod durability;
mod failover;
mod forgotten;
mod leases;
mod lost_answers;
mod lost_wakeups;
mod metrics;
mod network;
mod outage;
mod pages;
mod permissions;
mod process_stops;
mod quarantine;
mod recovery;
mod sharing;
mod slow_link;
mod started_once;
mod starved;
mod store_risks;
mod submit_timeout;
mod tls;
mod unused_queues;
mod wakeups;
