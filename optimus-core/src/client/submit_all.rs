//! Many submits of one caller. Full calls are sent while later ones are still being encoded.

use std::collections::BTreeMap;

use super::{
    submit_batches::{Answer, fits},
    submitter::{Expected, Submitter},
};
use crate::{
    Error,
    id::{QueueName, TaskId},
    submission::Submission,
};

/// The submits of one call of [`submit_all`](super::Client::submit_all).
pub(super) struct Bulk<'a> {
    submitter: &'a Submitter,
    /// The ids in the order of the calls, or why a call was not sent.
    ids: Vec<Result<TaskId, Error>>,
    open: BTreeMap<QueueName, Share>,
    sent: Vec<(Vec<usize>, Expected)>,
    /// How many of the first shares are answered.
    answered: usize,
    /// Why the remaining calls are not sent.
    given_up: Option<Error>,
}

/// Submits of one queue, and their positions among the calls.
#[derive(Default)]
struct Share {
    submissions: Vec<Submission>,
    places: Vec<usize>,
    bytes: usize,
}

impl<'a> Bulk<'a> {
    pub(super) fn new(submitter: &'a Submitter) -> Self {
        Self {
            submitter,
            ids: Vec::new(),
            open: BTreeMap::new(),
            sent: Vec::new(),
            answered: 0,
            given_up: None,
        }
    }

    /// Adds the next call, which can't be submitted.
    pub(super) fn refuse(&mut self, problem: Error) {
        self.ids.push(Err(problem));
    }

    /// Adds the next call. Sends a batch if it is full.
    pub(super) async fn add(&mut self, submission: Submission) {
        let share = self.open.entry(submission.id.queue().clone()).or_default();
        let full = !fits(share.submissions.len(), share.bytes, &submission);
        let before = if full { Some(std::mem::take(share)) } else { None };
        share.places.push(self.ids.len());
        share.bytes += submission.bytes();
        self.ids.push(Ok(submission.id.clone()));
        share.submissions.push(submission);
        if let Some(before) = before {
            self.send(before).await;
        }
    }

    /// After a submit has timed out, the remaining calls are refused at once, because each would
    /// take that time again.
    async fn send(&mut self, share: Share) {
        while self.given_up.is_none()
            && let Some((_, expected)) = self.sent.get_mut(self.answered)
        {
            self.given_up = expected.is_hopeless();
            if !expected.is_answered() {
                break;
            }
            self.answered += 1;
        }
        if let Some(problem) = &self.given_up {
            for place in share.places {
                self.ids[place] = Err(problem.clone());
            }
            return;
        }
        let expected = self.submitter.send(share.submissions).await;
        self.sent.push((share.places, expected));
    }

    /// Sends the remaining calls; returns the id and answer of each call, in order.
    pub(super) async fn answers(mut self) -> Vec<Result<(TaskId, Answer), Error>> {
        for share in std::mem::take(&mut self.open).into_values() {
            self.send(share).await;
        }
        let mut answers: Vec<Option<Result<Answer, Error>>> = Vec::new();
        answers.resize_with(self.ids.len(), || None);
        for (places, expected) in self.sent {
            for (place, answer) in places.into_iter().zip(expected.answers().await) {
                answers[place] = Some(answer);
            }
        }
        let pairs = self.ids.into_iter().zip(answers);
        pairs
            .map(|(id, answer)| {
                let id = id?;
                Ok((id, answer.expect("an answer for each task that was sent")?))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::{
        broker::{Broker, Endpoint},
        call_submit::Submit as _,
        context::Context,
        control_words::BoxError,
        task::Task,
    };

    const MIB: usize = 1024 * 1024;

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
    async fn many_large_calls_hold_no_more_than_the_bytes_in_progress_and_two_open_calls() {
        let endpoint = Endpoint::parse("redis://127.0.0.1:1/").unwrap();
        let broker = Broker::new(endpoint, "test", "test");
        let submitter = Submitter::spawn(broker, None, Duration::from_secs(600));
        let mut bulk = Bulk::new(&submitter);
        let large = || Cargo { cargo: "x".repeat(3 * MIB) }.call().into_submission().unwrap();
        let mut held = 3 * MIB;
        while bulk.add(large()).now_or_never().is_some() {
            held += 3 * MIB;
            assert!(held <= (64 + 2 * 4) * MIB, "{held} bytes");
        }
        assert!(held > 64 * MIB, "{held} bytes are enough to wait");
    }
}
