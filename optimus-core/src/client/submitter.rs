//! The background task that carries submits: concurrent ones share calls, lost replies are asked
//! for again.

use std::{collections::HashMap, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use super::parcels::{Answers, Chunk, Parcel, Waiting};
use crate::{
    Error,
    broker::{Batch, Broker, BrokerError, Receipt},
    id::QueueName,
    machine,
    record::Submission,
};

/// Calls that may be unanswered at once; must stay below the ledger's slots.
const CALLS_IN_FLIGHT: usize = 4;
/// Parcels that wait to be taken in, and that are taken in at once.
const ROUND_MAX: usize = 1024;
/// With so many calls waiting, nothing more is taken in.
const CALLS_WAITING: usize = 16;
const KEEP_EVERY: Duration = Duration::from_secs(3600);
const RESEND_FIRST: Duration = Duration::from_millis(20);
const RESEND_MAX: Duration = Duration::from_secs(1);

/// The sending end.
pub(super) struct Submitter(mpsc::Sender<Parcel>);

/// The answers of a parcel, on their way.
pub(super) struct Expected {
    count: usize,
    receiver: oneshot::Receiver<Answers>,
}

impl Submitter {
    pub(super) fn spawn(broker: Broker, timeout: Duration) -> Self {
        let (sender, inbox) = mpsc::channel(ROUND_MAX);
        let client = machine::new_uuid().simple().to_string();
        tokio::spawn(async move {
            let mut carrier = Carrier { broker, client, timeout, queues: HashMap::new() };
            carrier.carry(inbox).await;
        });
        Self(sender)
    }

    /// Hands a parcel over; waits while too many others are on their way.
    pub(super) async fn send(&self, submissions: Vec<Submission>) -> Expected {
        let count = submissions.len();
        let (answer, receiver) = oneshot::channel();
        // A closed channel shows as a dropped answer.
        drop(self.0.send(Parcel { submissions, answer }).await);
        Expected { count, receiver }
    }
}

impl Expected {
    /// The answer of each of its tasks, in order.
    pub(super) async fn answers(self) -> Answers {
        let closed = |_| (0..self.count).map(|_| Err(Error::closed())).collect();
        self.receiver.await.unwrap_or_else(closed)
    }
}

struct Carrier {
    broker: Broker,
    client: String,
    timeout: Duration,
    queues: HashMap<QueueName, Ledger>,
}

/// What the client knows of its ledger in one queue.
#[derive(Default)]
struct Ledger {
    next_number: u64,
    kept_at: Option<Instant>,
    /// Of the connection, at the last call.
    breaks: u64,
    announced: bool,
}

/// A chunk with its place in the ledger.
struct Numbered {
    chunk: Chunk,
    number: u64,
    keep: bool,
}

impl Carrier {
    /// Until all clients are gone and all is answered.
    async fn carry(&mut self, mut inbox: mpsc::Receiver<Parcel>) {
        let (mut waiting, mut round, mut open) = (Waiting::default(), Vec::new(), true);
        let mut in_flight = FuturesUnordered::new();
        while open || !waiting.is_empty() || !in_flight.is_empty() {
            let idle = in_flight.is_empty();
            while in_flight.len() < CALLS_IN_FLIGHT
                && let Some(chunk) = waiting.next(idle)
            {
                let numbered = self.number(chunk).await;
                let (broker, client) = (self.broker.clone(), self.client.clone());
                let call = deliver(broker, client, self.timeout, numbered);
                // Boxed and polled at once, so that calls of a queue arrive in their order.
                in_flight.push(Box::pin(call));
            }
            tokio::select! {
                biased;
                Some(delivered) = in_flight.next(), if !in_flight.is_empty() => {
                    self.note(&delivered);
                    // Who was just answered may go on to submit: their next shares a call.
                    tokio::task::yield_now().await;
                }
                count = inbox.recv_many(&mut round, ROUND_MAX),
                    if open && waiting.len() < CALLS_WAITING =>
                {
                    open = count > 0;
                    round.drain(..).for_each(|parcel| waiting.add(parcel));
                }
            }
        }
    }

    async fn number(&mut self, chunk: Chunk) -> Numbered {
        let ledger = self.queues.entry(chunk.queue().clone()).or_default();
        // A failover may have lost what was done once, and it breaks every connection.
        let breaks = self.broker.breaks();
        let moved = ledger.breaks != breaks;
        ledger.breaks = breaks;
        ledger.announced &= !moved;
        if !ledger.announced {
            // Inspectors find queues by this; a failure is tried again with the next call.
            let quickly = self.broker.within(Duration::ZERO);
            ledger.announced = quickly.announce(chunk.queue()).await.is_ok();
        }
        let keep = moved || ledger.kept_at.is_none_or(|kept| kept.elapsed() > KEEP_EVERY);
        if keep {
            ledger.kept_at = Some(Instant::now());
        }
        ledger.next_number += 1;
        Numbered { chunk, number: ledger.next_number, keep }
    }

    /// A ledger that is not kept would never be purged: the next call asks for it again.
    fn note(&mut self, delivered: &Delivered) {
        if delivered.unkept
            && let Some(ledger) = self.queues.get_mut(&delivered.queue)
        {
            ledger.kept_at = None;
        }
    }
}

/// How a call ended.
struct Delivered {
    queue: QueueName,
    /// It asked for the ledger to be kept, and was not answered so.
    unkept: bool,
}

async fn deliver(
    broker: Broker,
    client: String,
    timeout: Duration,
    numbered: Numbered,
) -> Delivered {
    let Numbered { chunk, number, keep } = numbered;
    let tasks = chunk.submissions();
    let batch = Batch { queue: chunk.queue(), client: &client, number, keep, tasks };
    let receipts = send_until_answered(&broker, &batch, timeout).await;
    let delivered = Delivered { queue: chunk.queue().clone(), unkept: keep && receipts.is_err() };
    chunk.answer(receipts);
    delivered
}

/// Sends a batch, again and again under the same number, until it is answered or time is up.
async fn send_until_answered(
    broker: &Broker,
    batch: &Batch<'_>,
    timeout: Duration,
) -> Result<Vec<Receipt>, Error> {
    let deadline = Instant::now() + timeout;
    let (mut may_be_done, mut wait) = (false, RESEND_FIRST);
    let (mut batch, breaks) = (*batch, broker.breaks());
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        batch.keep |= broker.breaks() != breaks;
        let problem = match broker.within(left).submit(&batch).await {
            Ok(receipts) => return Ok(receipts),
            Err(problem) => problem,
        };
        may_be_done |= matches!(problem, BrokerError::Unknown(_));
        let unknown = || Error::unknown_outcome(batch.tasks.iter().map(|t| t.id.clone()).collect());
        if !problem.is_transient() {
            return Err(if may_be_done { unknown() } else { problem.into() });
        }
        if Instant::now() + wait >= deadline {
            return Err(if may_be_done { unknown() } else { problem.into() });
        }
        tokio::time::sleep(wait.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
        wait = (wait * 2).min(RESEND_MAX);
    }
}
