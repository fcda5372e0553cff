//! The tasks of schedules, and a sharded function. They record the instants and the rounds.

use std::time::Duration;

use optimus_core::{
    BoxError, Client, Context, Missed, Overlap, QueueName, Round, Schedule, Shard, Sharded,
    ShardedOptions, Task, TaskOptions, Walk,
};
use optimus_worker::WorkerBuilder;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::network::Network;
use crate::queues::QUEUE;
use crate::rows::rows;
use crate::tasks::{Desk, LOSSES_MAX};

/// The name of the schedule in the code of some workers.
pub const CODED: &str = "coded";
/// The queue to which release 4 has moved the function of that schedule.
pub const MOVED: &str = "work1";
/// The name of the sharded function.
pub const ROUNDS: &str = "rounds";
/// How many shards there are at first.
pub const SHARDS: u16 = 4;
/// How long a round works, and how long it needs to end when it is asked to.
const WORKS: Duration = Duration::from_millis(200);
const ENDS: Duration = Duration::from_millis(50);
/// The longest rest after a round.
const IDLE: Duration = Duration::from_millis(300);
const PAGE: usize = 100;
const REMOVES_AGAIN: Duration = Duration::from_millis(100);

/// What a worker has in its code in addition to the usual tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sources {
    /// No schedule and no sharded function. It runs the tasks that the schedule has submitted.
    #[default]
    Nothing,
    /// A schedule, as this release of the code has it: 1 and 2 with instants every few seconds, 3
    /// and 4 less often, and 4 in another queue.
    Release(u8),
    /// A sharded function.
    Shards,
    /// A source.
    Rows,
}

impl Sources {
    /// Adds what the worker has in its code.
    pub(crate) fn add_to(self, builder: WorkerBuilder) -> WorkerBuilder {
        match self {
            Self::Nothing => builder.task_type::<Coded<0>>(),
            Self::Release(1) => builder.task_type::<Coded<1>>(),
            Self::Release(2) => builder.task_type::<Coded<2>>(),
            Self::Release(3) => builder.task_type::<Coded<3>>(),
            Self::Release(_) => builder.task_type::<Coded<4>>(),
            Self::Shards => builder.sharded(rounds),
            Self::Rows => builder.source(rows),
        }
    }
}

/// A task of schedules that are made at run time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Ticked {
    /// How long the handler takes.
    pub lasts_ms: u64,
    /// Text that makes the arguments large.
    pub padding: String,
}

/// A task with a schedule in the code of a program, of this release; release 0 has none.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Coded<const RELEASE: u8> {}

impl Task for Ticked {
    const NAME: &'static str = "ticked";
    type Output = ();

    fn options() -> TaskOptions {
        TaskOptions::new().queue(QUEUE).max_losses(LOSSES_MAX)
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        note(&ctx, Duration::from_millis(self.lasts_ms)).await
    }
}

impl<const RELEASE: u8> Task for Coded<RELEASE> {
    const NAME: &'static str = "coded";
    type Output = ();

    fn options() -> TaskOptions {
        let queue = if RELEASE == 4 { MOVED } else { QUEUE };
        TaskOptions::new().queue(queue).max_losses(LOSSES_MAX)
    }

    fn schedule() -> Option<Schedule> {
        let expression = match RELEASE {
            0 => return None,
            1 => "*/2 * * * * *",
            2 => "*/3 * * * * *",
            3 => "*/30 * * * * *",
            _ => "*/40 * * * * *",
        };
        let schedule = Schedule::cron(CODED, expression).release(format!("1.{RELEASE}.0"));
        Some(schedule.missed(Missed::Skip).overlap(Overlap::Skip).call(Self {}.call()))
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        note(&ctx, Duration::ZERO).await
    }
}

/// Records that the task of an instant has run.
async fn note(ctx: &Context, lasts: Duration) -> Result<(), BoxError> {
    let desk: Desk = ctx.data().expect("each worker gives its handlers a desk");
    if !lasts.is_zero() {
        tokio::select! {
            biased;
            () = ctx.cancelled() => return Err("asked to stop".into()),
            () = sleep(lasts) => {}
        }
    }
    let tick = ctx.tick().filter(|_| desk.network.is_alive(desk.process));
    if let Some((name, tick)) = tick.and_then(|tick| Some((tick.schedule()?, tick))) {
        let nominal_ms = tick.nominal().timestamp_millis();
        desk.network.ticks.ran(ctx.queue().as_str(), name, nominal_ms.unsigned_abs());
    }
    Ok(())
}

/// Returns the sharded function.
pub fn rounds() -> Sharded {
    let options = ShardedOptions { shards: SHARDS, idle: IDLE, walk: Walk::Forever };
    Sharded::new((ROUNDS, "simulation"), options, Vec::new, |shard| Ok(Box::pin(round(shard))))
}

/// The record of one round or page, from its begin to its end.
pub(crate) struct Work {
    desk: Desk,
    place: usize,
}

impl Drop for Work {
    fn drop(&mut self) {
        let network = &self.desk.network;
        network.posts.end(network.journal.now_ns(), self.place);
    }
}

impl Work {
    /// Returns none if the process is dead.
    pub(crate) fn begin(desk: Desk, shard: &Shard) -> Option<Self> {
        let network: &Network = &desk.network;
        if !network.is_alive(desk.process) {
            return None;
        }
        let begun = network.posts.begin(network.journal.now_ns(), desk.process, shard);
        if let Some(wrong) = begun.wrong {
            network.complain(wrong);
        }
        Some(Self { desk, place: begun.place })
    }
}

async fn round(mut shard: Shard) -> Result<Round, BoxError> {
    let desk: Desk = shard.data().ok_or("each worker gives its functions a desk")?;
    let Some(_work) = Work::begin(desk, &shard) else { return std::future::pending().await };
    let position = shard.position::<u64>()?.unwrap_or(0);
    tokio::select! {
        biased;
        () = shard.stopping() => {
            sleep(ENDS).await;
            return Ok(Round::Again);
        }
        () = sleep(WORKS) => {}
    }
    shard.checkpoint(&(position + 1)).await?;
    let row = shard.index();
    match position % 3 {
        0 => drop(shard.failed(row).await?),
        1 => shard.succeeded(row).await?,
        _ => drop(shard.set_aside::<u16>().await?),
    }
    Ok(if position.is_multiple_of(2) { Round::Again } else { Round::Idle })
}

/// Removes all schedules of these queues, until Redis has answered.
pub(crate) async fn remove_schedules(client: &Client, queues: &[QueueName]) {
    let schedules = client.schedules();
    for queue in queues {
        for _ in 0..PAGE {
            let page = schedules.list(queue, None, PAGE).await;
            let is_empty = page.as_ref().is_ok_and(|page| page.rows.is_empty());
            if is_empty {
                break;
            }
            for row in page.map(|page| page.rows).unwrap_or_default() {
                if schedules.remove(&row.name).await.is_err() {
                    sleep(REMOVES_AGAIN).await;
                }
            }
        }
    }
}
