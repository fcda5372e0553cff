//! `complete`, `fail`, `release`: how attempts end.

use std::{collections::HashMap, time::Duration};

use super::{Broker, BrokerError, Reply, ScriptCall, scripts};
use crate::{
    id::{QueueName, WorkerId},
    lease::Lease,
    record::millis,
};

/// An attempt that succeeded.
#[derive(Debug, Clone)]
pub struct Completion {
    /// Its hold.
    pub lease: Lease,
    /// `<task> <attempt> <ms> <worker>`, for the list of the last successes.
    pub summary: String,
    /// What the handler returned and how long to keep it.
    pub result: Option<(Vec<u8>, Duration)>,
    /// The task's name and biz id, where it has one.
    pub biz: Option<(String, String)>,
}

/// An attempt that did not succeed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Its hold.
    pub lease: Lease,
    /// What is to become of the task.
    pub verdict: Verdict,
    /// The entry of its error history, as JSON; empty for none.
    pub error: String,
}

/// What is to become of a task that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Another attempt after this wait.
    Retry(Duration),
    /// No further attempt.
    Dead,
    /// No longer wanted.
    Cancelled,
}

/// A task given back without an attempt.
#[derive(Debug, Clone)]
pub struct Release {
    /// Its hold.
    pub lease: Lease,
    /// How.
    pub give: Give,
}

/// How a task is given back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Give {
    /// To the head of the line, under the stamp it had, if known.
    Head(String),
    /// To come back after this wait.
    Snooze(Duration),
    /// To come back after this wait, counted as a worker that could not run it.
    Misfit(Duration),
}

impl Broker {
    /// Ends attempts of one worker in one queue that succeeded; answers the positions whose lease
    /// was another's by then.
    pub fn complete_call(
        &self,
        queue: &QueueName,
        worker: &WorkerId,
        done: &[Completion],
    ) -> ScriptCall {
        let keys = self.keys(queue);
        let mut call = self.call(&scripts::COMPLETE, queue, worker.as_str()).arg(done.len());
        let mut bodies = Vec::new();
        // Two tasks of one biz id can't be live at once, but one key must not be declared twice.
        let mut declared = HashMap::new();
        for completion in done {
            let stored = completion.lease.id.stored();
            let (mut result, mut ttl, mut body) = (0, 0, 0);
            if let Some((bytes, keep)) = &completion.result {
                result = call.extra_key(keys.owned("result:", &stored));
                bodies.push(bytes.clone());
                (ttl, body) = (millis(*keep).max(1), bodies.len());
            }
            let biz = completion.biz.as_ref().map_or(0, |(task, id)| {
                let key = keys.biz(task, id);
                *declared.entry(key.clone()).or_insert_with(|| call.extra_key(key))
            });
            let extra = if result == 0 && biz == 0 {
                String::new()
            } else {
                format!("{result};{ttl};{body};{biz}")
            };
            call = call
                .raw(stored)
                .arg(completion.lease.token)
                .raw(completion.summary.as_bytes())
                .raw(extra);
        }
        call.args.extend(bodies);
        call
    }

    /// Ends attempts of one worker in one queue that did not succeed.
    pub fn fail_call(
        &self,
        queue: &QueueName,
        worker: &WorkerId,
        failed: &[Failure],
    ) -> ScriptCall {
        let mut call = self.call(&scripts::FAIL, queue, worker.as_str()).arg(failed.len());
        for failure in failed {
            let verdict = match failure.verdict {
                Verdict::Retry(wait) => format!("retry:{}", millis(wait)),
                Verdict::Dead => "dead:".into(),
                Verdict::Cancelled => "cancelled:".into(),
            };
            call = call
                .raw(failure.lease.id.stored())
                .arg(failure.lease.token)
                .raw(verdict)
                .raw(failure.error.as_bytes());
        }
        call
    }

    /// Gives back tasks of one worker in one queue.
    pub fn release_call(
        &self,
        queue: &QueueName,
        worker: &WorkerId,
        given: &[Release],
    ) -> ScriptCall {
        let mut call = self.call(&scripts::RELEASE, queue, worker.as_str()).arg(given.len());
        for release in given {
            let how = match &release.give {
                Give::Head(stamp) => format!("head:{stamp}"),
                Give::Snooze(wait) => format!("snooze:{}", millis(*wait)),
                Give::Misfit(wait) => format!("misfit:{}", millis(*wait)),
            };
            call = call.raw(release.lease.id.stored()).arg(release.lease.token).raw(how);
        }
        call
    }

    /// Reads the answer of any report: the positions, from 0, whose lease was another's by then.
    pub fn read_report(reply: Reply) -> Result<Vec<usize>, BrokerError> {
        reply
            .rest()?
            .iter()
            .map(|position| {
                position
                    .parse::<usize>()
                    .ok()
                    .and_then(|position| position.checked_sub(1))
                    .ok_or_else(|| BrokerError::Odd(format!("a report answered {position:?}")))
            })
            .collect()
    }

    /// One report on its own.
    pub async fn report(&self, call: ScriptCall) -> Result<Vec<usize>, BrokerError> {
        Self::read_report(self.run(call).await?)
    }
}
