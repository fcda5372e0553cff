//! What operators asked of a task or a queue, and what they were told: [`Requests`].

use super::acts::Acts;

/// One that was sent twice may still be on its way for so long after the answer.
const ARRIVES_NS: u64 = 10_000_000_000;

/// What an operator was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// It is done.
    Done,
    /// A worker was asked to do it.
    Begun,
    /// Nothing was done, and nothing will be.
    Undone,
}

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pid: u32,
    pub(super) asked: u64,
    /// Nothing if nobody knows.
    answer: Option<(u64, Told)>,
}

impl Request {
    pub(super) fn is_undone(&self) -> bool {
        self.answer.is_some_and(|(_, told)| told == Told::Undone)
    }

    /// When this answer came, if it is the one.
    pub(super) fn told(&self, what: Told) -> Option<u64> {
        self.answer.filter(|(_, told)| *told == what).map(|(at, _)| at)
    }

    /// Whether it may have been done at this time or later.
    pub(super) fn may_come_after(&self, at: u64) -> bool {
        // Who knows nothing may have sent it until then.
        let sent_until = self.answer.map_or(self.asked + ARRIVES_NS, |(at, _)| at);
        !self.is_undone() && sent_until + ARRIVES_NS >= at
    }

    /// Whether Redis may have lost what it answered.
    pub(super) fn may_be_lost(&self, acts: &Acts) -> bool {
        let until = self.answer.map_or(u64::MAX, |(at, _)| at);
        acts.rolled_back(self.asked, until)
    }
}

/// Those of one kind.
#[derive(Debug, Default)]
pub(super) struct Requests(Vec<Request>);

impl Requests {
    pub(super) fn ask(&mut self, pid: u32, asked: u64) {
        self.0.push(Request { pid, asked, answer: None });
    }

    /// An operator asks for one thing after the other.
    pub(super) fn answer(&mut self, pid: u32, at: u64, told: Told) {
        if let Some(request) = self.0.iter_mut().rev().find(|request| request.pid == pid) {
            request.answer = Some((at, told));
        }
    }

    /// When the last one was asked for by that operator.
    pub(super) fn last_of(&self, pid: u32) -> Option<u64> {
        self.0.iter().rev().find(|request| request.pid == pid).map(|request| request.asked)
    }

    /// Those that may have been done.
    pub(super) fn possible(&self) -> impl Iterator<Item = &Request> {
        self.0.iter().filter(|request| !request.is_undone())
    }

    /// With the time of this answer.
    pub(super) fn told(&self, what: Told) -> impl Iterator<Item = (&Request, u64)> {
        self.0.iter().filter_map(move |request| Some((request, request.told(what)?)))
    }

    /// Whether one may have been done in this time.
    pub(super) fn may_come_within(&self, since: u64, until: u64) -> bool {
        self.possible().any(|request| request.asked <= until && request.may_come_after(since))
    }
}
