//! Measures the Redis instructions and the processor time of Redis for each verb of a dispenser.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use optimus_core::broker::{Broker, ByAssignee, HoldTimes};
use optimus_core::{Item, ItemPlace};
use tokio::task::JoinSet;

use super::redis_instructions::{broker, count_steps};
use super::{Measurement, plain};
use crate::bench::{Bench, progress};
use crate::callgrind;
use crate::field::{Field, Sample};
use crate::row::{Row, params};

pub(super) const DISPENSER: Measurement = Measurement {
    name: "dispenser",
    about: "instructions and processor time of Redis for the verbs of a dispenser",
    run: dispenser,
};

/// The items of each call.
const ITEMS: usize = 20;
const CALLS: usize = 40;
/// Redis' processor time is much less steady than its instructions, so more calls are timed.
const TIMED_CALLS: u64 = 4_000;
/// The calls that are under way at once, so that Redis' time is that of the calls and not that of
/// its wakeups.
const AT_ONCE: usize = 16;
const TIMES: HoldTimes =
    HoldTimes { hold: Duration::from_secs(3_600), hold_max: Duration::from_secs(3_600) };

/// A step: each call is of another assignee.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Every item comes into the pool.
    Add,
    /// Every assignee gets its items.
    Assign,
    /// Every assignee asks what it holds.
    Check,
    /// Every assignee gives its items back.
    GiveBack,
    /// Other assignees get these.
    AssignReturned,
    /// They end them.
    Complete,
}

const STEPS: [(Step, &str); 6] = [
    (Step::Add, "add"),
    (Step::Assign, "assign"),
    (Step::Check, "check"),
    (Step::GiveBack, "give back"),
    (Step::AssignReturned, "assign returned"),
    (Step::Complete, "complete"),
];

fn dispenser(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    if !callgrind::is_there() {
        return Ok(Vec::new());
    }
    let mut of_step = [const { Vec::new() }; STEPS.len()];
    for run in 1..=bench.scale.runs {
        progress(DISPENSER.name, &params([]), &format!("run {run} of {}", bench.scale.runs));
        for (samples, us) in of_step.iter_mut().zip(timed(bench)?) {
            samples.push(Sample::new().with(Field::RedisCpuUsPerCall, us));
        }
    }
    let counts = count_steps(bench, STEPS.len() + 1, CALLS, async |broker, last, calls| {
        let mut held = vec![Vec::new(); calls];
        for (step, _) in &STEPS[..last] {
            step.run(&broker, &mut held).await?;
        }
        Ok(())
    })?;
    for (samples, count) in of_step.iter_mut().zip(counts) {
        samples.push(Sample::new().with(Field::InstructionsPerCall, count));
    }
    let rows = STEPS.iter().zip(of_step).map(|((_, name), samples)| {
        let shown = params([("of", (*name).into()), ("items", ITEMS.into())]);
        Row::of_runs(DISPENSER.name, shown, &samples)
    });
    Ok(rows.collect())
}

/// Returns Redis' processor time for a call of each step, in us.
fn timed(bench: &Bench) -> anyhow::Result<Vec<f64>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (redis, calls) = (&bench.redis, usize::try_from(bench.scale.tasks(TIMED_CALLS))?);
    redis.probe().flush()?;
    let broker = broker(&redis.url(), "bench")?;
    let (mut us, mut held) = (Vec::new(), vec![Vec::new(); calls]);
    for (step, _) in STEPS {
        let before = redis.probe().counters()?;
        runtime.block_on(step.run(&broker, &mut held))?;
        us.push(redis.probe().since(&before)?.cpu_s * 1e6 / calls as f64);
    }
    Ok(us)
}

impl Step {
    /// Makes one call for each of these lists of items, which an assignee holds, and updates them.
    async fn run(self, broker: &Broker, held: &mut [Vec<String>]) -> anyhow::Result<()> {
        let mut under_way = JoinSet::new();
        let mut numbers = 0..held.len();
        loop {
            while under_way.len() < AT_ONCE {
                let Some(number) = numbers.next() else { break };
                let (broker, ids) = (broker.clone(), std::mem::take(&mut held[number]));
                under_way.spawn(async move {
                    anyhow::Ok((number, self.call(&broker, number, ids).await?))
                });
            }
            let Some(ended) = under_way.join_next().await else { return Ok(()) };
            let (number, ids) = ended.context("a call panicked")??;
            held[number] = ids;
        }
    }

    /// Makes the call with this number. Returns what its assignee holds then.
    async fn call(
        self,
        broker: &Broker,
        number: usize,
        ids: Vec<String>,
    ) -> anyhow::Result<Vec<String>> {
        let slot = &plain::queue()?;
        let assignee = &match self {
            Self::Add | Self::Assign | Self::Check | Self::GiveBack => format!("first-{number}"),
            Self::AssignReturned | Self::Complete => format!("second-{number}"),
        };
        let by = ByAssignee { slot, assignee, times: TIMES, once: "".into() };
        let of_all = |place, places: Vec<ItemPlace>| places.iter().all(|found| *found == place);
        match self {
            Self::Add => {
                let item = |at: usize| Item::new(format!("item-{:08}", number * ITEMS + at));
                let items: Vec<Item> = (0..ITEMS).map(item).collect();
                let added = broker.dispenser_add(slot, "", &items).await?;
                ensure!(added.added == ITEMS as u64, "some items were known");
            }
            Self::GiveBack => {
                let places = broker.dispenser_return(by, &ids).await?;
                ensure!(of_all(ItemPlace::Open, places), "some items were not given back");
            }
            Self::Complete => {
                let places = broker.dispenser_done(by, &ids).await?;
                ensure!(of_all(ItemPlace::Done, places), "some items were not completed");
            }
            Self::Assign | Self::AssignReturned | Self::Check => {
                let held = match self {
                    Self::Check => broker.dispenser_check(by).await?,
                    _ => broker.dispenser_assign(by, ITEMS).await?,
                };
                ensure!(held.items.len() == ITEMS, "an assignee holds too few items");
                return Ok(held.ids().map(str::to_owned).collect());
            }
        }
        Ok(Vec::new())
    }
}
