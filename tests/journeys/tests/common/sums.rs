//! Tasks that count, for tests of flows and groups.

use std::time::Duration;

use optimus_core::{
    Backoff, BoxError, Call, Context, DataKey, Fatal, GroupResults, MemberEnd, Parameter,
    QueueName, Takes, Task, TaskHandle, TaskId, TaskState, given,
};
use optimus_testkit::eventually;
use optimus_worker::WorkerBuilder;
use serde::{Deserialize, Serialize};

use super::{Bench, Gate, Running, orders::Log};

pub const SOON: Duration = Duration::from_secs(60);

/// What a task does before it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Way {
    Plain,
    /// It waits until the gate is open.
    Waits,
    /// It dies while the gate is shut.
    Dies,
    /// Its first attempt fails.
    Fails,
}

/// Returns a number.
#[derive(Serialize, Deserialize)]
pub struct Number {
    pub number: u64,
    pub way: Way,
}

/// Adds to a number.
#[derive(Serialize, Deserialize)]
pub struct Add {
    pub number: u64,
    pub by: u64,
    pub way: Way,
}

/// Adds all numbers.
#[derive(Serialize, Deserialize)]
pub struct Sum {
    pub numbers: Vec<u64>,
}

/// Adds the numbers of a group, and counts members without one.
#[derive(Serialize, Deserialize)]
pub struct SumPages {
    pub numbers: GroupResults<u64>,
}

/// Records a text.
#[derive(Serialize, Deserialize)]
pub struct Note {
    pub text: String,
}

/// Returns this many bytes.
#[derive(Serialize, Deserialize)]
pub struct Fill {
    pub bytes: usize,
}

/// Counts bytes.
#[derive(Serialize, Deserialize)]
pub struct Length {
    pub text: String,
}

/// Adds a member to its group, and returns 1, until the depth is 0.
#[derive(Serialize, Deserialize)]
pub struct Spread {
    pub depth: u64,
    pub group: TaskId,
}

async fn go(way: Way, ctx: &Context) -> Result<(), BoxError> {
    let gate: Gate = ctx.data().unwrap();
    match way {
        Way::Waits => {
            gate.began.hit();
            gate.open.wait_for(1).await;
        }
        Way::Dies if gate.open.hits() == 0 => return Err(Fatal::new("no number").into()),
        Way::Fails if ctx.attempt() == 1 => return Err("not yet".into()),
        _ => {}
    }
    Ok(())
}

macro_rules! task {
    ($type:ident $name:literal $(takes $parameter:literal: $taken:ty;)?
        -> $output:ty: |$this:ident, $ctx:ident| $body:expr) => {
        impl Task for $type {
            const NAME: &'static str = $name;
            type Output = $output;

            fn required_data() -> Vec<DataKey> {
                vec![DataKey::of::<Log>(), DataKey::of::<Gate>()]
            }

            async fn run(self, ctx: Context) -> Result<$output, BoxError> {
                let ($this, $ctx) = (self, ctx);
                $body
            }
        }

        $(impl Parameter<0> for $type {
            const NAME: &'static str = $parameter;
            type Type = $taken;
        })?
    };
}

task!(Number "number" -> u64: |this, ctx| {
    go(this.way, &ctx).await?;
    Ok(this.number)
});

task!(Add "add" takes "number": u64; -> u64: |this, ctx| {
    go(this.way, &ctx).await?;
    Ok(this.number + this.by)
});

impl Parameter<1> for Add {
    const NAME: &'static str = "by";
    type Type = u64;
}

impl Parameter<2> for Add {
    const NAME: &'static str = "way";
    type Type = Way;
}

task!(Sum "sum" takes "numbers": Vec<u64>; -> u64: |this, _ctx| Ok(this.numbers.iter().sum()));

task!(SumPages "sum_pages" takes "numbers": GroupResults<u64>; -> (u64, Vec<u32>): |this, _ctx| {
    let (mut sum, mut failed, mut ends) = (0, Vec::new(), this.numbers.read());
    while let Some((index, end)) = ends.next().await? {
        match end {
            MemberEnd::Success(number) => sum += number,
            MemberEnd::Failed(_) => failed.push(index),
        }
    }
    Ok((sum, failed))
});

task!(Note "note" -> (): |this, ctx| {
    ctx.data::<Log>().unwrap().add(this.text);
    Ok(())
});

task!(Fill "fill" -> String: |this, _ctx| Ok("x".repeat(this.bytes)));

task!(Length "length" takes "text": String; -> u64: |this, _ctx| Ok(this.text.len() as u64));

task!(Spread "spread" -> u64: |this, ctx| {
    if this.depth > 0 {
        let group = ctx.client()?.group::<u64>(this.group.clone());
        group.add([spread(this.depth - 1, this.group)]).await?;
        // A second attempt adds the same member, which is there already.
        if ctx.attempt() == 1 {
            return Err("the first attempt fails".into());
        }
    }
    Ok(1)
});

pub fn spread(depth: u64, group: TaskId) -> Call<Spread> {
    let backoff = Backoff::Fixed { wait: Duration::from_millis(1), jitter: 0.0 };
    Spread { depth, group }.call().max_retry(1).backoff(backoff)
}

pub fn number(number: u64) -> Call<Number> {
    in_a_way(number, Way::Plain)
}

pub fn in_a_way(number: u64, way: Way) -> Call<Number> {
    Number { number, way }.call()
}

pub fn add(number: u64, by: u64, way: Way) -> Call<Add> {
    Add { number, by, way }.call()
}

/// Adds to the result of the step before.
pub fn plus(by: u64) -> Call<Add, Takes<u64>> {
    plus_in_a_way(by, Way::Plain)
}

pub fn plus_in_a_way(by: u64, way: Way) -> Call<Add, Takes<u64>> {
    given(|| add(0, by, way)).give::<1>(by).give::<2>(way).take::<0>()
}

pub fn sum(numbers: Vec<u64>) -> Call<Sum> {
    Sum { numbers }.call()
}

pub fn sum_pages(numbers: GroupResults<u64>) -> Call<SumPages> {
    SumPages { numbers }.call()
}

pub fn note(text: &str) -> Call<Note> {
    Note { text: text.to_owned() }.call()
}

pub fn fill(bytes: usize) -> Call<Fill> {
    Fill { bytes }.call()
}

pub fn length(text: String) -> Call<Length> {
    Length { text }.call()
}

/// A worker of some queues, with its log and its gate.
pub struct LoggedWorker {
    pub log: Log,
    pub gate: Gate,
    pub worker: Running,
}

impl LoggedWorker {
    pub fn of(bench: &Bench) -> Self {
        Self::serving(bench, ["default", "other"])
    }

    pub fn serving<const N: usize>(bench: &Bench, queues: [&'static str; N]) -> Self {
        let (log, gate) = (Log::default(), Gate::new());
        let worker = bench.start(builder(bench, &log, &gate).queues(queues));
        Self { log, gate, worker }
    }
}

pub fn builder(bench: &Bench, log: &Log, gate: &Gate) -> WorkerBuilder {
    bench
        .worker()
        .task_type::<Number>()
        .task_type::<Add>()
        .task_type::<Sum>()
        .task_type::<SumPages>()
        .task_type::<Note>()
        .task_type::<Fill>()
        .task_type::<Length>()
        .task_type::<Spread>()
        .data(log.clone())
        .data(gate.clone())
}

/// Waits until the task is in that state.
pub async fn becomes(bench: &Bench, id: &TaskId, wanted: TaskState) {
    let handle: TaskHandle<()> = bench.client.handle(id.clone());
    let reached = async || handle.status().await.unwrap() == wanted;
    eventually(&format!("{id} is {wanted}"), SOON, reached).await;
}

/// Returns how many tasks of a queue wait or run.
pub async fn unfinished(bench: &Bench, queue: &str) -> u64 {
    let queue = QueueName::new(queue).unwrap();
    let counts = bench.client.inspector().counts(&queue).await.unwrap();
    counts.blocked + counts.ready + counts.working + counts.delayed + counts.retry
}
