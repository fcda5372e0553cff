//! The tasks that the tests submit. None of them ever runs.

use optimus_core::{BoxError, Call, Context, Submission, Submit, Task, TaskOptions};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::bench::START;

/// A task with the default options and any payload.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Job(Box<RawValue>);

impl Task for Job {
    const NAME: &'static str = "job";
    type Output = ();

    async fn run(self, _: Context) -> Result<(), BoxError> {
        Ok(())
    }
}

/// A task that the first lost worker marks Dead.
#[derive(Serialize, Deserialize)]
pub(crate) struct Fragile;

impl Task for Fragile {
    const NAME: &'static str = "fragile";
    type Output = ();

    fn options() -> TaskOptions {
        TaskOptions::new().max_losses(1)
    }

    async fn run(self, _: Context) -> Result<(), BoxError> {
        Ok(())
    }
}

/// Returns a call with this payload, which must be JSON.
pub(crate) fn job_of(payload: impl Into<String>) -> Call<Job> {
    Job(RawValue::from_string(payload.into()).expect("a payload is JSON")).call()
}

/// Returns a call with a simple payload.
pub(crate) fn job() -> Call<Job> {
    job_of("{}")
}

/// Returns an encoded call, as a client sends it at [`START`].
pub(crate) fn ready(call: impl Submit) -> Submission {
    ready_at(0, call)
}

/// Returns an encoded call, as a client sends it this many ms after [`START`].
pub(crate) fn ready_at(ms: u64, call: impl Submit) -> Submission {
    let task = call.into_submission().expect("the options of a test are valid");
    let made = format!("{}", task.id().uuid());
    let born = format!("{:012x}", START + ms);
    let id = format!("{}/{}-{}{}", task.id().queue(), &born[..8], &born[8..], &made[13..]);
    task.with_id(id.parse().expect("a uuid with other digits"))
}

/// Makes this many encoded calls.
pub(crate) fn jobs(count: usize) -> Vec<Submission> {
    (0..count).map(|_| ready(job())).collect()
}
