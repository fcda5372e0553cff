//! The one transaction of a turn: it deletes what is submitted and notes what comes next:
//! [`advance`].

use std::{collections::BTreeMap, pin::pin, time::Duration};

use optimus_core::{Client, QueueName, log_event};
use tokio::time::timeout;

use crate::{
    Error, OutboxDb,
    calls::{Calls, StoredCall, read_calls},
    floor::Floor,
    noted::{NUMBER_MAX, Noted, Share, call_number, new_epoch},
    stream::Stream,
};

/// How long another relay may keep the stream before this one says so.
const PATIENCE: Duration = Duration::from_secs(1);

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

/// What a transaction has done.
#[derive(Debug)]
pub(crate) enum Advanced {
    /// These calls are noted. Those of kept shares are not among the loaded ones.
    Noted { noted: Noted, loaded: Loaded, newer: Option<String> },
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

/// Deletes and notes in one transaction, if nobody has noted anything since `before`.
pub(crate) async fn advance<DB: OutboxDb>(
    stream: &mut Stream<DB>,
    client: &Client,
    floor: &mut Floor,
    before: &Noted,
    plan: Plan,
) -> Result<Advanced, Error> {
    let found = lock(stream, client).await?;
    if (&found.epoch, found.number) != (&before.epoch, before.number) {
        stream.roll_back().await?;
        return Ok(Advanced::Moved);
    }
    let had_plan = !plan.is_empty();
    stream.delete(&plan.done).await?;
    for (seq, why) in &plan.parked {
        stream.park(*seq, why).await?;
    }
    let mut noted = next_number(&found, &plan);
    noted.shares = plan.kept;
    let number = noted.number;
    noted.shares.extend(plan.again.iter().map(|(queue, calls)| share(number, queue, calls)));
    let mut loaded = plan.again;
    let calls = read_next(stream, client, floor, &noted).await?;
    if !had_plan && calls.good.is_empty() && calls.bad.is_empty() {
        stream.roll_back().await?;
        return Ok(Advanced::Noted { noted: found, loaded, newer: calls.newer });
    }
    for (seq, why) in &calls.bad {
        stream.park(*seq, why).await?;
    }
    let mut fresh = Loaded::new();
    for stored in calls.good {
        fresh.entry(stored.call.id().queue().clone()).or_default().push(stored);
    }
    noted.shares.extend(fresh.iter().map(|(queue, calls)| share(number, queue, calls)));
    loaded.extend(fresh);
    stream.note(&noted).await?;
    stream.commit().await?;
    Ok(Advanced::Noted { noted, loaded, newer: calls.newer })
}

/// Begins the transaction and locks the stream. Logs if another relay keeps it.
async fn lock<DB: OutboxDb>(stream: &mut Stream<DB>, client: &Client) -> Result<Noted, Error> {
    let mut locks = pin!(async {
        stream.begin().await?;
        stream.lock().await
    });
    if let Ok(found) = timeout(PATIENCE, &mut locks).await {
        return found;
    }
    let text = "another relay keeps the outbox locked: it is frozen or cut off, or the database is \
                slow; PostgreSQL and MySQL end its transaction after 5 s. In SQLite, any \
                transaction that takes long does so";
    log_event!(client.broker().log(), WARN, "{text}");
    locks.await
}

/// Returns what is noted next, without shares.
fn next_number(found: &Noted, plan: &Plan) -> Noted {
    let is_last = found.number >= NUMBER_MAX && plan.kept.is_empty();
    let (epoch, number) = if plan.begins_epoch || is_last {
        (new_epoch(), 1)
    } else {
        (found.epoch.clone(), found.number + 1)
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

/// Reads the next calls of queues that have none under way.
async fn read_next<DB: OutboxDb>(
    stream: &mut Stream<DB>,
    client: &Client,
    floor: &mut Floor,
    noted: &Noted,
) -> Result<Calls, Error> {
    let waiting = noted.queues();
    // The horizon comes first: what has ended by then is visible to the read.
    let horizon = stream.horizon().await?;
    let rows = stream.next_rows(floor.seq(), &waiting).await?;
    let calls = read_calls(client, rows);
    let last = calls.good.last().map(|stored| stored.seq).max(calls.bad.last().map(|bad| bad.0));
    if let Some(horizon) = horizon {
        floor.learn(horizon, last.filter(|_| waiting.is_empty()));
    }
    Ok(calls)
}
