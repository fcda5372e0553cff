//! The background task that sends submits. Concurrent submits share calls, and calls whose answer
//! was lost are sent again.

use std::{collections::BTreeMap, panic::AssertUnwindSafe, pin::pin, sync::Arc, time::Duration};

use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    time::{Instant, sleep_until, timeout, timeout_at},
};

use super::{
    confirmer::{CALLS_MAX, Confirmer},
    delivery::Delivery,
    ledger::{Ledger, Over, Place},
    prerequisite_asks::{Asks, relay},
    submit_batches::{Answers, CallerBatch, Request, Waiting, refused},
};
use crate::{
    Error,
    broker::{Batch, Broker, LEDGER_SLOTS},
    id::QueueName,
    log_event, platform,
    submission::Submission,
};

/// The maximum number of calls in progress when answers come quickly. With more calls, each call
/// would be smaller.
const CALLS_IN_FLIGHT: usize = 4;
/// The maximum number of batches that wait to be received, and that are received at once.
const ROUND_MAX: usize = 1024;
/// The maximum bytes of tasks in progress, and the bytes that each task takes in addition to its
/// payload. Further submits wait.
const ROOM_BYTES: usize = 64 * 1024 * 1024;
const TASK_BYTES: usize = 512;
/// How often Redis is asked to keep the ledgers. A janitor removes idle ledgers, and without its
/// ledger a client has no proof that its tasks have succeeded. So a client asks many times within
/// the idle limit, even if it only waits.
const KEEP_EVERY: Duration = Duration::from_secs(600);
/// How soon Redis is asked again after a failure.
const KEEP_AGAIN: Duration = Duration::from_secs(30);
/// How long a submit waits until other queues know that its tasks wait for some of theirs.
const TOLD_WITHIN: Duration = Duration::from_secs(1);
/// How long a closing client tries to release its ledgers to the janitor, which otherwise removes
/// them an hour later.
const LEAVE_WITHIN: Duration = Duration::from_secs(5);

/// Each call in progress has its own slot of the ledger.
const _: () = assert!((CALLS_MAX as u64) < LEDGER_SLOTS && CALLS_IN_FLIGHT <= CALLS_MAX);

/// The sending end.
pub(super) struct Submitter {
    batches: mpsc::Sender<CallerBatch>,
    client: Arc<str>,
    timeout: Duration,
    /// The bytes that may still be in progress.
    room: Arc<Semaphore>,
}

/// The answers of a batch that is in progress.
pub(super) struct Expected {
    count: usize,
    state: State,
}

enum State {
    Open(oneshot::Receiver<Answers>),
    Answered(Answers),
}

impl Submitter {
    /// Starts the background task. If there is a confirmer, submits go through it.
    pub(super) fn spawn(broker: Broker, confirmer: Option<Confirmer>, timeout: Duration) -> Self {
        let (batches, inbox) = mpsc::channel(ROUND_MAX);
        let client: Arc<str> = platform::new_uuid().simple().to_string().into();
        let sender = Sender {
            delivery: Delivery { broker, confirmer },
            client: client.clone(),
            queues: BTreeMap::new(),
        };
        tokio::spawn(sender.carry(inbox));
        let room = Arc::new(Semaphore::new(ROOM_BYTES));
        Self { batches, client, timeout, room }
    }

    /// Returns the name of the client's ledgers.
    pub(super) fn client(&self) -> &str {
        &self.client
    }

    /// Returns how long a submit is retried.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns whether the runtime on which the submitter was started is still running.
    pub(super) fn is_open(&self) -> bool {
        !self.batches.is_closed()
    }

    /// Passes a batch to the background task. Waits while too many others are in progress. The time
    /// of the batch starts here.
    pub(super) async fn send(&self, submissions: Vec<Submission>) -> Expected {
        let count = submissions.len();
        let deadline = Instant::now() + self.timeout;
        let payloads: usize = submissions.iter().map(Submission::bytes).sum();
        let bytes = (payloads + count * TASK_BYTES).min(ROOM_BYTES);
        let bytes = u32::try_from(bytes).expect("the room is smaller");
        let handed = timeout_at(deadline, async {
            let room = self.room.clone().acquire_many_owned(bytes).await.ok()?;
            let (answer, receiver) = oneshot::channel();
            let caller_batch = CallerBatch { submissions, answer, deadline, room };
            self.batches.send(caller_batch).await.ok().map(|()| receiver)
        });
        let state = match handed.await {
            Ok(Some(receiver)) => State::Open(receiver),
            Ok(None) => State::Answered(refused(count, &Error::closed())),
            Err(_) => State::Answered(refused(count, &out_of_time())),
        };
        Expected { count, state }
    }
}

fn out_of_time() -> Error {
    Error::unavailable("Redis", "the submit timeout passed before the submit could be sent")
}

impl Expected {
    /// Waits for the answer of each task, in order.
    pub(super) async fn answers(self) -> Answers {
        match self.state {
            State::Open(receiver) => {
                receiver.await.unwrap_or_else(|_| refused(self.count, &Error::closed()))
            }
            State::Answered(answers) => answers,
        }
    }

    /// Returns why none of its tasks was submitted, if Redis is already known to be unreachable.
    pub(super) fn is_hopeless(&mut self) -> Option<Error> {
        if let State::Open(receiver) = &mut self.state
            && let Ok(answers) = receiver.try_recv()
        {
            self.state = State::Answered(answers);
        }
        let State::Answered(answers) = &self.state else { return None };
        let problem = answers.first()?.as_ref().err()?;
        problem.is_unavailable().then(|| problem.clone())
    }

    /// Returns whether the answers have arrived.
    pub(super) fn is_answered(&self) -> bool {
        matches!(self.state, State::Answered(_))
    }
}

struct Sender {
    delivery: Delivery,
    client: Arc<str>,
    /// In order, so that a run can be repeated exactly.
    queues: BTreeMap<QueueName, Ledger>,
}

/// A request with its place in the ledger.
struct Numbered {
    request: Request,
    place: Place,
    keep: bool,
    announce: bool,
    /// The count of broken connections when the request was numbered.
    breaks: u64,
}

impl Sender {
    /// Runs until all clients are gone and all calls are answered.
    async fn carry(mut self, mut inbox: mpsc::Receiver<CallerBatch>) {
        let (mut waiting, mut round, mut open) = (Waiting::default(), Vec::new(), true);
        let calls_max = if self.delivery.confirmer.is_some() { CALLS_MAX } else { CALLS_IN_FLIGHT };
        let mut asks = Asks::new(self.delivery.broker.clone());
        let (mut in_flight, mut keeping) = (FuturesUnordered::new(), FuturesUnordered::new());
        // When to keep the ledgers again. One timer for all rounds: a new one takes 600
        // instructions.
        let mut keep_at = pin!(sleep_until(Instant::now() + KEEP_EVERY));
        while open || !waiting.is_empty() || !in_flight.is_empty() {
            while in_flight.len() < calls_max
                && let Some(request) = waiting.next(|queue| self.is_idle(queue))
            {
                let numbered = self.number(request);
                let call = deliver(self.delivery.clone(), self.client.clone(), numbered);
                // Boxed and polled at once, so that calls of a queue arrive in order.
                in_flight.push(Box::pin(call));
            }
            tokio::select! {
                biased;
                Some(delivered) = in_flight.next(), if !in_flight.is_empty() => {
                    self.note(&delivered);
                    if delivered.posted {
                        asks.add(delivered.queue);
                    }
                    // Answered callers may submit again; their next submits then share a call.
                    platform::yield_now().await;
                }
                received = AssertUnwindSafe(inbox.recv_many(&mut round, ROUND_MAX)).catch_unwind(),
                    if open =>
                {
                    // A caller that waits to hand over a batch may have a waker that panics. What
                    // was received before is here.
                    open = received.is_err() || !round.is_empty();
                    round.drain(..).for_each(|caller_batch| waiting.add(caller_batch));
                }
                () = sleep_until(waiting.deadline()), if !waiting.is_empty() => {
                    waiting.refuse_late(&out_of_time());
                }
                () = asks.carry(), if !asks.is_empty() => {}
                Some(is_kept) = keeping.next(), if !keeping.is_empty() => {
                    let wait = if is_kept { KEEP_EVERY } else { KEEP_AGAIN };
                    keep_at.as_mut().reset(Instant::now() + wait);
                }
                () = keep_at.as_mut(),
                    if open && keeping.is_empty() && !self.queues.is_empty() =>
                {
                    keeping.push(Box::pin(self.keep()));
                }
            }
        }
        asks.finish().await;
        self.leave().await;
    }

    /// Releases the ledgers. No handle is left that could check a task, so they are no longer
    /// needed.
    async fn leave(self) {
        let settled = self.queues.into_iter().filter(|(_, ledger)| ledger.may_go());
        let queues: Vec<QueueName> = settled.map(|(queue, _)| queue).collect();
        let leaving = self.delivery.broker.leave_ledgers(&queues, &self.client);
        if let Ok(Err(problem)) = timeout(LEAVE_WITHIN, leaving).await {
            let log = self.delivery.broker.log();
            let text =
                "could not give up the ledgers of a client; a janitor removes them in an hour";
            log_event!(log, DEBUG, error = %problem, "{text}");
        }
    }

    /// Returns whether no call of this queue is in progress.
    fn is_idle(&self, queue: &QueueName) -> bool {
        self.queues.get(queue).is_none_or(Ledger::is_idle)
    }

    fn number(&mut self, request: Request) -> Numbered {
        let ledger = self.queues.entry(request.queue().clone()).or_default();
        // A failover may have lost the results of one-time requests, and it breaks every
        // connection.
        let breaks = self.delivery.breaks();
        if ledger.breaks != breaks {
            (ledger.breaks, ledger.announced, ledger.kept) = (breaks, false, false);
        }
        let (keep, announce) = (!ledger.kept, !ledger.announced);
        (ledger.kept, ledger.announced) = (true, true);
        let place = ledger.take().expect("fewer calls under way than slots");
        Numbered { request, place, keep, announce, breaks }
    }

    /// If a one-time step failed, the next call repeats it: a ledger that is not kept would never
    /// be purged, and inspectors find a queue by its announcement. A store that has lost calls has
    /// also lost these steps, even if no connection broke.
    fn note(&mut self, delivered: &Delivered) {
        let Some(ledger) = self.queues.get_mut(&delivered.queue) else { return };
        ledger.settle(delivered.number, delivered.over);
        ledger.kept &= !delivered.unkept;
        ledger.announced &= !delivered.unannounced;
    }

    /// Keeps the ledgers while the client lives; returns whether that succeeded.
    fn keep(&self) -> impl Future<Output = bool> + use<> {
        let queues: Vec<QueueName> = self.queues.keys().cloned().collect();
        let (broker, client) = (self.delivery.broker.clone(), self.client.clone());
        async move { broker.keep_ledgers(&queues, &client).await.is_ok() }
    }
}

/// How a call ended.
struct Delivered {
    queue: QueueName,
    number: u64,
    over: Over,
    /// Whether a request to keep the ledger has an unknown outcome.
    unkept: bool,
    /// Whether the announcement of the queue has an unknown outcome.
    unannounced: bool,
    /// Whether its tasks have asked something of other queues that these do not know yet.
    posted: bool,
}

async fn deliver(delivery: Delivery, client: Arc<str>, numbered: Numbered) -> Delivered {
    let Numbered { mut request, place: Place { number, since }, keep, announce, breaks } = numbered;
    request.note_sent();
    let (queue, deadline) = (request.queue().clone(), request.deadline());
    let tasks = request.submissions();
    let batch = Batch { queue: &queue, client: &client, number, since, keep, tasks };
    let mut sent = 0;
    let submitted = delivery.send_until(deadline, &batch, breaks, &mut sent).await;
    let over = match &submitted {
        // The confirmer may have sent the call again.
        Ok(_) if sent == 1 && delivery.confirmer.is_none() => Over::Answered,
        Ok(_) => Over::AnsweredAgain,
        Err(_) => Over::Unanswered,
    };
    let answered = over != Over::Unanswered;
    let lost = submitted.as_ref().is_ok_and(|submitted| submitted.lost);
    let posted = submitted.as_ref().is_ok_and(|submitted| submitted.posted);
    let is_refused = submitted.as_ref().is_err_and(|problem| !problem.is_unknown_outcome());
    let is_in_doubt = lost || (answered && delivery.breaks() != breaks);
    let mut announced = !announce;
    if (announce && !is_refused) || is_in_doubt {
        // The announcement comes after the tasks were stored, because an empty queue may be retired
        // with its name at the same time.
        announced = delivery.announce(&queue, deadline.max(Instant::now())).await;
    }
    let is_told = posted && tell_others(&delivery.broker, &queue).await;
    request.answer(number, submitted.map(|submitted| submitted.receipts));
    let unkept = (keep && !answered) || (lost && !keep);
    Delivered { queue, number, over, unkept, unannounced: !announced, posted: posted && !is_told }
}

/// Tells other queues for which of their tasks those of this queue wait, before the submit is
/// answered. Otherwise such a task could run, and be forgotten, before its queue knows that another
/// one waits. Returns false if it takes too long; then it goes on later.
async fn tell_others(broker: &Broker, queue: &QueueName) -> bool {
    timeout(TOLD_WITHIN, relay(broker.clone(), queue.clone())).await.is_ok()
}

#[cfg(test)]
mod tests {
    use std::task;

    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::{
        bomb_waker::bomb, broker::Endpoint, call_submit::Submit as _, context::Context,
        control_words::BoxError, task::Task,
    };

    #[derive(Serialize, Deserialize)]
    struct Cargo {
        cargo: String,
    }

    impl Task for Cargo {
        const NAME: &'static str = "cargo";
        type Output = ();

        async fn run(self, _: Context) -> Result<(), BoxError> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_submit_that_exceeds_the_bytes_in_progress_waits() {
        let endpoint = Endpoint::parse("redis://127.0.0.1:1/").unwrap();
        let broker = Broker::new(endpoint, "test", "test");
        let submitter = Submitter::spawn(broker, None, Duration::from_secs(600));
        let large = || {
            let cargo = "x".repeat(4 * 1024 * 1024);
            vec![Cargo { cargo }.call().into_submission().unwrap()]
        };
        let mut taken = Vec::new();
        while let Some(expected) = submitter.send(large()).now_or_never() {
            taken.push(expected);
            assert!(taken.len() < 16, "64 MiB are full");
        }
        assert_eq!(taken.len(), 15);
    }

    #[tokio::test]
    async fn a_waker_that_panics_disturbs_no_other_submit() {
        let endpoint = Endpoint::parse("memory://submits-with-a-bomb").unwrap();
        let submitter =
            Submitter::spawn(Broker::new(endpoint, "test", "test"), None, Duration::from_secs(60));
        let send = || {
            let cargo = String::new();
            submitter.send(vec![Cargo { cargo }.call().into_submission().unwrap()])
        };
        let [first, second] = [send().await, send().await];
        let mut first = pin!(first.answers());
        assert!(first.as_mut().poll(&mut task::Context::from_waker(&bomb())).is_pending());
        assert!(second.answers().await[0].is_ok());
        assert!(first.await[0].is_ok(), "its call was answered");
        assert!(send().await.answers().await[0].is_ok());
    }
}
