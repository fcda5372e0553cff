//! Each Lua script by itself: starting state x caller → answer, next state, what stays untouched.
//!
//! One file a script, each test once on `memory://` and once on a real server. [`bench`] is the
//! store under test, [`acts`] what nearly every test does with it (both are shared with the model
//! test, in `common/`), [`world`] a store in which something of every kind is there. Across all
//! scripts: `wrong_type`, `full`, `bytes`, `torn`, `migrating`, and `page` for `lua/README.md`.

#[macro_use]
#[path = "../common/mod.rs"]
mod common;
mod world;

use common::{acts, bench, dump, jobs};

mod r#await;
mod biz;
mod bytes;
mod cancel;
mod claim;
mod claim_due;
mod claim_order;
mod complete;
mod delete;
mod fail;
mod full;
mod inspect;
mod interrupt;
mod leave;
mod list;
mod migrating;
mod needs;
mod page;
mod pause;
mod purge;
mod reap;
mod reap_grace;
mod register;
mod release;
mod renew;
mod requeue;
mod retire;
mod stale;
mod structure;
mod submit;
mod submit_ledger;
mod torn;
mod used;
mod wrong_type;
