//! The background task that carries submits: concurrent ones share calls, lost replies are asked
//! for again.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream};
use tokio::sync::{mpsc, oneshot};

use crate::{
    Error,
    broker::{Batch, Broker, BrokerError, Receipt},
    id::QueueName,
    record::Submission,
};

const CALL_TASKS_MAX: usize = 1000;
const CALL_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Calls of one queue that may be unanswered at once; must stay below the ledger's slots.
const CALLS_IN_FLIGHT: usize = 4;
/// Submits that gather while calls are in flight.
const ROUND_MAX: usize = 4096;
const KEEP_EVERY: Duration = Duration::from_secs(3600);
const RESEND_FIRST: Duration = Duration::from_millis(20);
const RESEND_MAX: Duration = Duration::from_secs(1);

type Answer = Result<Receipt, Error>;

struct Pending {
    submission: Submission,
    answer: oneshot::Sender<Answer>,
}

/// The sending end.
pub(super) struct Submitter(mpsc::Sender<Pending>);

impl Submitter {
    pub(super) fn spawn(broker: Broker, timeout: Duration) -> Self {
        let (sender, mut inbox) = mpsc::channel(ROUND_MAX);
        let client = uuid::Uuid::now_v7().simple().to_string();
        let mut carrier = Carrier { broker, client, timeout, queues: HashMap::new() };
        tokio::spawn(async move {
            let mut round = Vec::new();
            while inbox.recv_many(&mut round, ROUND_MAX).await > 0 {
                carrier.carry(std::mem::take(&mut round)).await;
            }
        });
        Self(sender)
    }

    /// The answer of each task, in order.
    pub(super) async fn submit(&self, submissions: Vec<Submission>) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(submissions.len());
        for submission in submissions {
            let (answer, receiver) = oneshot::channel();
            // A closed channel shows as a dropped answer below.
            drop(self.0.send(Pending { submission, answer }).await);
            answers.push(receiver);
        }
        let mut received = Vec::with_capacity(answers.len());
        for answer in answers {
            received.push(answer.await.unwrap_or_else(|_| Err(Error::closed())));
        }
        received
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
    announced: bool,
}

struct Chunk {
    queue: QueueName,
    number: u64,
    keep: bool,
    tasks: Vec<Submission>,
    answers: Vec<oneshot::Sender<Answer>>,
}

impl Carrier {
    async fn carry(&mut self, round: Vec<Pending>) {
        let chunks = self.chunks(round);
        self.announce(&chunks).await;
        let (broker, client, timeout) = (&self.broker, &self.client, self.timeout);
        // Each future sends when it is first polled, so chunks of a queue arrive in their order.
        stream::iter(chunks)
            .map(|chunk| deliver(broker, client, timeout, chunk))
            .buffer_unordered(CALLS_IN_FLIGHT)
            .collect::<()>()
            .await;
    }

    fn chunks(&mut self, round: Vec<Pending>) -> Vec<Chunk> {
        let mut chunks: Vec<Chunk> = Vec::new();
        let mut open: HashMap<QueueName, (usize, usize)> = HashMap::new();
        for Pending { submission, answer } in round {
            let queue = submission.id.queue().clone();
            let bytes = submission.payload.len();
            let fits = open.get(&queue).filter(|(at, held)| {
                chunks[*at].tasks.len() < CALL_TASKS_MAX && held + bytes <= CALL_BYTES_MAX
            });
            let (at, held) = fits.copied().unwrap_or_else(|| {
                chunks.push(self.open_chunk(&queue));
                (chunks.len() - 1, 0)
            });
            open.insert(queue, (at, held + bytes));
            chunks[at].tasks.push(submission);
            chunks[at].answers.push(answer);
        }
        chunks
    }

    fn open_chunk(&mut self, queue: &QueueName) -> Chunk {
        let ledger = self.queues.entry(queue.clone()).or_default();
        let keep = ledger.kept_at.is_none_or(|kept| kept.elapsed() > KEEP_EVERY);
        if keep {
            ledger.kept_at = Some(Instant::now());
        }
        ledger.next_number += 1;
        let number = ledger.next_number;
        Chunk { queue: queue.clone(), number, keep, tasks: Vec::new(), answers: Vec::new() }
    }

    /// Inspectors find queues by this; a failure here is tried again with the next submit.
    async fn announce(&mut self, chunks: &[Chunk]) {
        let queues: HashSet<&QueueName> = chunks.iter().map(|chunk| &chunk.queue).collect();
        for queue in queues {
            let ledger = self.queues.entry(queue.clone()).or_default();
            if !ledger.announced {
                let quickly = self.broker.within(Duration::ZERO);
                ledger.announced = quickly.announce(queue).await.is_ok();
            }
        }
    }
}

async fn deliver(broker: &Broker, client: &str, timeout: Duration, chunk: Chunk) {
    let Chunk { queue, number, keep, tasks, answers } = chunk;
    let batch = Batch { queue: &queue, client, number, keep, tasks: &tasks };
    match send_until_answered(broker, &batch, timeout).await {
        Ok(receipts) => {
            for (answer, receipt) in answers.into_iter().zip(receipts) {
                // Nobody may be waiting any more: its future was dropped. The task stands.
                drop(answer.send(Ok(receipt)));
            }
        }
        Err(problem) => {
            for answer in answers {
                drop(answer.send(Err(problem.clone())));
            }
        }
    }
}

/// Sends a batch, again and again under the same number, until it is answered or time is up.
async fn send_until_answered(
    broker: &Broker,
    batch: &Batch<'_>,
    timeout: Duration,
) -> Result<Vec<Receipt>, Error> {
    let deadline = Instant::now() + timeout;
    let (mut may_be_done, mut wait) = (false, RESEND_FIRST);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let problem = match broker.within(left).submit(batch).await {
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
