//! The client's view of its ledger in one queue: [`Ledger`].

use crate::broker::LEDGER_SLOTS;

const SLOTS: usize = 16;
const _: () = assert!(SLOTS as u64 == LEDGER_SLOTS);

/// Which calls were answered, and which one-time requests Redis has answered.
#[derive(Default)]
pub(super) struct Ledger {
    slots: [Slot; SLOTS],
    /// Whether Redis has confirmed that it keeps the ledger.
    pub(super) kept: bool,
    /// The count of broken connections at the last call.
    pub(super) breaks: u64,
    /// Whether inspectors know the queue.
    pub(super) announced: bool,
    /// Whether a copy of a call may still arrive, because it was sent twice or not answered.
    is_open: bool,
}

/// How a call ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    /// The call was sent once and answered.
    Answered,
    /// The call was answered. A copy of it may still arrive.
    AnsweredAgain,
    /// The call was refused or given up.
    Unanswered,
}

/// A slot of the ledger. It belongs to one call until that call is answered or given up, so no
/// answer is overwritten that a repeated call may need.
#[derive(Default, Clone, Copy)]
struct Slot {
    last: u64,
    answered: u64,
    busy: bool,
}

/// A call's place in the ledger.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) number: u64,
    /// The last answered call of the same slot.
    pub(super) since: u64,
}

impl Ledger {
    /// Returns a place for a call, in the first idle slot. A caller that submits one call at a time
    /// uses one slot, and Redis reports with each call whether it still has the previous one.
    pub(super) fn take(&mut self) -> Option<Place> {
        let index = (1..=SLOTS).find(|index| !self.slots[index % SLOTS].busy)?;
        let slot = &mut self.slots[index % SLOTS];
        slot.last = if slot.last == 0 { index as u64 } else { slot.last + LEDGER_SLOTS };
        slot.busy = true;
        Some(Place { number: slot.last, since: slot.answered })
    }

    /// Returns whether no call of this ledger is in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.slots.iter().all(|slot| !slot.busy)
    }

    /// Returns whether no call of this ledger is in progress or may still arrive, so that Redis can
    /// remove it once no handle needs it. Without the ledger, Redis would execute a late copy of a
    /// call again.
    pub(super) fn may_go(&self) -> bool {
        !self.is_open && self.is_idle()
    }

    /// Notes that a call is over.
    pub(super) fn settle(&mut self, number: u64, over: Over) {
        let index = usize::try_from(number % LEDGER_SLOTS).expect("below the number of slots");
        let slot = &mut self.slots[index];
        slot.busy = false;
        self.is_open |= over != Over::Answered;
        if over != Over::Unanswered {
            slot.answered = number;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(ledger: &mut Ledger) -> (u64, u64) {
        let place = ledger.take().expect("an idle slot");
        (place.number, place.since)
    }

    #[test]
    fn one_call_at_a_time_stays_in_one_slot() {
        let mut ledger = Ledger::default();
        for (number, since) in [(1, 0), (17, 1), (33, 17)] {
            assert_eq!(taken(&mut ledger), (number, since));
            ledger.settle(number, Over::Answered);
        }
    }

    #[test]
    fn a_slot_is_not_used_again_while_its_call_is_unanswered() {
        let mut ledger = Ledger::default();
        assert_eq!(taken(&mut ledger), (1, 0));
        for round in 0..40 {
            assert_eq!(taken(&mut ledger).0, 2 + round * LEDGER_SLOTS);
            ledger.settle(2 + round * LEDGER_SLOTS, Over::Answered);
        }
        assert_eq!(taken(&mut ledger).0 % LEDGER_SLOTS, 2);
        for number in 3..=LEDGER_SLOTS {
            assert_eq!(taken(&mut ledger), (number, 0));
        }
        assert!(ledger.take().is_none(), "all are busy");
        ledger.settle(1, Over::Answered);
        assert_eq!(taken(&mut ledger), (17, 1));
    }

    #[test]
    fn a_call_that_was_given_up_does_not_count_as_answered() {
        let mut ledger = Ledger::default();
        assert_eq!(taken(&mut ledger), (1, 0));
        ledger.settle(1, Over::Answered);
        assert_eq!(taken(&mut ledger), (17, 1));
        ledger.settle(17, Over::Unanswered);
        assert_eq!(taken(&mut ledger), (33, 1));
    }

    #[test]
    fn a_ledger_may_go_once_no_copy_of_its_calls_can_arrive_late() {
        let after = |over| {
            let mut ledger = Ledger::default();
            let number = taken(&mut ledger).0;
            assert!(!ledger.may_go(), "the call is in progress");
            ledger.settle(number, over);
            let next = taken(&mut ledger).0;
            ledger.settle(next, Over::Answered);
            ledger.may_go()
        };
        assert!(after(Over::Answered));
        assert!(!after(Over::AnsweredAgain) && !after(Over::Unanswered));
    }
}
