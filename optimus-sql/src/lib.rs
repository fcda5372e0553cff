//! Submits tasks of Optimus in transactions of PostgreSQL, MySQL, MariaDB and SQLite.
//!
//! A call is stored in the table `optimus_outbox` by the user's transaction, and a [`Relay`]
//! submits it after the commit, exactly once. In reading order: [`PerformInTx`] stores a call in a
//! transaction of sqlx, [`OutboxRow`] in one of any other driver, and [`transaction`] all calls of
//! its body. [`Promised`] is the task that will be. [`lag`] and [`list_parked`] show what waits.
//! In handlers, [`Once`] applies a transaction exactly once, and [`Guard`] refuses attempts that
//! have lost their task.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod advance;
mod after_commit;
mod calls;
mod database;
mod dialect;
mod duty;
mod error;
mod floor;
mod flow_in_tx;
mod guard;
mod json_output;
mod lag;
mod limit;
mod link;
mod migrate;
mod next_rows;
mod note;
mod noted;
mod once;
mod once_marker;
mod once_parts;
mod once_wait;
mod one_row;
mod outbox;
mod outbox_row;
mod pace;
mod parked;
mod patience;
mod perform_in_tx;
mod positions;
mod promised;
mod push;
mod relay;
mod shard_fence;
mod shard_guard;
mod spacing;
mod sqlite_lock;
mod statement;
mod stream;
mod transaction;
mod turn;
mod unsent;
mod wakeup;
mod whole;

pub use self::{
    after_commit::{AfterCommit, PerformAfter},
    database::OutboxDb,
    dialect::Dialect,
    error::Error,
    flow_in_tx::{FlowInTx, PromisedFlow},
    guard::{GUARD_BYTES_MAX, Guard},
    lag::{Lag, lag},
    migrate::migrate,
    once::{Once, purge_once},
    outbox::Outbox,
    outbox_row::{IntoOutboxRow, OutboxRow},
    parked::{PARKED_MAX, Parked, drop_parked, list_parked, retry_parked},
    perform_in_tx::{PerformInTx, submit_all_in_tx},
    promised::Promised,
    relay::{Relay, RunningRelay},
    shard_guard::ShardGuard,
    transaction::{Tx, transaction},
};
