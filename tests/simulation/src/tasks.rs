//! The tasks: their handlers record when they begin and how they end.

use std::panic;
use std::sync::{Arc, Once};
use std::time::Duration;

use optimus_core::{
    Backoff, BoxError, Call, Cancel, Context, Fatal, Retry, Snooze, Task, TaskOptions,
};
use optimus_testkit::history::{How, What};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use crate::hostile::Bomb;
use crate::network::Network;
use crate::queues::QUEUE;

/// The limit of losses. Only a poisonous task is marked Dead for its lost workers, because many
/// workers are killed.
pub(crate) const LOSSES_MAX: u32 = 100_000;
const SOON: Backoff = Backoff::Fixed { wait: Duration::from_millis(50), jitter: 1.0 };

/// The text of a handler's panic.
pub(crate) const PANIC: &str = "asked to panic";

/// Suppresses the output of deliberate panics from now on.
pub fn be_quiet_about_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let payload = info.payload();
            if payload.downcast_ref::<&str>() != Some(&PANIC) && !payload.is::<Bomb>() {
                usual(info);
            }
        }));
    });
}

/// The behaviour of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// The handler succeeds after this many ms.
    Lasts(u64),
    /// The handler fails in this many first attempts.
    Fails(u32),
    /// The handler panics in the first attempt.
    Panics,
    /// The handler never ends by itself.
    Hangs,
    /// The handler waits for a stop request in the first attempt.
    HangsOnce,
    /// The handler snoozes once.
    Snoozes,
    /// The handler asks for a retry in the first attempt.
    RetriesAfter,
    /// The handler asks for a retry and a pause of its limit in the first attempt.
    Shuts,
    /// The handler fails for good.
    Fatal,
    /// The handler writes a line to the log of its task, and fails for good.
    Tells,
    /// The handler cancels its task.
    GivesUp,
}

/// Most tasks. The result of such a task is the fence of the recorded attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Work {
    /// The number of the task in the history.
    pub number: u64,
    /// The behaviour of the task.
    pub kind: Kind,
    /// Text that makes the arguments large.
    pub padding: String,
}

/// A task that kills its worker in each attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Poison {
    /// The number of the task in the history.
    pub number: u64,
}

/// A task that runs next to a poisonous task. It may be marked Dead for its lost workers, too.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Neighbour {
    /// The number of the task in the history.
    pub number: u64,
}

/// A task that returns nothing, so the store keeps no data of its success.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Mute {
    /// The number of the task in the history.
    pub number: u64,
}

/// A task that some workers do not know.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rare {
    /// The number of the task in the history.
    pub number: u64,
}

/// The facts that a worker's handlers know about their process.
#[derive(Clone)]
pub struct Desk {
    /// The network between the process and the store.
    pub network: Arc<Network>,
    /// The number of the process.
    pub process: u32,
}

impl Work {
    /// Returns a call of the task with the common options.
    pub fn new(number: u64, kind: Kind) -> Call<Self> {
        Self { number, kind, padding: String::new() }.call()
    }
}

impl Task for Work {
    const NAME: &'static str = "work";
    type Output = u64;

    fn options() -> TaskOptions {
        TaskOptions::new().queue(QUEUE).max_retry(5).backoff(SOON).max_losses(LOSSES_MAX)
    }

    async fn run(self, ctx: Context) -> Result<u64, BoxError> {
        let run = Run::begin(self.number, &ctx);
        let again = run.again;
        match self.kind {
            Kind::Lasts(0) => {}
            Kind::Lasts(ms) => run.wait(&ctx, Duration::from_millis(ms)).await?,
            Kind::Hangs => run.hang().await,
            Kind::HangsOnce if !again => run.wait(&ctx, Duration::from_secs(3_600)).await?,
            Kind::Fails(times) if ctx.attempt() <= times => return run.fail("asked to fail"),
            Kind::Panics if !again => {
                let _run = run.failed();
                panic::panic_any(PANIC);
            }
            Kind::Snoozes if !again => {
                return run.fail(Snooze::new(Duration::from_millis(150)));
            }
            Kind::Shuts if !again => {
                return run.fail(Retry::after(Duration::from_millis(40)).pause_limit());
            }
            Kind::RetriesAfter if !again => {
                return run.fail(Retry::after(Duration::from_millis(80)).because("asked to"));
            }
            Kind::Fatal => return run.fail(Fatal::new("asked to give up")),
            Kind::Tells => {
                ctx.log("about to give up");
                return run.fail(Fatal::new("asked to give up"));
            }
            Kind::GivesUp => {
                run.write(What::Cancel { task: self.number });
                return run.fail(Cancel);
            }
            _ => {}
        }
        run.end(How::Ok);
        Ok(ctx.fence())
    }
}

impl Task for Poison {
    const NAME: &'static str = "poison";
    type Output = ();

    fn options() -> TaskOptions {
        TaskOptions::new().queue(QUEUE).max_losses(2)
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let run = Run::begin(self.number, &ctx);
        run.desk.network.kill(run.desk.process);
        run.hang().await;
        Ok(())
    }
}

impl Task for Neighbour {
    const NAME: &'static str = "neighbour";
    type Output = u64;

    fn options() -> TaskOptions {
        TaskOptions::new().queue(QUEUE).max_losses(3)
    }

    async fn run(self, ctx: Context) -> Result<u64, BoxError> {
        let run = Run::begin(self.number, &ctx);
        run.wait(&ctx, Duration::from_millis(100)).await?;
        run.end(How::Ok);
        Ok(ctx.fence())
    }
}

impl Task for Mute {
    const NAME: &'static str = "mute";
    type Output = ();

    fn options() -> TaskOptions {
        TaskOptions::new().queue(QUEUE).max_losses(LOSSES_MAX)
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        Run::begin(self.number, &ctx).end(How::Ok);
        Ok(())
    }
}

impl Task for Rare {
    const NAME: &'static str = "rare";
    type Output = u64;

    fn options() -> TaskOptions {
        TaskOptions::new().queue(QUEUE).max_losses(LOSSES_MAX)
    }

    async fn run(self, ctx: Context) -> Result<u64, BoxError> {
        Run::begin(self.number, &ctx).end(How::Ok);
        Ok(ctx.fence())
    }
}

/// One execution. It is recorded from its start to its end, for every kind of end.
pub(crate) struct Run {
    number: u64,
    fence: u64,
    desk: Desk,
    deadline: Instant,
    how: How,
    /// Whether an attempt at the task has begun before.
    again: bool,
}

impl Run {
    pub(crate) fn begin(number: u64, ctx: &Context) -> Self {
        Self::begin_as(number, ctx.id().to_string(), ctx.attempt(), ctx)
    }

    /// The same for one of the calls of a run, of which the context has only the first.
    pub(crate) fn begin_as(number: u64, id: String, attempt: u32, ctx: &Context) -> Self {
        let desk: Desk = ctx.data().expect("each worker gives its handlers a desk");
        let fence = ctx.fence();
        let again = desk.network.journal.begun(number) > 0;
        let deadline = ctx.deadline().into();
        let run = Self { number, fence, desk, deadline, how: How::Stopped, again };
        run.write(What::Begin { task: number, id, attempt, fence });
        run
    }

    /// Records an event, unless the process is dead.
    fn write(&self, what: What) {
        if self.desk.network.is_alive(self.desk.process) {
            self.desk.network.journal.write(self.desk.process, what);
        }
    }

    pub(crate) async fn wait(&self, ctx: &Context, wait: Duration) -> Result<(), BoxError> {
        tokio::select! {
            biased;
            () = sleep(wait) => Ok(()),
            () = ctx.cancelled() => Err("asked to stop".into()),
        }
    }

    /// Complains unless the task has succeeded with that fence.
    pub(crate) fn expect_result(&self, of: u64, fence: u64) {
        if !self.desk.network.journal.ended_well(of, fence) {
            self.complain(&format!("takes the result {fence} of no attempt of task {of}"));
        }
    }

    /// Returns whether a user has deleted the task, or, of a task without a known number, any task.
    pub(crate) fn is_deleted(&self, task: Option<u64>) -> bool {
        self.desk.network.journal.has_deleted(task)
    }

    /// Reports a broken promise.
    pub(crate) fn complain(&self, what: &str) {
        self.desk.network.complain(format!("task {} {what}", self.number));
    }

    pub(crate) async fn hang(&self) {
        std::future::pending::<()>().await;
    }

    pub(crate) fn end(mut self, how: How) {
        self.how = how;
    }

    pub(crate) fn failed(mut self) -> Self {
        self.how = How::Failed;
        self
    }

    pub(crate) fn fail<T>(self, problem: impl Into<BoxError>) -> Result<T, BoxError> {
        self.end(How::Failed);
        Err(problem.into())
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // An execution that is dropped without an end was stopped, possibly by its own timeout.
        let late = self.how == How::Stopped && Instant::now() >= self.deadline;
        let how = if late { How::Failed } else { self.how };
        self.write(What::End { task: self.number, fence: self.fence, how });
    }
}
