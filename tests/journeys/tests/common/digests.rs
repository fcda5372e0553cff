//! Tasks whose calls are gathered, for tests of runs.

use std::{collections::BTreeMap, time::Duration};

use optimus_core::{
    Backoff, BoxError, Call, Context, DataKey, Each, Snooze, Task, TaskHandle, TaskId, TaskOptions,
    TaskState,
};
use optimus_testkit::{Hold, eventually};
use optimus_worker::WorkerBuilder;
use serde::{Deserialize, Deserializer, Serialize, de::Error};

use super::{Bench, Double, Gate, Running, orders::Log};

pub const SOON: Duration = Duration::from_secs(60);
pub const HOUR: Duration = Duration::from_secs(3600);

/// The number that can't be decoded.
pub const BAD: u64 = u64::MAX;

/// What the run of a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Way {
    Plain,
    /// It waits until the gate is open, or until it is asked to stop.
    Waits,
    /// Its first attempt fails.
    Fails,
    /// Each attempt fails while the gate is shut.
    Dies,
    Panics,
    /// Its first attempt snoozes.
    Snoozes,
    /// It does not return, and ignores a request to stop.
    Hangs,
    /// It blocks its thread until the test releases it.
    Blocks,
    /// It kills the process.
    Kills,
}

/// The arguments of a call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Event {
    pub user: String,
    #[serde(deserialize_with = "a_good_number")]
    pub number: u64,
    pub way: Way,
}

fn a_good_number<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    match u64::deserialize(from)? {
        BAD => Err(D::Error::custom("a bad number")),
        number => Ok(number),
    }
}

/// Records the numbers of a run, and returns them.
async fn digest(events: Vec<Event>, ctx: &Context) -> Result<Vec<u64>, BoxError> {
    let (log, gate): (Log, Gate) = (ctx.data().unwrap(), ctx.data().unwrap());
    let numbers: Vec<u64> = events.iter().map(|event| event.number).collect();
    assert_eq!(ctx.calls().len(), numbers.len());
    assert_eq!(ctx.id(), &ctx.calls()[0]);
    assert!(events.iter().all(|event| event.user == events[0].user), "{events:?}");
    log.add(format!("{}#{}: {numbers:?}", events[0].user, ctx.attempt()));
    gate.began.hit();
    for way in events.iter().map(|event| event.way) {
        match way {
            Way::Waits => tokio::select! {
                () = gate.open.wait_for(1) => {}
                () = ctx.cancelled() => return Err("asked to stop".into()),
            },
            Way::Fails if ctx.attempt() == 1 => return Err("not yet".into()),
            Way::Dies if gate.open.hits() == 0 => return Err("never".into()),
            Way::Panics => panic!("asked to panic"),
            Way::Snoozes if gate.open.hits() == 0 => {
                gate.open.hit();
                return Err(Snooze::new(Duration::from_millis(50)).into());
            }
            Way::Hangs => std::future::pending().await,
            Way::Blocks => ctx.data::<Hold>().unwrap().keep_thread(),
            Way::Kills => std::process::abort(),
            _ => {}
        }
    }
    Ok(numbers)
}

macro_rules! gathered {
    ($type:ident $name:literal $wait:expr, $max:literal) => {
        #[derive(Serialize, Deserialize)]
        pub struct $type(pub Event);

        impl Task for $type {
            const NAME: &'static str = $name;
            type Output = Vec<u64>;

            fn options() -> TaskOptions {
                let backoff = Backoff::Fixed { wait: Duration::from_millis(20), jitter: 0.0 };
                TaskOptions::new().gather($wait, $max).backoff(backoff)
            }

            fn by(&self) -> Option<String> {
                Some(self.0.user.clone())
            }

            fn required_data() -> Vec<DataKey> {
                vec![DataKey::of::<Log>(), DataKey::of::<Gate>()]
            }

            async fn run(self, ctx: Context) -> Result<Vec<u64>, BoxError> {
                Self::run_all(vec![self], ctx).await?.into_single()
            }

            async fn run_all(calls: Vec<Self>, ctx: Context) -> Result<Each<Vec<u64>>, BoxError> {
                digest(calls.into_iter().map(|call| call.0).collect(), &ctx).await.map(Each::same)
            }
        }
    };
}

// Runs once three calls wait.
gathered!(Three "three" HOUR, 3);
// The same, and the calls may expire soon.
gathered!(Brief "brief" Duration::from_secs(2), 3);
// Runs soon after its first call.
gathered!(Short "short" Duration::from_millis(150), 10_000);
// Runs once a hundred calls wait, or after a while.
gathered!(Hundred "hundred" Duration::from_millis(500), 100);

/// Its runs have a result for each call, and fail those that must fail. They run once three wait.
#[derive(Serialize, Deserialize)]
pub struct Apart(pub Event);

impl Task for Apart {
    const NAME: &'static str = "apart";
    type Output = u64;

    fn options() -> TaskOptions {
        let backoff = Backoff::Fixed { wait: Duration::from_millis(20), jitter: 0.0 };
        TaskOptions::new().gather(HOUR, 3).backoff(backoff)
    }

    fn by(&self) -> Option<String> {
        Some(self.0.user.clone())
    }

    async fn run(self, ctx: Context) -> Result<u64, BoxError> {
        Self::run_all(vec![self], ctx).await?.into_single()
    }

    async fn run_all(calls: Vec<Self>, ctx: Context) -> Result<Each<u64>, BoxError> {
        let log: Log = ctx.data().unwrap();
        let numbers: Vec<u64> = calls.iter().map(|call| call.0.number).collect();
        log.add(format!("{}#{}: {numbers:?}", calls[0].0.user, ctx.attempt()));
        let result = |Self(event): Self| match event.way {
            Way::Fails if ctx.attempt() == 1 => Err("not yet"),
            Way::Dies => Err("never"),
            _ => Ok(10 * event.number),
        };
        Ok(calls.into_iter().map(result).collect())
    }
}

pub fn apart(number: u64, way: Way) -> Call<Apart> {
    Apart(event("ann", number, way)).call()
}

pub fn event(user: &str, number: u64, way: Way) -> Event {
    Event { user: user.to_owned(), number, way }
}

pub fn three(user: &str, number: u64, way: Way) -> Call<Three> {
    Three(event(user, number, way)).call()
}

pub fn brief(number: u64, way: Way) -> Call<Brief> {
    Brief(event("ann", number, way)).call()
}

pub fn short(user: &str, number: u64) -> Call<Short> {
    Short(event(user, number, Way::Plain)).call()
}

pub fn hundred(user: &str, number: u64) -> Call<Hundred> {
    Hundred(event(user, number, Way::Plain)).call()
}

/// A worker with the data of its tasks.
pub struct LoggedWorker {
    pub worker: Running,
    pub log: Log,
    pub gate: Gate,
}

impl LoggedWorker {
    pub fn of(bench: &Bench) -> Self {
        Self::with(bench, |builder| builder)
    }

    pub fn with(bench: &Bench, settings: impl FnOnce(WorkerBuilder) -> WorkerBuilder) -> Self {
        let (log, gate) = (Log::default(), Gate::new());
        let worker = bench.start(settings(builder(bench, &log, &gate)));
        Self { worker, log, gate }
    }

    /// Returns the numbers of each user, in the order in which they ran.
    pub fn ran(&self) -> BTreeMap<String, Vec<u64>> {
        let mut ran: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for line in self.log.lines() {
            let (user, rest) = line.split_once('#').unwrap();
            let (_, numbers) = rest.split_once(": ").unwrap();
            let numbers: Vec<u64> = serde_json::from_str(numbers).unwrap();
            ran.entry(user.to_owned()).or_default().extend(numbers);
        }
        ran
    }
}

pub fn builder(bench: &Bench, log: &Log, gate: &Gate) -> WorkerBuilder {
    let builder = bench.worker().task_type::<Three>().task_type::<Short>().task_type::<Hundred>();
    let builder = builder.task_type::<Apart>().task_type::<Brief>().task_type::<Double>();
    builder.data(log.clone()).data(gate.clone())
}

/// Submits the calls of a run, one after the other.
pub async fn submit<T: Task>(
    bench: &Bench,
    calls: impl IntoIterator<Item = Call<T>>,
) -> Vec<TaskHandle<T::Output>> {
    let mut handles = Vec::new();
    for call in calls {
        handles.push(bench.client.submit(call).await.unwrap());
    }
    handles
}

/// Waits until each of the tasks is in that state.
pub async fn become_all(handles: &[TaskHandle<Vec<u64>>], wanted: TaskState) {
    for handle in handles {
        let reached = async || handle.status().await.unwrap() == wanted;
        eventually(&format!("{} is {wanted}", handle.id()), SOON, reached).await;
    }
}

pub async fn done(handle: &TaskHandle<Vec<u64>>) -> Vec<u64> {
    handle.result_within(SOON).await.unwrap()
}

pub async fn tries(bench: &Bench, id: &TaskId) -> (u32, u32) {
    let task = super::view(bench, id).await;
    (task.failures, task.losses)
}
