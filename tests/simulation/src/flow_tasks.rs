//! The tasks of flows that take results: [`Link`] takes that of one task, [`Total`] those of a
//! group.

use std::time::Duration;

use optimus_core::{
    Backoff, BoxError, Call, Context, GroupResults, MemberEnd, Parameter, Takes, Task, TaskOptions,
    TaskState, given,
};
use optimus_testkit::history::How;
use serde::{Deserialize, Serialize};

use crate::queues::QUEUE;
use crate::tasks::{LOSSES_MAX, Run};

/// The wait before another attempt.
const SOON: Backoff = Backoff::Fixed { wait: Duration::from_millis(50), jitter: 1.0 };
/// Only faults of the network make these tasks fail, so they try very often.
const RETRIES_MAX: u32 = 10_000;

/// A task that takes the result of the one before it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Link {
    /// The number of the task in the history.
    pub number: u64,
    /// The number of the task before it.
    pub of: u64,
    /// The result of that task; none if that task has failed and this one runs anyway.
    pub input: Option<u64>,
}

impl Link {
    /// Returns a call that takes the result of that task.
    pub fn after(number: u64, of: u64) -> Call<Self, Takes<u64>> {
        given(|| Self { number, of, input: None }.call())
            .give::<0>(number)
            .give::<1>(of)
            .take::<2>()
    }
}

/// Implements [`Parameter`] for the arguments of a task.
macro_rules! parameters {
    ($task:ty: $($at:literal = $name:literal, $type:ty;)+) => {$(
        impl Parameter<$at> for $task {
            const NAME: &'static str = $name;
            type Type = $type;
        }
    )+};
}

parameters! { Link: 0 = "number", u64; 1 = "of", u64; 2 = "input", u64; }

impl Task for Link {
    const NAME: &'static str = "link";
    type Output = u64;

    fn options() -> TaskOptions {
        let options = TaskOptions::new().queue(QUEUE).max_losses(LOSSES_MAX);
        options.max_retry(RETRIES_MAX).backoff(SOON)
    }

    async fn run(self, ctx: Context) -> Result<u64, BoxError> {
        let run = Run::begin(self.number, &ctx);
        if let Some(fence) = self.input {
            run.expect_result(self.of, fence);
        }
        run.end(How::Ok);
        Ok(ctx.fence())
    }
}

/// A task that takes the results of a group.
#[derive(Debug, Serialize, Deserialize)]
pub struct Total {
    /// The number of the task in the history.
    pub number: u64,
    /// The numbers of the members with which the group began.
    pub of: Vec<u64>,
    /// Whether the group continues without members that fail.
    pub goes_on: bool,
    /// The results; none if the group was cancelled and this task runs anyway.
    pub results: Option<GroupResults<u64>>,
}

impl Total {
    /// Returns a call that takes the results of these members.
    pub fn over(
        number: u64,
        of: Vec<u64>,
        goes_on: GoesOn,
    ) -> Call<Self, Takes<GroupResults<u64>>> {
        let make = || Self { number, of: Vec::new(), goes_on: false, results: None }.call();
        given(make).give::<0>(number).give::<1>(of).give::<2>(goes_on == GoesOn::Yes).take::<3>()
    }
}

/// Whether a group continues without members that fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoesOn {
    /// It continues without them.
    Yes,
    /// It waits for them, or is cancelled.
    No,
}

parameters! {
    Total: 0 = "number", u64; 1 = "of", Vec<u64>; 2 = "goes_on", bool;
    3 = "results", GroupResults<u64>;
}

impl Task for Total {
    const NAME: &'static str = "total";
    type Output = u64;

    fn options() -> TaskOptions {
        let options = TaskOptions::new().queue(QUEUE).max_losses(LOSSES_MAX);
        options.max_retry(RETRIES_MAX).backoff(SOON)
    }

    async fn run(self, ctx: Context) -> Result<u64, BoxError> {
        let run = Run::begin(self.number, &ctx);
        if let Some(results) = &self.results
            && let Err(problem) = self.check(&run, results).await
        {
            return run.fail(problem);
        }
        run.end(How::Ok);
        Ok(ctx.fence())
    }
}

impl Total {
    /// Reads every result, and checks that it is of the right member.
    async fn check(&self, run: &Run, results: &GroupResults<u64>) -> Result<(), BoxError> {
        let (mut ends, mut count) = (results.read(), 0);
        while let Some((index, end)) = ends.next().await? {
            count += 1;
            match (end, self.of.get(index as usize)) {
                (MemberEnd::Success(fence), Some(member)) => run.expect_result(*member, fence),
                (MemberEnd::Failed(TaskState::Dead | TaskState::Cancelled), _) if self.goes_on => {}
                (MemberEnd::Failed(TaskState::Forgotten), member)
                    if self.goes_on && run.is_deleted(member.copied()) => {}
                (MemberEnd::Success(_), None) => {}
                (end, _) => run.complain(&format!("takes {end:?} of member {index}")),
            }
        }
        if count < self.of.len() {
            run.complain(&format!("takes {count} results of {}", self.of.len()));
        }
        Ok(())
    }
}
