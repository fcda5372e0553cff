//! `complete`, `fail`, `release`: how attempts end.

use std::{collections::HashMap, io::Write as _, time::Duration};

use super::{
    Broker, BrokerError, Reply, ScriptCall,
    scripts::{self, Script},
};
use crate::{
    id::{QueueName, WorkerId},
    lease::{Lease, Token},
    record::millis,
};

/// An attempt that succeeded.
#[derive(Debug, Clone)]
pub struct Completion {
    /// Its hold.
    pub lease: Lease,
    /// The task's name.
    pub task: &'static str,
    /// Its biz id, where it has one.
    pub biz_id: Option<String>,
    /// Which attempt it was, from 1.
    pub attempt: u32,
    /// How long it ran.
    pub took: Duration,
    /// When it ended, in ms by Redis' clock.
    pub ended_ms: u64,
    /// What the handler returned and how long to keep it.
    pub result: Option<(Vec<u8>, Duration)>,
}

impl Completion {
    /// Its line in the list of the last successes.
    fn write_summary(&self, bytes: &mut Vec<u8>) {
        let Self { lease, task, attempt, ended_ms, .. } = self;
        bytes.extend_from_slice(&lease.id.stored_bytes());
        let (ms, worker) = (self.took.as_millis(), &lease.worker);
        write!(bytes, " {ended_ms} {task} {attempt} {ms} {worker}").expect("a vector takes all");
    }
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Give {
    /// To the head of the line.
    Head,
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
        let mut call =
            self.report_call(&scripts::COMPLETE, queue, worker, done.iter().map(|d| &d.lease));
        for completion in done {
            call.push_with(|bytes| completion.write_summary(bytes));
        }
        let (mut extras, mut bodies) = (Vec::new(), Vec::new());
        // Two tasks of one biz id can't be live at once, but one key must not be declared twice.
        let mut declared = HashMap::new();
        for (at, completion) in done.iter().enumerate() {
            if completion.result.is_none() && completion.biz_id.is_none() {
                continue;
            }
            let (mut result, mut ttl, mut body) = (0, 0, 0);
            if let Some((bytes, keep)) = &completion.result {
                result = call.extra_key(&keys.owned("result:", &completion.lease.id.stored()));
                bodies.push(bytes);
                (ttl, body) = (millis(*keep).max(1), bodies.len());
            }
            let biz = completion.biz_id.as_ref().map_or(0, |id| {
                let key = keys.biz(completion.task, id);
                *declared.entry(key).or_insert_with_key(|key| call.extra_key(key))
            });
            extras.push(format!("{};{result};{ttl};{body};{biz}", at + 1));
        }
        if !extras.is_empty() {
            call.push(extras.len());
        }
        for extra in extras {
            call.push(extra);
        }
        for body in bodies {
            call.push_bytes(body);
        }
        call
    }

    /// Ends attempts of one worker in one queue that did not succeed.
    pub fn fail_call(
        &self,
        queue: &QueueName,
        worker: &WorkerId,
        failed: &[Failure],
    ) -> ScriptCall {
        let mut call =
            self.report_call(&scripts::FAIL, queue, worker, failed.iter().map(|f| &f.lease));
        for failure in failed {
            match failure.verdict {
                Verdict::Retry(wait) => call.push(format_args!("retry:{}", millis(wait))),
                Verdict::Dead => call.push("dead:"),
                Verdict::Cancelled => call.push("cancelled:"),
            }
        }
        for failure in failed {
            call.push(&failure.error);
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
        let mut call =
            self.report_call(&scripts::RELEASE, queue, worker, given.iter().map(|g| &g.lease));
        for release in given {
            match release.give {
                Give::Head => call.push("head:"),
                Give::Snooze(wait) => call.push(format_args!("snooze:{}", millis(wait))),
                Give::Misfit(wait) => call.push(format_args!("misfit:{}", millis(wait))),
            }
        }
        call
    }

    /// What all reports have in common: runs of equal tokens, then the ids.
    fn report_call<'a>(
        &self,
        script: &'static Script,
        queue: &QueueName,
        worker: &WorkerId,
        leases: impl ExactSizeIterator<Item = &'a Lease> + Clone,
    ) -> ScriptCall {
        let mut runs: Vec<(Token, usize)> = Vec::new();
        for lease in leases.clone() {
            match runs.last_mut() {
                Some((token, length)) if *token == lease.token => *length += 1,
                _ => runs.push((lease.token, 1)),
            }
        }
        let mut call = self.call(script, queue, worker.as_str()).arg(runs.len());
        for (token, length) in runs {
            call.push(token);
            call.push(length);
        }
        for lease in leases {
            call.push_id(&lease.id);
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
