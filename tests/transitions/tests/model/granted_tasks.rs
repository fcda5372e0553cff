//! The tasks that workers were granted, and their reports, which may be late, repeated, or with
//! wrong tokens.

use std::time::Duration;

use optimus_core::{
    Lane, Lease, WorkerId,
    broker::{Completion, Failure, FailureOutcome, Give, Release},
};

use crate::{answer::Granted, call::Call, lanes::lane, reference::Queue, step::Pick};

/// Every lease that was granted, in order.
#[derive(Default)]
pub(crate) struct Holds(Vec<Hold>);

/// A lease, with the data that its report needs.
#[derive(Clone)]
struct Hold {
    lease: Lease,
    task: &'static str,
    biz: Option<String>,
    lane: Option<Lane>,
    has_sides: bool,
}

impl Holds {
    /// Records the tasks of a claim.
    pub(crate) fn add(&mut self, worker: &WorkerId, Granted { token, grants, .. }: &Granted) {
        for grant in grants {
            let lease = Lease { id: grant.id.clone(), worker: worker.clone(), token: *token };
            if !self.0.iter().any(|hold| hold.lease == lease) {
                let task = if grant.record.task == "job" { "job" } else { "fragile" };
                let record = &grant.record;
                let has_sides = grant.was_tried || record.has_blob || record.priority != 0;
                let lane = record.lane.clone().map(|(key, width, _)| lane(&key, width));
                self.0.push(Hold { lease, task, biz: record.biz.clone(), lane, has_sides });
            }
        }
    }

    pub(crate) fn complete(
        &self,
        now: u64,
        worker: WorkerId,
        picks: &[Pick],
        reference: &Queue,
    ) -> Option<Call> {
        let hand = self.hand(&worker, reference);
        let holds = picks.iter().filter_map(|pick| hand.picked(*pick));
        let done: Vec<_> = holds.enumerate().map(|(at, hold)| hold.done(now, at)).collect();
        (!done.is_empty()).then_some(Call::Complete { worker, done })
    }

    pub(crate) fn fail(
        &self,
        worker: WorkerId,
        picks: &[(Pick, FailureOutcome)],
        reference: &Queue,
    ) -> Option<Call> {
        let hand = self.hand(&worker, reference);
        let failure = |(at, (pick, outcome)): (usize, &(Pick, FailureOutcome))| {
            let lease = hand.picked(*pick)?.lease;
            // Some of those that end were not started in time, and some of those that run again
            // were lost.
            let outcome = match *outcome {
                FailureOutcome::Retry(wait) if wait.as_millis() % 4 == 0 => FailureOutcome::Lost,
                FailureOutcome::Dead if at % 2 == 0 => FailureOutcome::Expired,
                FailureOutcome::Cancelled if at % 2 == 0 => FailureOutcome::Unstarted,
                other => other,
            };
            let error = if at % 3 == 2 { "" } else { r#"{"reason":"failed"}"# };
            Some(Failure { lease, outcome, shut: None, error: error.to_owned() })
        };
        let failed: Vec<_> = picks.iter().enumerate().filter_map(failure).collect();
        (!failed.is_empty()).then_some(Call::Fail { worker, failed })
    }

    pub(crate) fn release(
        &self,
        worker: WorkerId,
        picks: &[(Pick, Give)],
        reference: &Queue,
    ) -> Option<Call> {
        let hand = self.hand(&worker, reference);
        let release = |(pick, give): &(Pick, Give)| {
            Some(Release { lease: hand.picked(*pick)?.lease, give: *give })
        };
        let given: Vec<_> = picks.iter().filter_map(release).collect();
        (!given.is_empty()).then_some(Call::Release { worker, given })
    }

    fn hand(&self, worker: &WorkerId, reference: &Queue) -> Hand<'_> {
        let held_now = reference.workers.get(worker).map(|worker| &worker.holds);
        let is_held = |hold: &&Hold| {
            held_now.and_then(|held| held.get(&hold.lease.id)) == Some(&hold.lease.token)
        };
        let ever: Vec<&Hold> = self.0.iter().filter(|hold| hold.lease.worker == *worker).collect();
        Hand { now: ever.iter().copied().filter(is_held).collect(), ever }
    }
}

/// The tasks that one worker can report: those that it holds, and those that it ever held.
struct Hand<'a> {
    now: Vec<&'a Hold>,
    ever: Vec<&'a Hold>,
}

impl Hand<'_> {
    fn picked(&self, pick: Pick) -> Option<Hold> {
        let at = |among: &[&Hold], index: u16| {
            Some((*among.get(usize::from(index) % among.len().max(1))?).clone())
        };
        match pick {
            Pick::Held(index) => at(&self.now, index),
            Pick::Ever(index) => at(&self.ever, index),
            Pick::Forged(index, fence) => {
                let mut forged = at(&self.now, index)?;
                let token = &mut forged.lease.token;
                let part = if fence { &mut token.fence } else { &mut token.seq };
                *part += 1;
                Some(forged)
            }
        }
    }
}

impl Hold {
    fn done(self, now: u64, at: usize) -> Completion {
        let result = at.is_multiple_of(2).then(|| (b"42".to_vec(), Duration::from_secs(600)));
        let Self { lease, task, biz: biz_id, lane, has_sides } = self;
        let took = Duration::from_millis(5);
        Completion {
            lease,
            task,
            biz_id,
            attempt: 1,
            took,
            ended_ms: now,
            lane,
            outcome_ttl: at.is_multiple_of(3).then_some(Duration::from_secs(600)),
            member: None,
            result,
            has_sides,
        }
    }
}
