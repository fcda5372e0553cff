//! Tests each Lua script alone: for each starting state and caller, the answer, the next state, and
//! the unchanged keys.
//!
//! One file per script; each test runs once on `memory://` and once on a real server. [`bench`] is
//! the store under test, and [`acts`] has the calls that nearly every test makes (both are shared
//! with the model test, in `common/`). [`world`] is a store with something of every kind. The files
//! `wrong_type`, `full`, `bytes`, `torn` and `migrating` test all scripts, and `page` tests
//! `lua/README.md`.

#[macro_use]
#[path = "../common/mod.rs"]
mod common;
mod situations;
mod world;
mod world_after;
mod world_dispenser;
mod world_fleet;
mod world_gathers;
mod world_groups;
mod world_history;
mod world_limits;
mod world_logs;
mod world_operations;
mod world_rosters;
mod world_schedules;
mod world_tallies;

use common::{acts, after, bench, dispensers, dump, gathers, jobs, lanes, limits, rosters};

mod after_cycle;
mod after_elsewhere;
mod after_end;
mod after_here;
mod after_step;
mod after_told;
mod annotate;
mod attend;
mod r#await;
mod biz;
mod cancel;
mod checkpoint;
mod claim;
mod claim_due;
mod claim_order;
mod clock_back;
mod collect;
mod complete;
mod count;
mod delete;
mod demote;
mod dispenser_add;
mod dispenser_assign;
mod dispenser_clock;
mod dispenser_done;
mod fail;
mod fingerprints;
mod full_memory;
mod gather;
mod gather_back;
mod gather_led;
mod gather_operate;
mod group;
mod group_acts;
mod group_again;
mod group_more;
mod group_void;
mod history;
mod hold;
mod hold_faults;
mod input;
mod inspect;
mod interrupt;
mod lane_due;
mod lane_operate;
mod lane_order;
mod lane_resize;
mod lane_width;
mod leave;
mod limit_acquire;
mod limit_cost;
mod limit_one;
mod limit_pause;
mod limit_rate;
mod limit_waits;
mod limit_working;
mod list;
mod migrating;
mod needs;
mod operation_carry;
mod operation_over;
mod pause;
mod payload_bytes;
mod purge;
mod readme;
mod reap;
mod reap_grace;
mod recount;
mod register;
mod release;
mod renew;
mod requeue;
mod rescan;
mod retire;
mod run_now;
mod schedule;
mod schedule_moves;
mod schedule_race;
mod schedule_read;
mod stale;
mod structure;
mod submit;
mod submit_ledger;
mod survey;
mod suspend;
mod tally;
mod tally_days;
mod tick;
mod torn_file;
mod used_queue;
mod wrong_type;
mod r#yield;
