//! Counts and logs attempts whose reports Redis has answered: [`Answered`].
//!
//! An attempt is counted and logged after the answer to its report, because Redis may refuse the
//! report.

use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use optimus_core::{
    broker::{Failure, Reported},
    log::Log,
    log_event,
};
use tracing::level_filters::LevelFilter;

use crate::{
    attempts::{Attempt, Ended, Line},
    layer_ended,
    outcome_log::{self, End, Outcome},
    report_batch::ReportBatch,
    run_log::Calls,
    shared::Shared,
    user_code::discard,
};

/// The answer of Redis to a report.
pub(crate) enum Answer<'a> {
    /// Redis accepted the report, or the attempt has none.
    Taken,
    /// Redis refused the report, because the lease is over.
    Stale,
    /// Redis had been asked to stop the task, and cancelled it. This is the report, if it is a
    /// failure.
    Cancelled(Option<&'a Failure>),
    /// Redis has marked the task Dead: because of this loss, or because it had refused the report
    /// itself and accepted this one.
    Dead(&'a Failure),
    /// Redis did not answer before the worker ended.
    Unanswered,
}

impl Answer<'_> {
    /// Returns the outcome that counts instead of the one that was reported.
    fn instead(&self) -> Option<Outcome> {
        match *self {
            Self::Taken => None,
            Self::Stale => Some(Outcome::Stale),
            Self::Cancelled(failure) => Some(Outcome::cancelled(failure)),
            Self::Dead(failure) => Some(Outcome::dead(failure)),
            Self::Unanswered => Some(Outcome::Unanswered),
        }
    }
}

/// Attempts to log. An attempt may have an outcome that replaces its own. If the levels of the
/// outcomes are not logged, this list stays empty and allocates nothing. The calls of a run that
/// Redis refused together have one event.
#[derive(Default)]
pub(crate) struct Answered(Vec<Event>);

/// An event to log.
struct Event {
    attempt: Arc<Attempt>,
    /// The outcome that counts instead of the attempt's own, and the calls of a run that have it.
    instead: Option<(Outcome, Option<Calls>)>,
}

impl Event {
    /// Adds a call, if it is of the same run and has the same outcome, which is not its own.
    fn takes_in(&mut self, attempt: &Attempt, outcome: &Outcome) -> bool {
        match &mut self.instead {
            Some((own, Some(calls)))
                if mem::discriminant(own) == mem::discriminant(outcome)
                    && self.attempt.is_in_run_of(attempt) =>
            {
                calls.add(&attempt.lease.id);
                true
            }
            _ => false,
        }
    }
}

impl Answered {
    /// Counts an attempt that has ended, passes the answer to its layers, and keeps it for the log.
    pub(crate) fn end(&mut self, shared: &Shared, attempt: Arc<Attempt>, answer: &Answer<'_>) {
        let Some(ended) = attempt.ended() else { return };
        layer_ended::answered(&attempt, answer);
        let Some(replaced) = answer.instead() else {
            count(shared, &attempt, ended, &ended.outcome);
            let is_logged = !matches!(ended.line, Line::OfAnother);
            if is_logged && ended.outcome.level() <= LevelFilter::current() {
                self.0.push(Event { attempt, instead: None });
            }
            return;
        };
        count(shared, &attempt, ended, &replaced);
        let is_logged = replaced.level() <= LevelFilter::current();
        let last = self.0.last_mut();
        if is_logged && !last.is_some_and(|last| last.takes_in(&attempt, &replaced)) {
            let calls = (!matches!(ended.line, Line::Own)).then(Calls::one);
            self.0.push(Event { attempt, instead: Some((replaced, calls)) });
        }
    }

    /// Logs the attempts, on the thread of the log.
    pub(crate) fn log(self, log: &Log) {
        if self.0.is_empty() {
            return;
        }
        let bytes = self.0.iter().map(kept_bytes).sum();
        log.add_all(self.0, bytes, |Event { attempt, instead }| {
            let Some(ended) = attempt.ended() else { return };
            let (outcome, calls) = match (&instead, &ended.line) {
                (Some((outcome, calls)), _) => (outcome, calls.as_ref()),
                (None, Line::OfRun(calls)) => (&ended.outcome, Some(calls)),
                (None, _) => (&ended.outcome, None),
            };
            let log = || outcome.log(&End::of(&attempt, ended.run, calls));
            // If the subscriber panics, only this event is lost.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(log)) {
                discard(panic);
            }
        });
    }
}

/// Counts an attempt with the outcome that counts.
fn count(shared: &Shared, attempt: &Attempt, ended: &Ended, outcome: &Outcome) {
    // A worker that has taken the task back has counted the loss.
    let is_refused = matches!(outcome, Outcome::Stale | Outcome::Unanswered);
    if ended.outcome.is_loss() && !is_refused {
        shared.tally.count_lost(outcome);
    } else {
        shared.tally.count(outcome);
    }
    shared.task_tallies.count(shared, attempt, outcome, ended);
}

/// The bytes of the texts that an attempt and its outcome keep until they are logged.
fn kept_bytes(Event { attempt, instead }: &Event) -> usize {
    let headers = attempt.ctx.headers().iter().map(|(name, value)| name.len() + value.len());
    let instead = instead.as_ref().map(|(outcome, _)| outcome);
    let outcomes = attempt.ended().map(|ended| &ended.outcome).into_iter().chain(instead);
    let errors = outcomes.filter_map(Outcome::error).map(str::len);
    let biz_id = attempt.facts.biz_id.as_ref().map_or(0, String::len);
    biz_id + headers.sum::<usize>() + errors.sum::<usize>()
}

/// Processes the answer to a batch. Redis refused the reports at the `stale` positions, because
/// their lease is over or because they arrived twice.
pub(crate) fn take_in(shared: &Shared, batch: &ReportBatch, reported: &Reported) {
    let Reported { stale, cancelled, dead, posted } = reported;
    if let (true, Some(place)) = (*posted, shared.queues.place(batch.queue())) {
        shared.queues[place].effects_posted();
    }
    for lease in stale.iter().filter_map(|position| batch.lease(*position)) {
        let id = lease.id.clone();
        let text = "a report changed nothing: it arrived twice, or its lease is over";
        log_event!(shared.log, DEBUG, %id, "{text}");
    }
    let mut answered = Answered::default();
    shared.attempts.remove(batch.leases(), |position, attempt| {
        let answer = if !batch.is_resent && stale.contains(&position) {
            Answer::Stale
        } else if cancelled.contains(&position) {
            Answer::Cancelled(batch.failure(position))
        } else if let Some(failure) = batch.failure(position).filter(|_| dead.contains(&position)) {
            Answer::Dead(failure)
        } else if let Some(failure) = batch.dead() {
            Answer::Dead(failure)
        } else {
            Answer::Taken
        };
        answered.end(shared, attempt, &answer);
    });
    answered.log(&shared.log);
    for (position, lease) in batch.leases().enumerate() {
        let Some(marked) = shared.marked_dead.remove(lease) else { continue };
        let is_taken = batch.is_resent || !stale.contains(&position);
        // If the lease is over, the report has not changed the task, so there is nothing to log.
        if let Some(failure) = batch.failure(position).filter(|_| is_taken) {
            let outcome = if cancelled.contains(&position) {
                Outcome::cancelled(Some(failure))
            } else {
                Outcome::failed(failure, None)
            };
            outcome_log::log_marked_dead(shared, lease.id.clone(), marked, outcome);
        }
    }
}

/// Logs the attempts whose reports Redis has not answered when the worker ends.
pub(crate) fn log_unanswered(shared: &Shared) {
    let mut answered = Answered::default();
    for attempt in shared.attempts.snapshot() {
        answered.end(shared, attempt, &Answer::Unanswered);
    }
    answered.log(&shared.log);
    for (id, marked) in shared.marked_dead.take_all() {
        outcome_log::log_marked_dead(shared, id, marked, Outcome::Unanswered);
    }
}

#[cfg(test)]
#[path = "answered_reports_tests.rs"]
mod tests;
