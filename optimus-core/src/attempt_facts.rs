//! What a worker knows of an attempt when it starts: [`AttemptFacts`].

use std::time::{Duration, Instant};

use crate::{group::Member, headers::Headers, id::TaskId, tick::Tick};

/// The facts that a worker has about an attempt when it starts.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct AttemptFacts {
    pub id: TaskId,
    pub task: &'static str,
    /// The number of the attempt, from 1: the failures and losses so far, plus this attempt.
    pub number: u32,
    pub failures: u32,
    pub max_retry: u32,
    pub fence: u64,
    pub deadline: Instant,
    /// The time from the submit to the claim of this attempt.
    pub age: Option<Duration>,
    /// The key of its lane.
    pub lane: Option<String>,
    /// Its place in a group.
    pub member: Option<Member>,
    /// The instant of its schedule.
    pub tick: Option<Box<Tick>>,
    pub headers: Headers,
}

impl AttemptFacts {
    /// Returns the first attempt at a task without a name and without retries.
    pub fn first(id: TaskId, deadline: Instant) -> Self {
        Self {
            id,
            task: "",
            number: 1,
            failures: 0,
            max_retry: 0,
            fence: 1,
            deadline,
            age: None,
            lane: None,
            member: None,
            tick: None,
            headers: Headers::new(),
        }
    }

    /// Returns whether the task may be retried if this attempt fails.
    pub fn has_retries_left(&self) -> bool {
        self.failures < self.max_retry
    }
}
