//! What a turn does in the database: it reads what comes next, notes that, and deletes what is
//! submitted: [`advance`].

use std::{collections::BTreeMap, pin::pin, time::Duration};

use optimus_core::{Client, QueueName, log_event};
use tokio::time::timeout;

use crate::{
    Dialect, Error, OutboxDb,
    calls::{Calls, StoredCall, read_calls},
    floor::Floor,
    next_rows::NextRows,
    note::{Change, Changed},
    noted::{NUMBER_MAX, Noted, Share, call_number, new_epoch},
    stream::{Stream, storable},
};

/// How long another relay may keep the stream before this one says so.
const PATIENCE: Duration = Duration::from_secs(1);

const PARKED: &str = "calls of the outbox can't be submitted and are put aside: `list_parked` \
                      shows them, and `retry_parked` sends them again";

/// The calls of the shares that are noted, by queue.
pub(crate) type Loaded = BTreeMap<QueueName, Vec<StoredCall>>;

/// What a transaction shall do besides noting new calls.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Rows that are submitted.
    pub(crate) done: Vec<i64>,
    /// Rows to put aside, each with the reason.
    pub(crate) parked: Vec<(i64, String)>,
    /// Shares that are to be sent again unchanged.
    pub(crate) kept: Vec<Share>,
    /// Calls that are to be sent under a new number.
    pub(crate) again: Loaded,
    /// Whether the ledgers know another history.
    pub(crate) begins_epoch: bool,
}

/// What a turn has come to.
#[derive(Debug)]
pub(crate) enum Advanced {
    /// These calls are noted. Those of kept shares are not among the loaded ones.
    Noted { noted: Noted, loaded: Loaded },
    /// There is nothing to delete or to note.
    Unchanged { newer: Option<String> },
    /// Another relay has noted something since.
    Moved,
}

impl Plan {
    /// Returns whether it changes nothing.
    fn is_empty(&self) -> bool {
        let Self { done, parked, again, begins_epoch, .. } = self;
        done.is_empty() && parked.is_empty() && again.is_empty() && !begins_epoch
    }
}

/// Reads what comes next. Then deletes and notes in one transaction, if nobody has noted anything
/// since `before`. No other relay can have noted what was read, because then the number is another.
pub(crate) async fn advance<DB: OutboxDb>(
    stream: &mut Stream<DB>,
    client: &Client,
    floor: &mut Floor,
    before: &Noted,
    plan: Plan,
) -> Result<Advanced, Error> {
    let mut next = next_number(before, &plan);
    let (number, had_plan) = (next.number, !plan.is_empty());
    let gone: Vec<i64> =
        plan.done.iter().copied().chain(plan.parked.iter().map(|(seq, _)| *seq)).collect();
    next.shares = plan.kept;
    next.shares.extend(plan.again.iter().map(|(queue, calls)| share(number, queue, calls)));
    let Calls { mut good, bad, newer } = read_next(stream, client, floor, &next, &gone).await?;
    // A row of SQLite may name its queue as a BLOB or with a NUL, which no condition finds.
    good.retain(|stored| next.shares.iter().all(|share| share.queue != *stored.call.id().queue()));
    if !had_plan && good.is_empty() && bad.is_empty() {
        return Ok(Advanced::Unchanged { newer });
    }
    let (mut loaded, mut fresh) = (plan.again, Loaded::new());
    for stored in good {
        fresh.entry(stored.call.id().queue().clone()).or_default().push(stored);
    }
    next.shares.extend(fresh.iter().map(|(queue, calls)| share(number, queue, calls)));
    loaded.extend(fresh);
    let parked: Vec<&(i64, String)> = plan.parked.iter().chain(&bad).collect();
    let (count, first) = (parked.len(), parked.first().copied());
    let change = Change { before, next: &next, done: &plan.done, parked };
    match patiently(client, stream.change(&change)).await? {
        Changed::Moved => Ok(Advanced::Moved),
        Changed::Noted(own) => {
            if let Some((seq, why)) = first {
                let (log, seq, why) = (client.broker().log(), *seq, storable(why));
                log_event!(log, WARN, count, seq, error = %why, "{PARKED}");
            }
            if let Some(own) = own {
                floor.wrote(own);
            }
            Ok(Advanced::Noted { noted: next, loaded })
        }
    }
}

/// Waits for the transaction. Logs if another relay keeps it waiting.
async fn patiently<T>(client: &Client, change: impl Future<Output = T>) -> T {
    let mut change = pin!(change);
    if let Ok(changed) = timeout(PATIENCE, &mut change).await {
        return changed;
    }
    let text = "another transaction keeps the outbox locked, or the database is slow. If it is \
                that of a relay that is frozen or cut off, PostgreSQL and MySQL end it after 5 s. \
                In SQLite, any transaction that takes long does so";
    log_event!(client.broker().log(), WARN, "{text}");
    change.await
}

/// Returns what is noted next, without shares.
fn next_number(before: &Noted, plan: &Plan) -> Noted {
    let is_last = before.number >= NUMBER_MAX && plan.kept.is_empty();
    let (epoch, number) = if plan.begins_epoch || is_last {
        (new_epoch(), 1)
    } else {
        (before.epoch.clone(), before.number + 1)
    };
    Noted { epoch, number, shares: Vec::new() }
}

fn share(number: u64, queue: &QueueName, calls: &[StoredCall]) -> Share {
    let ids: Vec<_> = calls.iter().map(|stored| stored.call.id().uuid()).collect();
    Share {
        queue: queue.clone(),
        call: call_number(number, &ids),
        seqs: calls.iter().map(|stored| stored.seq).collect(),
    }
}

/// Reads the next calls of queues that have none under way. `gone` are rows that are submitted or
/// will be put aside.
async fn read_next<DB: OutboxDb>(
    stream: &mut Stream<DB>,
    client: &Client,
    floor: &mut Floor,
    noted: &Noted,
    gone: &[i64],
) -> Result<Calls, Error> {
    let waiting = noted.queues();
    let NextRows { rows, ended_below } = stream.next_rows(floor.seq(), &waiting, gone).await?;
    let calls = read_calls(client, rows);
    let last = calls.good.last().map(|stored| stored.seq).max(calls.bad.last().map(|bad| bad.0));
    if DB::DIALECT == Dialect::Postgres {
        floor.learn(ended_below, last.filter(|_| waiting.is_empty()));
    }
    Ok(calls)
}
