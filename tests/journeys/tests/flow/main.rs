//! Order, limits, dependencies, groups and chains through clients and workers.

#[macro_use]
#[path = "../common/mod.rs"]
mod common;

mod cancelling;
mod dependencies;
mod dependencies_lost;
mod dropped;
mod explaining;
mod explaining_stops;
mod flows;
mod flows_removed;
mod flows_seen;
mod gathering;
mod gathering_each;
mod gathering_faults;
mod gathering_logged;
mod groups;
mod groups_again;
mod groups_cancelled;
mod groups_failures;
mod groups_faults;
mod groups_large;
mod groups_nested;
mod lanes;
mod limits;
mod undone;
mod undone_in_part;
