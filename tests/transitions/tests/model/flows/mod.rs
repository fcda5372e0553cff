//! Random calls on two queues whose tasks have limits, are members of groups, or run together,
//! compared with what their users may see.
//!
//! The reference of the other tests predicts every key. This one only has the promises: when a task
//! may start and when it must, what a group counts, which calls run together, that somebody looks
//! at each task in time, and that nothing is left in the end. So it does not change with the keys.

mod acts;
mod compare;
mod drain;
pub(crate) mod found;
mod gathers;
mod groups;
mod limits;
mod operators;
mod reference;
mod run;
mod step;
mod submits;

use std::{env, time::Instant};

use crate::{bench::Bench, dump::Dump, shrink::without_spare_steps};

use self::{
    run::FlowRun,
    step::{Step, steps},
};

/// How often a failing run is repeated with fewer steps.
const TRIES_MAX: u32 = 400;

/// A number of the environment, as the other tests use it.
fn number(name: &str, default: u64) -> u64 {
    let name = format!("OPTIMUS_MODEL_{name}");
    env::var(&name).map_or(default, |value| value.parse().unwrap_or_else(|_| panic!("{value}")))
}

/// Runs one of so many seeds.
pub(crate) async fn run(first: Bench, one_of: u64) {
    let begun = Instant::now();
    let benches = [first.sibling("one"), first.sibling("two")];
    let (cases, seed) = (number("CASES", 100).div_ceil(one_of), number("SEED", 1));
    let count = usize::try_from(number("STEPS", 100)).expect("steps that fit in memory");
    for seed in seed..seed + cases {
        let all = steps(seed, count);
        let Err(problem) = attempt(&benches, &all).await else { continue };
        println!("seed {seed}: {problem}; looking for fewer steps");
        let fails = async |steps: &[Step]| attempt(&benches, steps).await.is_err();
        let few = without_spare_steps(all, TRIES_MAX, fails).await;
        clear(&benches).await;
        let mut run = FlowRun::new(&benches).await.noting();
        let problem = run.go(&few).await.err().unwrap_or_else(|| "it no longer fails".into());
        panic!("\n{}\n\nseed {seed}", run.transcript(&problem));
    }
    println!("{cases} runs of {count} steps from seed {seed} in {:?}", begun.elapsed());
}

async fn attempt(benches: &[Bench; 2], steps: &[Step]) -> Result<(), String> {
    clear(benches).await;
    FlowRun::new(benches).await.go(steps).await
}

async fn clear(benches: &[Bench; 2]) {
    for bench in benches {
        bench.restore(&Dump::new()).await;
    }
}
