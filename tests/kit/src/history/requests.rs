//! What operators requested for a task or a queue, and the answers: [`Requests`].

use super::acts::Acts;

/// A request that was sent twice may arrive this long after the answer.
const ARRIVES_NS: u64 = 10_000_000_000;

/// The answer that an operator received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It is done.
    Done,
    /// A worker was asked to do it.
    Begun,
    /// Nothing was done, and nothing will be.
    Undone,
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pid: u32,
    pub(super) asked: u64,
    /// None if the outcome is unknown.
    answer: Option<(u64, Effect)>,
}

impl Request {
    pub(super) fn is_undone(&self) -> bool {
        self.answer.is_some_and(|(_, told)| told == Effect::Undone)
    }

    /// When this answer came, if it is the answer.
    pub(super) fn answered(&self, what: Effect) -> Option<u64> {
        self.answer.filter(|(_, told)| *told == what).map(|(at, _)| at)
    }

    /// Whether it may have been done at this time or later.
    pub(super) fn may_come_after(&self, at: u64) -> bool {
        // A request without an answer may have been sent until then.
        let sent_until = self.answer.map_or(self.asked + ARRIVES_NS, |(at, _)| at);
        !self.is_undone() && sent_until + ARRIVES_NS >= at
    }

    /// Whether Redis may have lost the effect of its answer.
    pub(super) fn may_be_lost(&self, acts: &Acts) -> bool {
        let until = self.answer.map_or(u64::MAX, |(at, _)| at);
        acts.rolled_back(self.asked, until)
    }
}

/// The requests of one kind.
#[derive(Debug, Default)]
pub(super) struct Requests(Vec<Request>);

impl Requests {
    pub(super) fn ask(&mut self, pid: u32, asked: u64) {
        self.0.push(Request { pid, asked, answer: None });
    }

    /// Each operator waits for an answer before the next request.
    pub(super) fn answer(&mut self, pid: u32, at: u64, told: Effect) {
        if let Some(request) = self.0.iter_mut().rev().find(|request| request.pid == pid) {
            request.answer = Some((at, told));
        }
    }

    /// When that operator made its last request.
    pub(super) fn last_of(&self, pid: u32) -> Option<u64> {
        self.0.iter().rev().find(|request| request.pid == pid).map(|request| request.asked)
    }

    /// The requests that may have been done.
    pub(super) fn possible(&self) -> impl Iterator<Item = &Request> {
        self.0.iter().filter(|request| !request.is_undone())
    }

    /// The requests with this answer, and its time.
    pub(super) fn answered(&self, what: Effect) -> impl Iterator<Item = (&Request, u64)> {
        self.0.iter().filter_map(move |request| Some((request, request.answered(what)?)))
    }

    /// Whether a request may have been done in this interval.
    pub(super) fn may_come_within(&self, since: u64, until: u64) -> bool {
        self.possible().any(|request| request.asked <= until && request.may_come_after(since))
    }
}
