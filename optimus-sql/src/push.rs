//! Submits noted calls to Redis: [`push`].

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use optimus_core::{
    Client, Durability, QueueName, Submission, TaskId,
    broker::{Batch, Broker, BrokerError, Receipt, Refusal, Submitted},
};
use tokio::time::Instant;

use crate::{calls::StoredCall, noted::Share};

/// How long Redis may take to confirm a batch.
const CONFIRM_WITHIN: Duration = Duration::from_secs(5);
/// How often a queue is made known to inspectors, because Redis may have lost that.
const ANNOUNCE_EVERY: Duration = Duration::from_secs(30);

/// How long it is kept at least which task held the biz id of a call.
const OWNER_KEPT: Duration = Duration::from_secs(3600);

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
}

impl Pusher {
    pub(crate) fn new(client: Client, durability: Durability) -> Self {
        let broker = client.broker().separate("relay");
        Self { client, broker, durability, announced: Mutex::default() }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn broker(&self) -> &Broker {
        &self.broker
    }

    /// Sends a share under its number, as often as the caller likes: the ledger answers repeats.
    pub(crate) async fn push(&self, ledger: &str, share: &Share, calls: &[StoredCall]) -> Pushed {
        let tasks: Vec<Submission> = calls.iter().map(|stored| stored.call.clone()).collect();
        let batch = Batch {
            queue: &share.queue,
            client: ledger,
            number: share.call,
            since: 0,
            keep: false,
            tasks: &tasks,
        };
        match self.submit(&batch).await {
            Ok(submitted) => {
                if let Err(problem) = self.note_owners(calls, &submitted.receipts).await {
                    return Pushed::Wait(problem.to_string());
                }
                self.announce(&share.queue).await;
                if submitted.posted {
                    self.client.carry_asks(&share.queue).await;
                }
                Pushed::Done(refused(calls, submitted.receipts))
            }
            Err(BrokerError::Refused(Refusal::Forgotten, _)) => Pushed::Forgotten,
            Err(BrokerError::Rejected(why)) => Pushed::Refused(why),
            Err(problem) => Pushed::Wait(problem.to_string()),
        }
    }

    async fn submit(&self, batch: &Batch<'_>) -> Result<Submitted, BrokerError> {
        if self.durability == Durability::Memory {
            return self.broker.submit(batch).await;
        }
        let call = self.broker.submit_call(batch);
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
                kept = kept.max(stored.call.result_ttl());
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
