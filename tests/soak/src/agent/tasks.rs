//! The tasks: their handlers record when they begin and how they end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use optimus::{Context, TaskId};
use optimus_testkit::history::{HistoryLog, How, What};

use super::mix::Kind;

/// The queue of all tasks.
pub(crate) const QUEUE: &str = "soak";

/// The reason why a handler fails.
#[derive(Debug)]
pub(super) enum Problem {
    Asked,
    Stopped,
    /// A promise was broken.
    Wrong(String),
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Asked => f.write_str("asked to fail"),
            Self::Stopped => f.write_str("asked to stop"),
            Self::Wrong(what) => write!(f, "wrong: {what}"),
        }
    }
}

impl std::error::Error for Problem {}

/// Runs most kinds of tasks. No task here is marked Dead because of lost workers, because many
/// workers are killed.
#[optimus::task(
    queue = "soak",
    max_retry = 5,
    max_losses = 100_000,
    backoff = "fixed(wait = 50ms, jitter = 1)"
)]
pub(super) async fn work(
    number: u64,
    #[data] log: Arc<HistoryLog>,
    ctx: Context,
) -> Result<(), Problem> {
    run(number, &log, &ctx).await
}

/// Returns the fence of the recorded attempt as the result.
#[optimus::task(
    queue = "soak",
    max_losses = 100_000,
    result_ttl = "2h",
    backoff = "fixed(wait = 50ms, jitter = 1)"
)]
pub(super) async fn answer(
    number: u64,
    #[data] log: Arc<HistoryLog>,
    ctx: Context,
) -> Result<u64, Problem> {
    run(number, &log, &ctx).await?;
    Ok(ctx.fence())
}

/// Runs one task at a time for each biz id.
#[optimus::task(
    queue = "soak",
    max_losses = 100_000,
    biz_id = "{biz}",
    backoff = "fixed(wait = 50ms, jitter = 1)"
)]
pub(super) async fn unique(
    number: u64,
    biz: u64,
    #[data] log: Arc<HistoryLog>,
    ctx: Context,
) -> Result<(), Problem> {
    let _ = biz;
    run(number, &log, &ctx).await
}

/// Runs on a separate thread and never ends in time. It returns an error, because a worker that was
/// frozen at the timeout may see the end of the handler first.
#[optimus::task(
    queue = "soak",
    timeout = "300ms",
    max_retry = 1,
    max_losses = 100_000,
    backoff = "fixed(wait = 50ms, jitter = 1)"
)]
pub(super) fn overrun(
    number: u64,
    #[data] log: Arc<HistoryLog>,
    ctx: Context,
) -> Result<(), Problem> {
    let mut run = Run::begin(number, &log, &ctx);
    std::thread::sleep(Duration::from_millis(Kind::Overrunning.wait_ms(number)));
    run.how = How::Failed;
    Err(Problem::Asked)
}

/// One execution. It is recorded from its start to its end, for every kind of end.
pub(super) struct Run<'a> {
    number: u64,
    fence: u64,
    log: &'a HistoryLog,
    how: How,
}

impl<'a> Run<'a> {
    pub(super) fn begin(number: u64, log: &'a HistoryLog, ctx: &Context) -> Self {
        Self::begin_attempt(number, ctx.id(), ctx.attempt(), (log, ctx))
    }

    /// The same for one of the calls of a run. The attempt of a run is that of its first call.
    pub(super) fn begin_as(number: u64, id: &TaskId, log: &'a HistoryLog, ctx: &Context) -> Self {
        Self::begin_attempt(number, id, 1, (log, ctx))
    }

    fn begin_attempt(
        number: u64,
        id: &TaskId,
        attempt: u32,
        (log, ctx): (&'a HistoryLog, &Context),
    ) -> Self {
        let (id, fence) = (id.to_string(), ctx.fence());
        log.write(What::Begin { task: number, id, attempt, fence });
        Self { number, fence, log, how: How::Stopped }
    }

    pub(super) fn end(mut self, how: How) {
        self.how = how;
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        // An execution that is dropped without an end was stopped by its worker.
        let how = if std::thread::panicking() { How::Failed } else { self.how };
        self.log.write(What::End { task: self.number, fence: self.fence, how });
    }
}

async fn run(number: u64, log: &HistoryLog, ctx: &Context) -> Result<(), Problem> {
    let mut run = Run::begin(number, log, ctx);
    let attempt = ctx.attempt();
    let kind = Kind::of(number);
    let wait = Duration::from_millis(kind.wait_ms(number));
    match kind {
        Kind::Blocking => std::thread::sleep(wait),
        Kind::Spinning => {
            let begun = Instant::now();
            while begun.elapsed() < wait {
                std::hint::spin_loop();
            }
        }
        _ if wait.is_zero() => {}
        _ => {
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = ctx.cancelled() => return Err(Problem::Stopped),
            }
        }
    }
    // Attempts of killed workers count, too. So a task that fails up to a given attempt rarely runs
    // out of retries.
    let fails = match kind {
        Kind::Flaky => u64::from(attempt) <= 1 + number / 32 % 2,
        Kind::Doomed => true,
        Kind::Panicking if attempt == 1 => panic!("asked to panic"),
        _ => false,
    };
    run.how = if fails { How::Failed } else { How::Ok };
    if fails { Err(Problem::Asked) } else { Ok(()) }
}
