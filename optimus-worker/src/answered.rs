//! What Redis answered to the reports of attempts, for the summary and the log: [`Answered`].
//!
//! An attempt is counted and logged once its report is answered, since Redis may refuse it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use optimus_core::{log::Log, tell};
use tracing::{Level, level_filters::LevelFilter};

use crate::{
    attempts::Attempt,
    outcome::{End, Outcome},
    report_batch::ReportBatch,
    shared::Shared,
    user_code::discard,
};

/// What became of a report.
pub(crate) enum Answer {
    /// Redis took it, or there is none.
    Taken,
    /// Redis took this one in its place.
    Replaced(Outcome),
}

/// Ends that are to be logged, each with what to say in place of what was judged. Where nobody
/// listens to them it is empty and allocates nothing.
#[derive(Default)]
pub(crate) struct Answered(Vec<(Arc<Attempt>, Option<Outcome>)>);

impl Answered {
    /// Counts an attempt that has ended, and keeps its end for the log.
    pub(crate) fn end(&mut self, shared: &Shared, attempt: Arc<Attempt>, answer: Answer) {
        let Some(ended) = attempt.ended() else { return };
        let instead = match answer {
            Answer::Taken => None,
            Answer::Replaced(outcome) => Some(outcome),
        };
        let outcome = instead.as_ref().unwrap_or(&ended.outcome);
        shared.tally.count(outcome);
        if outcome.level() <= LevelFilter::current() {
            self.0.push((attempt, instead));
        }
    }

    /// Logs them, on the thread of the log.
    pub(crate) fn tell(self, log: &Log) {
        if self.0.is_empty() {
            return;
        }
        // Each was asked for its own level.
        log.tell(Level::ERROR, move || {
            for (attempt, instead) in self.0 {
                let Some(ended) = attempt.ended() else { continue };
                let outcome = instead.as_ref().unwrap_or(&ended.outcome);
                let say = || outcome.log(&End::of(&attempt, ended.run));
                // A subscriber that panics costs this line alone.
                if let Err(panic) = catch_unwind(AssertUnwindSafe(say)) {
                    discard(panic);
                }
            }
        });
    }
}

/// Takes in that Redis answered a batch, and refused the reports at these positions: their lease is
/// over, unless a report came twice.
pub(crate) fn take_in(shared: &Shared, batch: &ReportBatch, stale: &[usize]) {
    for lease in stale.iter().filter_map(|position| batch.lease(*position)) {
        let id = lease.id.clone();
        let text = "a report changed nothing: it came twice, or its lease is over";
        tell!(shared.log, DEBUG, %id, "{text}");
    }
    let mut answered = Answered::default();
    shared.attempts.remove(batch.leases(), |position, attempt| {
        let answer = if !batch.is_resent && stale.contains(&position) {
            Answer::Replaced(Outcome::Lost)
        } else if let Some(failure) = batch.verdict() {
            Answer::Replaced(Outcome::failed(failure, false))
        } else {
            Answer::Taken
        };
        answered.end(shared, attempt, answer);
    });
    answered.tell(&shared.log);
}

/// Logs the attempts whose reports Redis has not answered. The worker ends.
pub(crate) fn tell_unanswered(shared: &Shared) {
    let mut answered = Answered::default();
    for attempt in shared.attempts.snapshot() {
        answered.end(shared, attempt, Answer::Replaced(Outcome::Unanswered));
    }
    answered.tell(&shared.log);
}

#[cfg(test)]
#[path = "answered_tests.rs"]
mod tests;
