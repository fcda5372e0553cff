//! Submits noted calls to Redis: [`push`].

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::future::join_all;
use optimus_core::{
    Client, Durability, QueueName, TaskId,
    broker::{Batch, Broker, BrokerError, Receipt, Refusal, Submitted},
};
use tokio::time::Instant;

use crate::{
    calls::StoredCall,
    noted::{Noted, Share},
    positions::{in_positions, of_calls},
};

/// How long Redis may take to confirm a batch.
const CONFIRM_WITHIN: Duration = Duration::from_secs(5);
/// How often a queue is made known to inspectors, because Redis may have lost that.
const ANNOUNCE_EVERY: Duration = Duration::from_secs(30);

/// How long it is kept at least which task held the biz id of a call.
const OWNER_KEPT: Duration = Duration::from_secs(3600);
/// How long it is kept at most. A row that was written by hand may name any time.
const OWNER_KEPT_MAX: Duration = Duration::from_secs(1_800 * 24 * 60 * 60);

/// Whether the marks of all ledgers were known.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Marks {
    Known,
    Learned,
}

/// What became of a share.
#[derive(Debug)]
pub(crate) enum Pushed {
    /// Redis has the calls, now or from an earlier try. Some may be refused by themselves.
    Done(Vec<(i64, String)>),
    /// Redis did not answer, is full or does not allow it. The same share is sent again.
    Wait(String),
    /// Redis refuses the share, and will refuse it again.
    Refused(String),
    /// The ledger knows later calls than this one.
    Forgotten,
}

/// The access to Redis of a relay.
pub(crate) struct Pusher {
    client: Client,
    broker: Broker,
    durability: Durability,
    announced: Mutex<HashMap<QueueName, Instant>>,
    /// The marks of the ledgers, by ledger and queue, or why one could not be read.
    marks: Mutex<HashMap<(String, QueueName), Result<String, String>>>,
}

impl Pusher {
    pub(crate) fn new(client: Client, durability: Durability) -> Self {
        let broker = client.broker().separate("relay");
        let (announced, marks) = (Mutex::default(), Mutex::default());
        Self { client, broker, durability, announced, marks }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn broker(&self) -> &Broker {
        &self.broker
    }

    /// Learns the marks of the ledgers of what is noted. With them, Redis refuses a share if it has
    /// lost the ledger since. A queue whose ledger can't be read waits.
    pub(crate) async fn learn_marks(&self, noted: &Noted) -> Marks {
        let ledger = noted.ledger();
        let key = |share: &Share| (ledger.clone(), share.queue.clone());
        let is_unknown =
            |share: &&Share| !matches!(lock(&self.marks).get(&key(share)), Some(Ok(_)));
        let unknown: Vec<&Share> = noted.shares.iter().filter(is_unknown).collect();
        let reads = unknown.iter().map(|share| self.broker.ledger_mark(&share.queue, &ledger));
        let mut marks = Marks::Known;
        for (share, read) in unknown.iter().zip(join_all(reads).await) {
            if read.is_ok() {
                marks = Marks::Learned;
            }
            let mut known = lock(&self.marks);
            // Ledgers of earlier epochs.
            known.retain(|(name, _), _| *name == ledger);
            known.insert(key(share), read.map_err(|problem| problem.to_string()));
        }
        marks
    }

    /// Sends a share under its number, as often as the caller likes: the ledger answers repeats.
    /// `calls` are those of its rows that are left.
    pub(crate) async fn push(&self, ledger: &str, share: &Share, calls: &[StoredCall]) -> Pushed {
        let tasks = in_positions(share, calls);
        let batch = Batch {
            queue: &share.queue,
            client: ledger,
            number: share.call,
            since: 0,
            keep: false,
            tasks: &tasks,
        };
        let key = (ledger.to_owned(), share.queue.clone());
        let mark = match lock(&self.marks).get(&key).cloned() {
            Some(Ok(mark)) => mark,
            Some(Err(problem)) => return Pushed::Wait(problem),
            None => return Pushed::Wait("the ledger of the relay was not read".to_owned()),
        };
        match self.submit(&batch, &mark).await {
            Ok(submitted) => {
                let receipts = of_calls(share, calls, submitted.receipts);
                if let Err(problem) = self.note_owners(calls, &receipts).await {
                    return Pushed::Wait(problem.to_string());
                }
                self.announce(&share.queue).await;
                if submitted.posted {
                    self.client.carry_asks(&share.queue).await;
                }
                Pushed::Done(refused(calls, receipts))
            }
            Err(BrokerError::Refused(Refusal::Stale, _)) => {
                lock(&self.marks).remove(&key);
                Pushed::Wait("Redis has lost the ledger of the relay".to_owned())
            }
            Err(BrokerError::Refused(Refusal::Forgotten, _)) => Pushed::Forgotten,
            Err(BrokerError::Rejected(why)) => Pushed::Refused(why),
            Err(problem) => Pushed::Wait(problem.to_string()),
        }
    }

    async fn submit(&self, batch: &Batch<'_>, mark: &str) -> Result<Submitted, BrokerError> {
        if self.durability == Durability::Memory {
            return self.broker.submit_marked(batch, mark).await;
        }
        let call = self.broker.marked_submit_call(batch, mark);
        let broker = self.broker.within(CONFIRM_WITHIN);
        let mut answers = broker.run_confirmed(&[call], self.durability, CONFIRM_WITHIN).await;
        let answer = answers.pop().expect("an answer for each call")?;
        Broker::read_submit(batch.queue, batch.tasks.len(), answer)
    }

    /// Notes which tasks held the biz ids of calls, for the handles of these calls. The rows are
    /// deleted only afterwards, so a relay that dies meanwhile loses none.
    async fn note_owners(
        &self,
        calls: &[StoredCall],
        receipts: &[Receipt],
    ) -> Result<(), BrokerError> {
        let mut kept = OWNER_KEPT;
        let mut owners: Vec<(&TaskId, &TaskId)> = Vec::new();
        for (stored, receipt) in calls.iter().zip(receipts) {
            if let Receipt::Duplicate(owner) = receipt
                && owner != stored.call.id()
            {
                kept = kept.max(stored.call.result_ttl().min(OWNER_KEPT_MAX));
                owners.push((stored.call.id(), owner));
            }
        }
        self.broker.note_owners(&owners, kept).await
    }

    /// Makes a queue known to inspectors. If that fails, the next push does it.
    async fn announce(&self, queue: &QueueName) {
        let is_recent = |at: &Instant| at.elapsed() < ANNOUNCE_EVERY;
        let is_known = lock(&self.announced).get(queue).is_some_and(is_recent);
        if !is_known && self.broker.announce(queue).await.is_ok() {
            lock(&self.announced).insert(queue.clone(), Instant::now());
        }
    }
}

/// Returns the calls that Redis has not stored, and never will.
fn refused(calls: &[StoredCall], receipts: Vec<Receipt>) -> Vec<(i64, String)> {
    let refused = |(stored, receipt): (&StoredCall, Receipt)| match receipt {
        Receipt::Created | Receipt::Duplicate(_) => None,
        Receipt::WaitsForItself(path) => {
            let path: Vec<String> = path.iter().map(ToString::to_string).collect();
            let path = path.join(", ");
            Some((stored.seq, format!("it would wait for itself: it waits for {path}")))
        }
    };
    calls.iter().zip(receipts).filter_map(refused).collect()
}

/// No user code runs under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
