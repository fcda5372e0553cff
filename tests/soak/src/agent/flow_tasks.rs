//! The tasks of flows. Their handlers record when they begin and how they end, and check what they
//! take from others.

use std::sync::Arc;
use std::time::Duration;

use optimus::{Context, GroupResults, MemberEnd};
use optimus_testkit::history::{HistoryLog, How};
use serde::{Deserialize, Serialize};

use super::tasks::{Problem, Run};

/// The queue of the tasks after those of the first queue.
pub(crate) const OTHER_QUEUE: &str = "soak-b";

/// How many parts run at once.
pub(crate) const PARTS_MAX: u32 = 4;
/// One in so many tasks fails in its first attempt.
const FLAKY: u64 = 5;
/// How long a handler works at most.
const WORK_MS_MAX: u64 = 30;

/// A call that runs together with others.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Counted {
    pub(crate) number: u64,
    pub(crate) key: u64,
}

/// The first step of a flow.
#[optimus::task(
    queue = "soak-b",
    max_retry = 50,
    max_losses = 100_000,
    backoff = "fixed(wait = 50ms, jitter = 1)"
)]
pub(super) async fn begin(
    number: u64,
    #[data] log: Arc<HistoryLog>,
    ctx: Context,
) -> Result<(), Problem> {
    work(number, &log, &ctx).await
}

/// A member of a group. Few run at once, over all workers.
#[optimus::task(
    queue = "soak",
    limit = "parts",
    max_working = 4,
    max_retry = 50,
    max_losses = 100_000,
    backoff = "fixed(wait = 50ms, jitter = 1)"
)]
pub(super) async fn part(
    number: u64,
    #[data] log: Arc<HistoryLog>,
    ctx: Context,
) -> Result<u64, Problem> {
    work(number, &log, &ctx).await?;
    Ok(number)
}

/// The step after the group. It checks that each member has brought its own result once.
#[optimus::task(
    queue = "soak-b",
    max_retry = 50,
    max_losses = 100_000,
    backoff = "fixed(wait = 50ms, jitter = 1)"
)]
pub(super) async fn total(
    number: u64,
    of: Vec<u64>,
    parts: GroupResults<u64>,
    #[data] log: Arc<HistoryLog>,
    ctx: Context,
) -> Result<(), Problem> {
    let run = Run::begin(number, &log, &ctx);
    let (mut found, mut ends) = (Vec::new(), parts.read());
    loop {
        match ends.next().await {
            Ok(Some((_, MemberEnd::Success(part)))) => found.push(part),
            Ok(Some((_, MemberEnd::Failed(_)))) => found.push(u64::MAX),
            Ok(None) => break,
            // Redis may not be available for a while.
            Err(_) => {
                run.end(How::Failed);
                return Err(Problem::Asked);
            }
        }
    }
    run.end(if found == of { How::Ok } else { How::Failed });
    if found == of { Ok(()) } else { Err(Problem::Wrong(format!("{found:?} are not {of:?}"))) }
}

/// A task of a lane.
#[optimus::task(
    queue = "soak",
    lane = "l{lane}",
    max_retry = 50,
    max_losses = 100_000,
    backoff = "fixed(wait = 50ms, jitter = 1)"
)]
pub(super) async fn turn(
    number: u64,
    lane: u64,
    #[data] log: Arc<HistoryLog>,
    ctx: Context,
) -> Result<(), Problem> {
    let _ = lane;
    work(number, &log, &ctx).await
}

/// A task that others wait for.
#[optimus::task(
    queue = "soak-b",
    biz_id = "{number}",
    biz_window = "2h",
    outcome_ttl = "2h",
    max_retry = 50,
    max_losses = 100_000,
    backoff = "fixed(wait = 50ms, jitter = 1)"
)]
pub(super) async fn reserve(
    number: u64,
    #[data] log: Arc<HistoryLog>,
    ctx: Context,
) -> Result<(), Problem> {
    work(number, &log, &ctx).await
}

/// A task that waits for one of the other queue, which may be submitted later.
#[optimus::task(
    queue = "soak",
    biz_id = "{order}",
    biz_window = "2h",
    after = reserve,
    max_retry = 50,
    max_losses = 100_000,
    backoff = "fixed(wait = 50ms, jitter = 1)"
)]
pub(super) async fn ship(
    number: u64,
    order: u64,
    #[data] log: Arc<HistoryLog>,
    ctx: Context,
) -> Result<(), Problem> {
    let _ = order;
    work(number, &log, &ctx).await
}

/// Calls that run together, by their key.
#[optimus::task(
    queue = "soak",
    gather = "300ms | 8",
    by = "{key}",
    max_retry = 50,
    max_losses = 100_000,
    backoff = "fixed(wait = 50ms, jitter = 1)"
)]
pub(super) async fn counted(
    calls: Vec<Counted>,
    #[data] log: Arc<HistoryLog>,
    ctx: Context,
) -> Result<(), Problem> {
    let ids = ctx.calls();
    let runs: Vec<Run<'_>> = (calls.iter().zip(ids))
        .map(|(call, id)| Run::begin_as(call.number, id, &log, &ctx))
        .collect();
    let is_one_key = calls.iter().all(|call| call.key == calls[0].key);
    let first = calls[0].number;
    let fails = first.is_multiple_of(FLAKY) && ctx.attempt() == 1;
    if !wait(first, &ctx).await {
        return Err(Problem::Stopped);
    }
    for run in runs {
        run.end(if fails || !is_one_key { How::Failed } else { How::Ok });
    }
    match (is_one_key, fails) {
        (false, _) => Err(Problem::Wrong("a run has calls of several keys".into())),
        (true, true) => Err(Problem::Asked),
        (true, false) => Ok(()),
    }
}

/// Waits a few ms. Returns `false` if the task is asked to stop.
async fn wait(number: u64, ctx: &Context) -> bool {
    let wait = Duration::from_millis(number % WORK_MS_MAX);
    tokio::select! {
        () = tokio::time::sleep(wait) => true,
        () = ctx.cancelled() => false,
    }
}

async fn work(number: u64, log: &HistoryLog, ctx: &Context) -> Result<(), Problem> {
    let run = Run::begin(number, log, ctx);
    if !wait(number, ctx).await {
        return Err(Problem::Stopped);
    }
    let fails = number.is_multiple_of(FLAKY) && ctx.attempt() == 1;
    run.end(if fails { How::Failed } else { How::Ok });
    if fails { Err(Problem::Asked) } else { Ok(()) }
}
