//! Calls that run together: [`Gathered`].

use std::time::Duration;

use optimus_core::{Backoff, BoxError, Context, Each, Task, TaskOptions};
use optimus_testkit::history::How;
use serde::{Deserialize, Serialize};

use crate::queues::QUEUE;
use crate::tasks::{LOSSES_MAX, Run};

/// The wait before another attempt.
const SOON: Backoff = Backoff::Fixed { wait: Duration::from_millis(50), jitter: 1.0 };
/// Every call of a run fails with the first one, so the calls try very often.
const RETRIES_MAX: u32 = 10_000;
/// How long calls wait for each other, and how many run together at most.
const WAITS: Duration = Duration::from_millis(400);
const RUN_MAX: u32 = 5;

/// A call that runs together with those of its key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Gathered {
    /// The number of the task in the history.
    pub number: u64,
    /// Its id. The context of a run has that of the first call.
    pub id: String,
    /// Calls of the same key run together.
    pub key: u64,
    /// How many first attempts of the runs fail that it leads.
    pub fails: u32,
    /// How long the call takes.
    pub lasts_ms: u64,
}

impl Task for Gathered {
    const NAME: &'static str = "gathered";
    type Output = u64;

    fn options() -> TaskOptions {
        let options = TaskOptions::new().queue(QUEUE).max_losses(LOSSES_MAX).backoff(SOON);
        options.max_retry(RETRIES_MAX).gather(WAITS, RUN_MAX)
    }

    fn by(&self) -> Option<String> {
        Some(self.key.to_string())
    }

    async fn run(self, ctx: Context) -> Result<u64, BoxError> {
        Self::run_all(vec![self], ctx).await?.into_single()
    }

    async fn run_all(calls: Vec<Self>, ctx: Context) -> Result<Each<u64>, BoxError> {
        // The attempt is that of the first call, so the history does not compare attempts.
        let begin = |call: &Self| Run::begin_as(call.number, call.id.clone(), 1, &ctx);
        let runs: Vec<Run> = calls.iter().map(begin).collect();
        let first = &calls[0];
        let (ids, own) = (ctx.calls(), calls.iter().map(|call| &call.id));
        if ids.iter().map(ToString::to_string).ne(own.cloned()) {
            runs[0].complain("is in a run with other ids");
        }
        if calls.iter().any(|call| call.key != first.key) || calls.len() > RUN_MAX as usize {
            runs[0].complain("is in a run with other calls");
        }
        runs[0].wait(&ctx, Duration::from_millis(first.lasts_ms)).await?;
        let fails = ctx.attempt() <= first.fails;
        for run in runs {
            run.end(if fails { How::Failed } else { How::Ok });
        }
        if fails { Err("asked to fail".into()) } else { Ok(Each::same(ctx.fence())) }
    }
}
