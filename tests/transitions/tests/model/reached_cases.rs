//! The cases that the runs reach. Without this check, a generator that no longer makes a case would
//! still pass.

use std::{collections::BTreeMap, fmt};

use optimus_core::{
    TaskState,
    broker::{Cancelled, Deleted, Refusal},
};

use crate::{answer::Answer, call::Call};

/// How often each case has occurred.
#[derive(Debug, Default)]
pub(crate) struct Reach(BTreeMap<&'static str, u64>);

/// The cases that this many steps together have to reach.
#[derive(Debug)]
pub(crate) struct Goal {
    pub(crate) enough_steps: u64,
    cases: &'static [&'static str],
}

/// The goal of narrow runs: the calls and their answers.
pub(crate) const NARROW_GOAL: Goal = Goal { enough_steps: 10_000, cases: &CASES };

/// The goal of wide runs: the limits of the scripts.
pub(crate) const WIDE_GOAL: Goal = Goal { enough_steps: 3_000, cases: &WIDE_CASES };

const CASES: [&str; 59] = [
    "reports let tasks continue later",
    "apply applies",
    "apply posts",
    "apply has applied before",
    "tasks give up",
    "submit admits all",
    "submit finds a biz id taken",
    "submit finds no room",
    "submit is forgotten",
    "submit is answered again",
    "claim grants",
    "claim grants what was tried",
    "claim grants nothing",
    "claim leaves work",
    "claim is answered again",
    "claim has lapsed",
    "claim is stale",
    "claim is paused",
    "complete ends",
    "complete is stale",
    "fail ends",
    "fail is stale",
    "release gives back",
    "release is stale",
    "register",
    "renew",
    "renew returns what should stop",
    "renew has lapsed",
    "reap takes",
    "reap leaves more",
    "reap finds no worker",
    "leave",
    "leave holds",
    "cancel ends",
    "cancel asks to stop",
    "cancel is too late",
    "requeue makes ready",
    "requeue finds the wrong state",
    "requeue finds the biz id taken",
    "pause",
    "resize sets a width",
    "resize changes a width",
    "delete removes",
    "delete leaves a running task",
    "purge takes",
    "purge takes for the bytes",
    "purge finds nothing",
    "retire removes a queue",
    "retire leaves a queue",
    "await waits",
    "await finds the end",
    "await finds others",
    "state is read",
    "inspect finds",
    "inspect finds nothing",
    "a queue is read",
    "completions are read",
    "a wakeup is taken",
    "a stop is read",
];

const WIDE_CASES: [&str; 3] =
    ["claim grants the most", "reap takes the most", "purge takes the most"];

impl Reach {
    /// Counts a case.
    pub(crate) fn count(&mut self, case: &'static str) {
        *self.0.entry(case).or_default() += 1;
    }

    /// Counts a call with its answer; `again` if the call was answered before.
    pub(crate) fn count_call(&mut self, call: &Call, answer: &Answer, again: bool) {
        if again && matches!(call, Call::Submit(_)) && matches!(answer, Answer::Receipts(..)) {
            return self.count("submit is answered again");
        }
        self.count(case_of(call, answer, again));
        if let Answer::Granted(granted) = answer {
            if granted.grants.iter().any(|grant| grant.tries != (0, 0, 0)) {
                self.count("claim grants what was tried");
            }
            if granted.more {
                self.count("claim leaves work");
            }
            if granted.grants.len() == 128 {
                self.count("claim grants the most");
            }
        }
        match answer {
            Answer::Reported(told) if told.posted => self.count("reports let tasks continue later"),
            Answer::Applied { posted: true, .. } => self.count("apply posts"),
            Answer::Reaped { tasks: 128, .. } => self.count("reap takes the most"),
            Answer::Purged { tasks: 64.., .. } => self.count("purge takes the most"),
            _ => {}
        }
    }

    /// Adds the counts of another run.
    pub(crate) fn add(&mut self, other: &Self) {
        for (case, count) in &other.0 {
            *self.0.entry(case).or_default() += count;
        }
    }

    /// Returns the cases of the goal that were never reached.
    pub(crate) fn missing(&self, goal: &Goal) -> Vec<&'static str> {
        goal.cases.iter().copied().filter(|case| !self.0.contains_key(case)).collect()
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<String> = self.0.iter().map(|(case, n)| format!("{case}: {n}")).collect();
        f.write_str(&counts.join(" · "))
    }
}

fn case_of(call: &Call, answer: &Answer, again: bool) -> &'static str {
    match (call, answer) {
        (Call::Submit(_), Answer::Receipts(owners, _)) if owners.iter().any(Option::is_some) => {
            "submit finds a biz id taken"
        }
        (Call::Submit(_), Answer::Refused(..)) => "submit is forgotten",
        (Call::Submit(_), Answer::Full) => "submit finds no room",
        (Call::Submit(_), _) => "submit admits all",
        (Call::Claim { .. }, Answer::Refused(Refusal::Lapsed, _)) => "claim has lapsed",
        (Call::Claim { .. }, Answer::Refused(Refusal::Stale, _)) => "claim is stale",
        (Call::Claim { .. }, Answer::Refused(..)) => "claim is paused",
        (Call::Claim { .. }, Answer::Granted(granted)) if granted.grants.is_empty() => {
            "claim grants nothing"
        }
        (Call::Claim { .. }, _) => "claim grants",
        (Call::Complete { done, .. }, Answer::Reported(told)) if told.stale.len() < done.len() => {
            "complete ends"
        }
        (Call::Complete { .. }, _) => "complete is stale",
        (Call::Fail { failed, .. }, Answer::Reported(told)) if told.stale.len() < failed.len() => {
            "fail ends"
        }
        (Call::Fail { .. }, _) => "fail is stale",
        (Call::Release { given, .. }, Answer::Reported(told)) if told.stale.len() < given.len() => {
            "release gives back"
        }
        (Call::Release { .. }, _) => "release is stale",
        (Call::Register { .. }, _) => "register",
        (Call::Renew { .. }, Answer::Renewed { stop, .. }) if stop.is_empty() => "renew",
        (Call::Renew { .. }, Answer::Renewed { .. }) => "renew returns what should stop",
        (Call::Renew { .. }, _) => "renew has lapsed",
        (Call::Reap { .. }, Answer::Reaped { more: true, .. }) => "reap leaves more",
        (Call::Reap { .. }, Answer::Reaped { tasks: 1.., .. }) => "reap takes",
        (Call::Reap { .. }, _) => "reap finds no worker",
        (Call::Leave { .. }, Answer::Holds(0)) => "leave",
        (Call::Leave { .. }, _) => "leave holds",
        (Call::Cancel { .. }, Answer::Cancelled(done)) if done.contains(&Cancelled::Requested) => {
            "cancel asks to stop"
        }
        (Call::Cancel { .. }, Answer::Cancelled(done)) if done.contains(&Cancelled::Done) => {
            "cancel ends"
        }
        (Call::Cancel { .. }, _) => "cancel is too late",
        _ => rare_case_of(call, answer, again),
    }
}

fn rare_case_of(call: &Call, answer: &Answer, again: bool) -> &'static str {
    match (call, answer) {
        (Call::Requeue { .. }, Answer::Done) => "requeue makes ready",
        (Call::Requeue { .. }, Answer::Refused(Refusal::Duplicate, _)) => {
            "requeue finds the biz id taken"
        }
        (Call::Requeue { .. }, _) => "requeue finds the wrong state",
        (Call::Delete { .. }, Answer::Deleted(done)) if done.contains(&Deleted::Done) => {
            "delete removes"
        }
        (Call::Delete { .. }, Answer::Deleted(done))
            if done.contains(&Deleted::Left(TaskState::Working)) =>
        {
            "delete leaves a running task"
        }
        (Call::Delete { .. }, _) => "delete finds nothing",
        (Call::Purge { .. }, Answer::Purged { above_bytes: 1.., .. }) => {
            "purge takes for the bytes"
        }
        (Call::Purge { .. }, Answer::Purged { tasks: 1.., .. }) => "purge takes",
        (Call::Purge { .. }, _) => "purge finds nothing",
        (Call::Retire { .. }, Answer::Retired(true)) => "retire removes a queue",
        (Call::Retire { .. }, _) => "retire leaves a queue",
        (Call::Await(_), Answer::Ended(_, along)) if along.iter().any(Option::is_some) => {
            "await finds others"
        }
        (Call::Await(_), Answer::Ended(Some(_), _)) => "await finds the end",
        (Call::Await(_), _) => "await waits",
        (Call::State { .. }, _) => "state is read",
        (Call::Inspect { .. }, Answer::Found(found)) if found.state == TaskState::Forgotten => {
            "inspect finds nothing"
        }
        (Call::Inspect { .. }, _) => "inspect finds",
        (Call::Pause { .. }, _) => "pause",
        (Call::Resize { .. }, Answer::Resized { before: Some(_), .. }) => "resize changes a width",
        (Call::Resize { .. }, _) => "resize sets a width",
        (Call::Apply { .. }, _) if again => "apply has applied before",
        (Call::Apply { .. }, _) => "apply applies",
        (Call::Reask, Answer::Reasked { tasks: 1.., .. }) => "tasks give up",
        (Call::Reask, _) => "nobody gives up",
        _ => "a queue is read",
    }
}
