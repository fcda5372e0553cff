//! The requests of operators for a task or a queue, and the answers: [`Requests`].

use super::acts::Acts;

/// A request that was sent twice may arrive this long after the answer.
const ARRIVES_NS: u64 = 10_000_000_000;

/// The answer that an operator received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The request was executed.
    Done,
    /// A worker was asked to execute the request.
    Begun,
    /// The request changed nothing, and will change nothing.
    Undone,
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pid: u32,
    pub(super) asked: u64,
    /// The answer, or none if the outcome is unknown.
    answer: Option<(u64, Effect)>,
}

impl Request {
    pub(super) fn is_undone(&self) -> bool {
        self.answer.is_some_and(|(_, told)| told == Effect::Undone)
    }

    /// Returns when this answer arrived, if it is the answer.
    pub(super) fn answered(&self, what: Effect) -> Option<u64> {
        self.answer.filter(|(_, told)| *told == what).map(|(at, _)| at)
    }

    /// Returns whether the request may have been executed at this time or later.
    pub(super) fn may_come_after(&self, at: u64) -> bool {
        // A request without an answer may have been sent up to this long after it was made.
        let sent_until = self.answer.map_or(self.asked + ARRIVES_NS, |(at, _)| at);
        !self.is_undone() && sent_until + ARRIVES_NS >= at
    }

    /// Returns whether Redis may have lost the effect of the answered request.
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

    /// Adds a request. Each operator waits for an answer before the next request.
    pub(super) fn answer(&mut self, pid: u32, at: u64, told: Effect) {
        if let Some(request) = self.0.iter_mut().rev().find(|request| request.pid == pid) {
            request.answer = Some((at, told));
        }
    }

    /// Returns when that operator made the last request.
    pub(super) fn last_of(&self, pid: u32) -> Option<u64> {
        self.0.iter().rev().find(|request| request.pid == pid).map(|request| request.asked)
    }

    /// Returns the requests that may have been executed.
    pub(super) fn possible(&self) -> impl Iterator<Item = &Request> {
        self.0.iter().filter(|request| !request.is_undone())
    }

    /// Returns the requests with this answer, and the time of each answer.
    pub(super) fn answered(&self, what: Effect) -> impl Iterator<Item = (&Request, u64)> {
        self.0.iter().filter_map(move |request| Some((request, request.answered(what)?)))
    }

    /// Returns whether a request may have been executed in this interval.
    pub(super) fn may_come_within(&self, since: u64, until: u64) -> bool {
        self.possible().any(|request| request.asked <= until && request.may_come_after(since))
    }
}
