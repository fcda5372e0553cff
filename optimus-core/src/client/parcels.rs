//! Submits on their way into calls: [`Parcel`] → [`Chunk`], through [`Waiting`].

use std::collections::VecDeque;

use tokio::sync::oneshot;

use crate::{Error, broker::Receipt, id::QueueName, record::Submission};

const CALL_TASKS_MAX: usize = 1000;
const CALL_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The answer of each task, in order.
pub(super) type Answers = Vec<Result<Answer, Error>>;

/// What became of a task.
pub(super) struct Answer {
    pub(super) receipt: Receipt,
    /// The number of its call.
    pub(super) call: u64,
}

/// Tasks of one queue that one caller submits, no more than one call takes.
pub(super) struct Parcel {
    pub(super) submissions: Vec<Submission>,
    pub(super) answer: oneshot::Sender<Answers>,
}

/// Whether one more task fits into a call of so many tasks and bytes.
pub(super) fn fits(tasks: usize, bytes: usize, more: &Submission) -> bool {
    tasks < CALL_TASKS_MAX && (tasks == 0 || bytes + more.payload.len() <= CALL_BYTES_MAX)
}

/// The parcels of one call.
pub(super) struct Chunk {
    submissions: Vec<Submission>,
    bytes: usize,
    /// Who waits, and for how many of them, in order.
    answers: Vec<(usize, oneshot::Sender<Answers>)>,
    full: bool,
}

impl Chunk {
    fn of(parcel: Parcel) -> Self {
        let Parcel { submissions, answer } = parcel;
        let (count, bytes) = (submissions.len(), bytes_of(&submissions));
        let full = count >= CALL_TASKS_MAX;
        Self { submissions, bytes, answers: vec![(count, answer)], full }
    }

    /// Takes a parcel in, or gives it back and is full.
    fn add(&mut self, parcel: Parcel) -> Result<(), Parcel> {
        let (count, bytes) = (parcel.submissions.len(), bytes_of(&parcel.submissions));
        let all = self.submissions.len() + count;
        if all > CALL_TASKS_MAX || self.bytes + bytes > CALL_BYTES_MAX {
            self.full = true;
            return Err(parcel);
        }
        self.submissions.extend(parcel.submissions);
        self.answers.push((count, parcel.answer));
        self.bytes += bytes;
        self.full = all == CALL_TASKS_MAX;
        Ok(())
    }

    pub(super) fn queue(&self) -> &QueueName {
        self.submissions[0].id.queue()
    }

    pub(super) fn submissions(&self) -> &[Submission] {
        &self.submissions
    }

    /// Tells everybody what became of theirs, in the call of that number.
    pub(super) fn answer(self, call: u64, receipts: Result<Vec<Receipt>, Error>) {
        let mut receipts = receipts.map(Vec::into_iter);
        for (count, answer) in self.answers {
            let theirs = match &mut receipts {
                Ok(receipts) => {
                    let answers = receipts.by_ref().take(count);
                    answers.map(|receipt| Ok(Answer { receipt, call })).collect()
                }
                Err(problem) => (0..count).map(|_| Err(problem.clone())).collect(),
            };
            // Nobody may be waiting any more: its future was dropped. The tasks stand.
            drop(answer.send(theirs));
        }
    }
}

fn bytes_of(submissions: &[Submission]) -> usize {
    submissions.iter().map(|submission| submission.payload.len()).sum()
}

/// Calls that gather: of each queue the last one is open, those before it are full.
#[derive(Default)]
pub(super) struct Waiting(VecDeque<Chunk>);

impl Waiting {
    pub(super) fn add(&mut self, parcel: Parcel) {
        let Some(first) = parcel.submissions.first() else { return };
        let queue = first.id.queue();
        let open = self.0.iter_mut().rev().find(|chunk| chunk.queue() == queue);
        let left = match open {
            Some(chunk) if !chunk.full => chunk.add(parcel).err(),
            _ => Some(parcel),
        };
        self.0.extend(left.map(Chunk::of));
    }

    /// The next call to send: any while nothing is under way, else only full ones, so that what
    /// comes meanwhile shares the next.
    pub(super) fn next(&mut self, idle: bool) -> Option<Chunk> {
        let at = self.0.iter().position(|chunk| idle || chunk.full)?;
        self.0.remove(at)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
