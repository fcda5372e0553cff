//! The tasks: handlers that write down when they begin and how they end.

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

/// No task but a poisonous one is marked Dead for its lost workers: many are killed.
pub(crate) const LOSSES_MAX: u32 = 100_000;
const SOON: Backoff = Backoff::Fixed { wait: Duration::from_millis(50), jitter: 1.0 };

/// What a handler says when it panics.
pub(crate) const PANIC: &str = "asked to panic";

/// From now on nothing is told of panics that handlers were asked for: they are part of the play.
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

/// What a handler does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Ends well after so many ms.
    Lasts(u64),
    /// Fails at its first so many attempts.
    Fails(u32),
    /// Panics the first time.
    Panics,
    /// Never ends by itself.
    Hangs,
    /// Waits to be told to stop, the first time.
    HangsOnce,
    /// Comes back later, once.
    Snoozes,
    /// Asks for a retry, the first time.
    RetriesAfter,
    /// Fails for good.
    Fatal,
    /// Cancels itself.
    GivesUp,
}

/// Most tasks. Its result is the fence of the attempt that was recorded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Work {
    /// Its number in the history.
    pub number: u64,
    /// What it does.
    pub kind: Kind,
    /// Makes its arguments large.
    pub padding: String,
}

/// Kills its worker, each time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Poison {
    /// Its number in the history.
    pub number: u64,
}

/// Stands beside a poisonous one, and may be marked Dead for its lost workers, too.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Neighbour {
    /// Its number in the history.
    pub number: u64,
}

/// Returns nothing, so nothing is kept of its success.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Mute {
    /// Its number in the history.
    pub number: u64,
}

/// Not every worker knows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rare {
    /// Its number in the history.
    pub number: u64,
}

/// What a worker's handlers know of the process they are in.
#[derive(Clone)]
pub struct Desk {
    /// What lies between it and the store.
    pub network: Arc<Network>,
    /// Its number.
    pub process: u32,
}

impl Work {
    /// A call of it with the options that all have.
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
                return run.fail(Snooze::lasting(Duration::from_millis(150)));
            }
            Kind::RetriesAfter if !again => {
                return run.fail(Retry::after(Duration::from_millis(80)).because("asked to"));
            }
            Kind::Fatal => return run.fail(Fatal::new("asked to give up")),
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

/// One execution, written down from its begin to its end, however it ends.
pub(crate) struct Run {
    number: u64,
    fence: u64,
    desk: Desk,
    deadline: Instant,
    how: How,
    /// It began before.
    again: bool,
}

impl Run {
    pub(crate) fn begin(number: u64, ctx: &Context) -> Self {
        let desk: Desk = ctx.data().expect("each worker gives its handlers a desk");
        let (id, attempt, fence) = (ctx.id().to_string(), ctx.attempt(), ctx.fence());
        let again = desk.network.journal.begun(number) > 0;
        let deadline = ctx.deadline().into();
        let run = Self { number, fence, desk, deadline, how: How::Stopped, again };
        run.write(What::Begin { task: number, id, attempt, fence });
        run
    }

    /// A dead process writes nothing.
    fn write(&self, what: What) {
        if self.desk.network.is_alive(self.desk.process) {
            self.desk.network.journal.write(self.desk.process, what);
        }
    }

    async fn wait(&self, ctx: &Context, wait: Duration) -> Result<(), BoxError> {
        tokio::select! {
            biased;
            () = sleep(wait) => Ok(()),
            () = ctx.cancelled() => Err("told to stop".into()),
        }
    }

    pub(crate) async fn hang(&self) {
        std::future::pending::<()>().await;
    }

    fn end(mut self, how: How) {
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
        // One that is dropped before it said how it ends was stopped, be it by its own timeout.
        let late = self.how == How::Stopped && Instant::now() >= self.deadline;
        let how = if late { How::Failed } else { self.how };
        self.write(What::End { task: self.number, fence: self.fence, how });
    }
}
