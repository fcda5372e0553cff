//! The background task that carries submits: concurrent ones share calls, lost replies are asked
//! for again.

use std::{collections::HashMap, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use super::{
    confirmer::{CALLS_MAX, Confirmer},
    parcels::{Answers, Chunk, Parcel, Waiting},
};
use crate::{
    Error,
    broker::{Batch, Broker, BrokerError, LEDGER_SLOTS, Receipt},
    id::QueueName,
    machine,
    record::Submission,
};

/// Calls that may be unanswered at once, where answers come at once: more would be smaller ones.
const CALLS_IN_FLIGHT: usize = 4;
/// Parcels that wait to be taken in, and that are taken in at once.
const ROUND_MAX: usize = 1024;
/// With so many calls waiting, nothing more is taken in.
const CALLS_WAITING: usize = 16;
const KEEP_EVERY: Duration = Duration::from_secs(3600);
const RESEND_FIRST: Duration = Duration::from_millis(20);
const RESEND_MAX: Duration = Duration::from_secs(1);

/// A slot of the ledger is written anew once the call that it answers was answered.
const _: () = assert!((CALLS_MAX as u64) < LEDGER_SLOTS && CALLS_IN_FLIGHT <= CALLS_MAX);

/// The sending end.
pub(super) struct Submitter(mpsc::Sender<Parcel>);

/// The answers of a parcel, on their way.
pub(super) struct Expected {
    count: usize,
    receiver: oneshot::Receiver<Answers>,
}

impl Submitter {
    /// Starts it; with a confirmer, submits go through that.
    pub(super) fn spawn(broker: Broker, confirmer: Option<Confirmer>, timeout: Duration) -> Self {
        let (sender, inbox) = mpsc::channel(ROUND_MAX);
        let client = machine::new_uuid().simple().to_string();
        tokio::spawn(async move {
            let way = Way { broker, confirmer, timeout };
            Carrier { way, client, queues: HashMap::new() }.carry(inbox).await;
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
    way: Way,
    client: String,
    queues: HashMap<QueueName, Ledger>,
}

/// What the client knows of its ledger in one queue.
#[derive(Default)]
struct Ledger {
    next_number: u64,
    kept_at: Option<Instant>,
    /// Of its connections, at the last call.
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
        let calls_max = if self.way.confirmer.is_some() { CALLS_MAX } else { CALLS_IN_FLIGHT };
        let mut in_flight = FuturesUnordered::new();
        while open || !waiting.is_empty() || !in_flight.is_empty() {
            let idle = in_flight.is_empty();
            while in_flight.len() < calls_max
                && let Some(chunk) = waiting.next(idle)
            {
                let numbered = self.number(chunk).await;
                let call = deliver(self.way.clone(), self.client.clone(), numbered);
                // Boxed and polled at once, so that calls of a queue arrive in their order.
                in_flight.push(Box::pin(call));
            }
            tokio::select! {
                biased;
                Some(delivered) = in_flight.next(), if !in_flight.is_empty() => {
                    self.note(&delivered);
                    // Who was just answered may go on to submit: their next shares a call.
                    machine::yield_now().await;
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
        let breaks = self.way.breaks();
        let moved = ledger.breaks != breaks;
        ledger.breaks = breaks;
        ledger.announced &= !moved;
        if !ledger.announced {
            // Inspectors find queues by this; a failure is tried again with the next call.
            let quickly = self.way.broker.within(Duration::ZERO);
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

async fn deliver(way: Way, client: String, numbered: Numbered) -> Delivered {
    let Numbered { chunk, number, keep } = numbered;
    let tasks = chunk.submissions();
    let batch = Batch { queue: chunk.queue(), client: &client, number, keep, tasks };
    let receipts = way.send_until_answered(&batch).await;
    let delivered = Delivered { queue: chunk.queue().clone(), unkept: keep && receipts.is_err() };
    chunk.answer(receipts);
    delivered
}

/// How a batch gets to Redis, and for how long that is tried.
#[derive(Clone)]
struct Way {
    broker: Broker,
    confirmer: Option<Confirmer>,
    timeout: Duration,
}

impl Way {
    /// How often a connection was dropped so far.
    fn breaks(&self) -> u64 {
        self.broker.breaks() + self.confirmer.as_ref().map_or(0, Confirmer::breaks)
    }

    /// Sends a batch, again and again under the same number, until it is answered or time is up.
    async fn send_until_answered(&self, batch: &Batch<'_>) -> Result<Vec<Receipt>, Error> {
        let deadline = Instant::now() + self.timeout;
        let (mut maybe_done, mut wait) = (None, RESEND_FIRST);
        let (mut batch, breaks) = (*batch, self.breaks());
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            batch.keep |= self.breaks() != breaks;
            let answer = match &self.confirmer {
                None => self.broker.within(left).submit(&batch).await,
                Some(confirmer) => confirmer.submit(&batch).await,
            };
            let problem = match answer {
                Ok(receipts) => return Ok(receipts),
                Err(problem) => problem,
            };
            if let BrokerError::Unknown(why) = &problem {
                maybe_done = Some(why.clone());
            }
            if !problem.is_transient() || Instant::now() + wait >= deadline {
                let ids = || batch.tasks.iter().map(|task| task.id.clone()).collect();
                return Err(match maybe_done {
                    Some(why) => Error::unknown_outcome(ids(), why),
                    None => problem.into(),
                });
            }
            tokio::time::sleep(wait.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
            wait = (wait * 2).min(RESEND_MAX);
        }
    }
}
