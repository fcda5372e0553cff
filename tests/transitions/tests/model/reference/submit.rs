//! `submit`: ∅ → Ready | Delayed | Blocked, once per call number.

use std::collections::{BTreeMap, VecDeque};

use optimus_core::broker::Refusal;

use super::{Place, Queue, Task, refused};
use crate::{
    answer::{Answer, NotAdmitted},
    call::{DueMs, SubmitCall, Wanted},
};

/// How many calls of a client are remembered, each in the slot of its number.
const SLOTS: u64 = 16;

/// The largest difference of a client's clock at which the times in its ids are used.
const CLOCKS_AGREE_MS: u64 = 1_000;

/// The latest answers to one client.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    /// The call number and the answer of each slot.
    pub(crate) slots: BTreeMap<u64, (u64, Vec<Option<NotAdmitted>>)>,
    /// The gaps of lost calls of each slot: the last call before the gap, and the first call after
    /// it.
    pub(crate) lost: BTreeMap<u64, Vec<(u64, u64)>>,
    pub(crate) kept_at: Option<u64>,
}

impl Queue {
    /// Returns whether the call has not been answered and has the given id of a task that has
    /// succeeded.
    pub(crate) fn would_store_a_success(&self, submit_call: &SubmitCall) -> bool {
        let number = submit_call.number;
        let slots = self.ledgers.get(&submit_call.client).map(|ledger| &ledger.slots);
        let answered = slots.and_then(|slots| slots.get(&(number % SLOTS)));
        let has_success =
            submit_call.tasks.iter().any(|task| task.given && self.succeeded.contains(&task.id));
        has_success && answered.is_none_or(|(answered, _)| *answered < number)
    }

    /// Accepts each task unless its biz id is taken. A repeated call gets the same answer.
    pub(super) fn submit(&mut self, now: u64, submit_call: &SubmitCall) -> Answer {
        self.begin_places();
        let SubmitCall { number, since, .. } = *submit_call;
        let ledger = self.ledgers.entry(submit_call.client.clone()).or_default();
        match ledger.slots.get(&(number % SLOTS)) {
            Some((answered, receipts)) if *answered == number => {
                return Answer::Receipts(receipts.clone(), false);
            }
            Some((answered, _)) if *answered > number => return refused(Refusal::Forgotten, ""),
            _ => {}
        }
        if self.full {
            return Answer::Full;
        }
        if submit_call.keep {
            ledger.kept_at = Some(now);
        }
        let agree = submit_call.ahead_ms.unsigned_abs() <= CLOCKS_AGREE_MS
            && submit_call
                .tasks
                .iter()
                .all(|wanted| wanted.id_has_submit_time(now, submit_call.ahead_ms));
        let stamp = (!agree).then_some(now);
        // What decides is the store before the call.
        let unmet: Vec<_> =
            submit_call.tasks.iter().map(|wanted| self.unmet_of(now, wanted)).collect();
        let tasks = submit_call.tasks.iter().zip(&unmet);
        let receipts: Vec<_> =
            tasks.map(|(wanted, unmet)| self.accept(now, wanted, unmet, stamp)).collect();
        let ledger = self.ledgers.entry(submit_call.client.clone()).or_default();
        let before = ledger.slots.insert(number % SLOTS, (number, receipts.clone()));
        let before = before.map_or(0, |(before, _)| before);
        let has_gap = before < since;
        if has_gap {
            ledger.lost.entry(number % SLOTS).or_default().push((before, number));
        }
        Answer::Receipts(receipts, has_gap)
    }

    /// Returns whether a client's ledger shows that the call of this number was done.
    pub(super) fn has_call(&self, client: &str, number: u64) -> bool {
        self.ledgers.get(client).is_some_and(|ledger| {
            let slot = number % SLOTS;
            let last = ledger.slots.get(&slot).map_or(0, |(last, _)| *last);
            let mut gaps = ledger.lost.get(&slot).into_iter().flatten();
            last >= number && !gaps.any(|(before, after)| (before + 1..*after).contains(&number))
        })
    }

    /// The prerequisites of a task that are not met, and their states.
    fn unmet_of(&self, now: u64, wanted: &Wanted) -> Vec<(usize, &'static str)> {
        let all = wanted.after.iter().flat_map(|after| &after.prerequisites).enumerate();
        let states = all.map(|(at, one)| (at, self.state_of_prerequisite(one, now)));
        states.filter(|(_, state)| *state != "met").collect()
    }

    /// Stores a task; returns the owner of its biz id, or the task itself if it is already stored.
    fn accept(
        &mut self,
        now: u64,
        wanted: &Wanted,
        unmet: &[(usize, &'static str)],
        stamp: Option<u64>,
    ) -> Option<NotAdmitted> {
        if self.tasks.contains_key(&wanted.id) {
            return Some(NotAdmitted::Owner(wanted.id.clone()));
        }
        let task = Task::new(now, wanted);
        let owner = task.mark().and_then(|mark| self.owner_of(&mark, now).cloned());
        if let Some(owner) = owner.filter(|owner| *owner != wanted.id) {
            return Some(NotAdmitted::Owner(owner));
        }
        let prerequisites = wanted.after.as_ref().map_or(&[][..], |after| &after.prerequisites);
        let mark = task.mark();
        if let Some(path) = self.cycle_of(&wanted.id, mark.as_ref(), prerequisites, unmet) {
            return Some(NotAdmitted::Cycle(path));
        }
        self.deleted.remove(&wanted.id);
        self.tasks.insert(wanted.id.clone(), task);
        self.take_biz(now, &wanted.id);
        let due = match wanted.due {
            DueMs::Now => 0,
            DueMs::In(ms) => now + ms,
            DueMs::At(at) => at,
        };
        let later = (due > now).then_some(due);
        if self.begin_wait(now, &wanted.id, unmet, later) {
            // It joins its lane later.
        } else if due > now {
            self.task(&wanted.id).place = Place::Delayed(due);
            self.due_at_latest(due);
        } else if self.may_run(now, &wanted.id) {
            self.make_ready(now, &wanted.id, stamp);
        }
        let width = wanted.lane.as_ref().map_or(0, |lane| lane.width.get());
        self.widest = self.widest.max(width.into());
        None
    }
}

impl Wanted {
    /// Returns whether the id has the time of the submit: a given id must have the current time of
    /// the client's clock.
    fn id_has_submit_time(&self, now: u64, ahead_ms: i64) -> bool {
        let here = now.saturating_add_signed(ahead_ms);
        !self.given || self.id.made_ms().abs_diff(here) <= CLOCKS_AGREE_MS
    }
}

impl Task {
    pub(super) fn new(now: u64, wanted: &Wanted) -> Self {
        Self {
            name: wanted.task(),
            priority: wanted.priority,
            biz: wanted.biz.clone(),
            window_ms: wanted.window_ms,
            lane: wanted.lane.clone(),
            lane_at: None,
            after: wanted.after.clone(),
            unmet: None,
            unmet_ended: None,
            on_lost: wanted.on_lost,
            max_losses: if wanted.fragile { 1 } else { 3 },
            accepted_ms: wanted.is_stamped().then_some(now),
            expires_in_ms: wanted.expires_in_ms,
            start_by_ms: None,
            large: wanted.large,
            bytes: wanted.bytes(),
            place: Place::Ready,
            tries: None,
            due_again: None,
            errors: VecDeque::new(),
            stop_asked: None,
            waiters: Vec::new(),
        }
    }
}
