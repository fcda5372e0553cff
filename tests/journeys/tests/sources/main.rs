//! Where tasks come from: schedules, shards and dispensers.

#[macro_use]
#[path = "../common/mod.rs"]
mod common;

mod dispenser;
mod schedule_moves;
mod schedules;
mod shards;
mod shards_faults;
mod shards_rounds;
mod sources;
mod sources_ends;
mod sources_faults;
mod sources_hostile;
