//! Collects submits into calls: [`CallerBatch`] → [`Request`], through [`Waiting`].

use std::{borrow::Cow, collections::VecDeque, mem, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, oneshot},
    time::Instant,
};

use crate::{
    Error,
    after::NOT_SUBMITTED,
    broker::Receipt,
    guarded_drop::{discard, send},
    id::QueueName,
    submission::{Fields, Submission},
};

const CALL_TASKS_MAX: usize = 1000;
const CALL_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The largest difference between deadlines in one call, because the whole call is retried until
/// the last deadline.
const DEADLINES_WITHIN: Duration = Duration::from_millis(400);

/// The answer of each task, in order.
pub(super) type Answers = Vec<Result<Answer, Error>>;

/// The answer for one task.
pub(super) struct Answer {
    pub(super) task: Cow<'static, str>,
    pub(super) receipt: Receipt,
    /// The number of the call that submitted the task.
    pub(super) call: u64,
    /// Whether the task's id was given.
    pub(super) has_given_id: bool,
    /// Whether its handler returns `()`.
    pub(super) returns_nothing: bool,
}

/// Tasks of one queue from one caller, at most as many as fit in one call.
pub(super) struct CallerBatch {
    pub(super) submissions: Vec<Submission>,
    pub(super) answer: oneshot::Sender<Answers>,
    /// When the client stops trying to send the batch.
    pub(super) deadline: Instant,
    /// The batch's share of the bytes that may be in progress, held until the batch is answered.
    pub(super) room: OwnedSemaphorePermit,
}

/// Returns whether one more task fits into a call with this many tasks and bytes.
pub(super) fn fits(tasks: usize, bytes: usize, more: &Submission) -> bool {
    tasks < CALL_TASKS_MAX && (tasks == 0 || bytes + more.bytes() <= CALL_BYTES_MAX)
}

/// The batches of one call.
pub(super) struct Request {
    submissions: Vec<Submission>,
    bytes: usize,
    /// The callers that wait, each with its number of tasks, in order.
    answers: Vec<(usize, oneshot::Sender<Answers>)>,
    full: bool,
    /// Whether the order of its tasks matters for those of other calls.
    has_lane: bool,
    /// The earliest and the latest deadline of its batches.
    deadlines: (Instant, Instant),
    room: Vec<OwnedSemaphorePermit>,
    /// Whether Redis may have it.
    is_sent: bool,
}

impl Drop for Request {
    /// Without an answer, the runtime of the client has ended while the call was in progress.
    fn drop(&mut self) {
        if !self.is_sent {
            return;
        }
        let mut ids = self.submissions.iter().map(|task| task.id.clone());
        for (count, answer) in self.answers.drain(..) {
            let ids = ids.by_ref().take(count).collect();
            let problem = Error::unknown_outcome(ids, "the runtime of the client has ended".into());
            send(answer, refused(count, &problem));
        }
    }
}

/// Returns the same error for all tasks.
pub(super) fn refused(count: usize, problem: &Error) -> Answers {
    (0..count).map(|_| Err(problem.clone())).collect()
}

impl Request {
    fn of(caller_batch: CallerBatch) -> Self {
        let CallerBatch { submissions, answer, deadline, room } = caller_batch;
        let (count, bytes) = (submissions.len(), bytes_of(&submissions));
        let (full, has_lane) = (count >= CALL_TASKS_MAX, has_lane(&submissions));
        let (answers, room) = (vec![(count, answer)], vec![room]);
        let deadlines = (deadline, deadline);
        Self { submissions, bytes, answers, full, has_lane, deadlines, room, is_sent: false }
    }

    /// Adds a batch, or returns it if the request is full.
    fn add(&mut self, caller_batch: CallerBatch) -> Result<(), CallerBatch> {
        let (count, bytes) = (caller_batch.submissions.len(), bytes_of(&caller_batch.submissions));
        let all = self.submissions.len() + count;
        let late = caller_batch.deadline > self.deadlines.0 + DEADLINES_WITHIN;
        if late || all > CALL_TASKS_MAX || self.bytes + bytes > CALL_BYTES_MAX {
            self.full = true;
            return Err(caller_batch);
        }
        self.has_lane |= has_lane(&caller_batch.submissions);
        self.submissions.extend(caller_batch.submissions);
        self.answers.push((count, caller_batch.answer));
        self.room.push(caller_batch.room);
        self.deadlines.1 = self.deadlines.1.max(caller_batch.deadline);
        self.bytes += bytes;
        self.full = all == CALL_TASKS_MAX;
        Ok(())
    }

    pub(super) fn queue(&self) -> &QueueName {
        self.submissions[0].id.queue()
    }

    /// Returns when the client stops trying to send the request: the latest deadline of its
    /// batches.
    pub(super) fn deadline(&self) -> Instant {
        self.deadlines.1
    }

    pub(super) fn submissions(&self) -> &[Submission] {
        &self.submissions
    }

    /// Notes that it is sent now.
    pub(super) fn note_sent(&mut self) {
        self.is_sent = true;
    }

    /// Sends each waiter its answers, for the call of this number.
    pub(super) fn answer(mut self, call: u64, receipts: Result<Vec<Receipt>, Error>) {
        let (submissions, answers) =
            (mem::take(&mut self.submissions), mem::take(&mut self.answers));
        let mut receipts = receipts.map(|receipts| receipts.into_iter().zip(submissions));
        for (count, answer) in answers {
            let theirs = match &mut receipts {
                Ok(receipts) => {
                    let answers = receipts.by_ref().take(count);
                    answers
                        .map(|(receipt, submission)| {
                            let Fields { task, may_exist, returns_nothing, .. } =
                                submission.into_fields();
                            if let Receipt::WaitsForItself(path) = receipt {
                                let what = format!("task {task:?}");
                                return Err(Error::waits_for_itself(what, path, NOT_SUBMITTED));
                            }
                            let has_given_id = may_exist;
                            Ok(Answer { task, receipt, call, has_given_id, returns_nothing })
                        })
                        .collect()
                }
                Err(problem) => refused(count, problem),
            };
            // The receiver may be gone, because the caller's future was dropped. The tasks stay
            // submitted.
            send(answer, theirs);
        }
        // This wakes the callers who wait for room.
        discard(mem::take(&mut self.room));
    }
}

fn bytes_of(submissions: &[Submission]) -> usize {
    submissions.iter().map(Submission::bytes).sum()
}

fn has_lane(submissions: &[Submission]) -> bool {
    submissions.iter().any(|submission| submission.lane.is_some())
}

/// Calls that are collecting tasks. The last one of each queue is open, the others are full.
#[derive(Default)]
pub(super) struct Waiting(VecDeque<Request>);

impl Waiting {
    pub(super) fn add(&mut self, caller_batch: CallerBatch) {
        let Some(first) = caller_batch.submissions.first() else { return };
        let queue = first.id.queue();
        let open = self.0.iter_mut().rev().find(|request| request.queue() == queue);
        let left = match open {
            Some(request) if !request.full => request.add(caller_batch).err(),
            _ => Some(caller_batch),
        };
        self.0.extend(left.map(Request::of));
    }

    /// Returns the next call to send. While a call of a queue is in progress, only full ones of
    /// that queue are sent, so that submits collect in the next one. A call with lanes waits until
    /// no other call of its queue is in progress: of two calls, the second may arrive first if the
    /// first must be sent again. The calls of a queue do not overtake each other.
    pub(super) fn next(&mut self, is_idle: impl Fn(&QueueName) -> bool) -> Option<Request> {
        let mut held = Vec::new();
        let at = self.0.iter().position(|request| {
            let queue = request.queue();
            let may_share = request.full && !request.has_lane;
            let is_next = !held.contains(&queue) && (may_share || is_idle(queue));
            if !is_next {
                held.push(queue);
            }
            is_next
        })?;
        self.0.remove(at)
    }

    /// Returns the earliest deadline of the waiting calls.
    pub(super) fn deadline(&self) -> Instant {
        self.0.iter().map(Request::deadline).min().unwrap_or_else(Instant::now)
    }

    /// Answers the calls whose deadline passed before they were sent.
    pub(super) fn refuse_late(&mut self, problem: &Error) {
        let now = Instant::now();
        let (late, waiting): (VecDeque<Request>, _) =
            mem::take(&mut self.0).into_iter().partition(|request| request.deadline() <= now);
        self.0 = waiting;
        for request in late {
            request.answer(0, Err(problem.clone()));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde::{Deserialize, Serialize};
    use tokio::sync::Semaphore;

    use super::*;
    use crate::{BoxError, call::Call, call_submit::Submit as _, context::Context, task::Task};

    #[derive(Serialize, Deserialize)]
    struct Letter {}

    impl Task for Letter {
        const NAME: &'static str = "letter";
        type Output = ();

        async fn run(self, _: Context) -> Result<(), BoxError> {
            Ok(())
        }
    }

    /// Submits this number of tasks to a queue at once.
    fn submit(waiting: &mut Waiting, queue: &str, tasks: usize, deadline: Instant) {
        submit_all(waiting, (0..tasks).map(|_| Letter {}.call().queue(queue)), deadline);
    }

    fn submit_all(
        waiting: &mut Waiting,
        calls: impl Iterator<Item = Call<Letter>>,
        deadline: Instant,
    ) {
        let submissions = calls.map(|call| call.into_submission().unwrap()).collect();
        let room = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let answer = oneshot::channel().0;
        waiting.add(CallerBatch { submissions, answer, deadline, room });
    }

    /// Returns the queue of the next call and its tasks, while calls of the `busy` queues are in
    /// progress.
    fn next(waiting: &mut Waiting, busy: &[&str]) -> Option<(String, usize)> {
        let request = waiting.next(|queue| !busy.contains(&queue.as_str()))?;
        Some((request.queue().to_string(), request.submissions().len()))
    }

    #[tokio::test]
    async fn submits_to_a_queue_collect_in_one_call_while_a_call_of_it_is_in_progress() {
        let (mut waiting, deadline) = (Waiting::default(), Instant::now());
        submit(&mut waiting, "mail", 1, deadline);
        assert_eq!(next(&mut waiting, &[]), Some(("mail".to_owned(), 1)));
        for _ in 0..10 {
            submit(&mut waiting, "mail", 1, deadline);
            assert_eq!(next(&mut waiting, &["mail"]), None);
        }
        assert_eq!(next(&mut waiting, &[]), Some(("mail".to_owned(), 10)));
    }

    #[tokio::test]
    async fn a_submit_to_one_queue_does_not_wait_for_the_calls_of_another() {
        let (mut waiting, deadline) = (Waiting::default(), Instant::now());
        for _ in 0..2 {
            submit(&mut waiting, "bulk", CALL_TASKS_MAX, deadline);
        }
        submit(&mut waiting, "quiet", 1, deadline);
        assert_eq!(next(&mut waiting, &[]), Some(("bulk".to_owned(), CALL_TASKS_MAX)));
        assert_eq!(next(&mut waiting, &["bulk"]), Some(("bulk".to_owned(), CALL_TASKS_MAX)));
        submit(&mut waiting, "bulk", CALL_TASKS_MAX, deadline);
        assert_eq!(next(&mut waiting, &["bulk"]), Some(("quiet".to_owned(), 1)));
        assert_eq!(next(&mut waiting, &["bulk"]), Some(("bulk".to_owned(), CALL_TASKS_MAX)));
    }

    #[tokio::test]
    async fn calls_with_lanes_are_sent_one_after_the_other_and_no_call_overtakes_them() {
        let (mut waiting, deadline) = (Waiting::default(), Instant::now());
        let in_lane = || Letter {}.call().queue("bulk").lane("a");
        for _ in 0..2 {
            submit_all(&mut waiting, (0..CALL_TASKS_MAX).map(|_| in_lane()), deadline);
        }
        submit(&mut waiting, "bulk", CALL_TASKS_MAX, deadline);
        submit(&mut waiting, "quiet", 1, deadline);
        let full = Some(("bulk".to_owned(), CALL_TASKS_MAX));
        assert_eq!(next(&mut waiting, &[]), full);
        assert_eq!(next(&mut waiting, &["bulk"]), Some(("quiet".to_owned(), 1)));
        assert_eq!(next(&mut waiting, &["bulk"]), None);
        assert_eq!(next(&mut waiting, &[]), full);
        assert_eq!(next(&mut waiting, &["bulk"]), full, "plain calls share the queue");
    }
}
