//! Many runs, each from its own seed. A failing run is shrunk and printed.

use std::{env, time::Instant};

use optimus_core::broker::Broker;
use proptest::{
    strategy::{Strategy as _, ValueTree as _},
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

use crate::{
    bench::Bench,
    chance::{NARROW, WIDE, Width, steps},
    dump::Dump,
    reached_cases::{Goal, NARROW_GOAL, Reach, WIDE_GOAL},
    run::Run,
    shrink::shrunk,
    step::Step,
};

/// The number of runs, the number of steps of each, and the first seed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    cases: u64,
    steps: usize,
    seed: u64,
    width: &'static Width,
    goal: &'static Goal,
}

/// Two queues of one store, and a connection that may wait.
struct Field {
    benches: [Bench; 2],
    listener: Broker,
}

impl Plan {
    /// Returns the plan of the environment, or a short one.
    pub(crate) fn from_env() -> Self {
        let number = |name: &str, default: u64| {
            let name = format!("OPTIMUS_MODEL_{name}");
            let value = env::var(&name).ok();
            value
                .map_or(default, |value| value.parse().unwrap_or_else(|_| panic!("{name}={value}")))
        };
        let steps = usize::try_from(number("STEPS", 100)).expect("steps that fit in memory");
        let (cases, seed) = (number("CASES", 100), number("SEED", 1));
        Self { cases, steps, seed, width: &NARROW, goal: &NARROW_GOAL }
    }

    /// Returns the same plan with one of this many runs, and at least one run.
    pub(crate) fn one_of(self, count: u64) -> Self {
        Self { cases: (self.cases / count).max(1), ..self }
    }

    /// Returns the same plan with steps that exceed the limits of the scripts.
    pub(crate) fn wide(self) -> Self {
        Self { width: &WIDE, goal: &WIDE_GOAL, ..self }
    }

    /// Does all runs.
    ///
    /// # Panics
    /// Panics with the shortest sequence that was found, if the store differs from the reference.
    pub(crate) async fn run(self, first: Bench) {
        let begun = Instant::now();
        let benches = [first.sibling("one"), first.sibling("two")];
        let field = Field { benches, listener: first.now().blocking("model") };
        let mut reach = Reach::default();
        for seed in self.seed..self.seed + self.cases {
            let steps = self.sequence(seed);
            let reached = match field.run(&steps).await {
                Ok(reached) => reached,
                Err(problem) => {
                    let what: Vec<&str> = problem.lines().take(4).map(str::trim).collect();
                    println!("seed {seed}: {}; looking for fewer steps", what.join(" "));
                    let fails = async |steps: &[Step]| field.run(steps).await.is_err();
                    let steps = shrunk(steps, self.width.tries_max, fails).await;
                    panic!("{}", self.report(&field, seed, &steps).await);
                }
            };
            reach.add(&reached);
        }
        let Self { cases, steps, seed, .. } = self;
        println!("{cases} runs of {steps} steps from seed {seed} in {:?}", begun.elapsed());
        println!("{reach}");
        if cases * steps as u64 >= self.goal.enough_steps {
            let missing = reach.missing(self.goal);
            assert_eq!(missing, [""; 0], "cases that the steps do not reach any more");
        }
    }

    /// Returns the steps of a seed.
    fn sequence(self, seed: u64) -> Vec<Step> {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let mut runner = TestRunner::new_with_rng(Config::default(), rng);
        steps(self.steps, self.width)
            .new_tree(&mut runner)
            .expect("steps can always be made")
            .current()
    }

    /// Returns the failure with its steps, and how to repeat it.
    async fn report(self, field: &Field, seed: u64, steps: &[Step]) -> String {
        field.clear().await;
        let mut run = field.start().recording();
        let problem = match run.go(steps).await {
            Err(problem) => run.named(&problem),
            Ok(()) => "the run no longer fails".into(),
        };
        let (transcript, count) = (run.transcript(), steps.len());
        let most = self.steps;
        format!(
            "\n{transcript}\n{problem}\n\nseed {seed}, shrunk to {count} steps; again with \
             OPTIMUS_MODEL_SEED={seed} OPTIMUS_MODEL_CASES=1 OPTIMUS_MODEL_STEPS={most}\n"
        )
    }
}

impl Field {
    /// Does one run on empty queues; returns the cases that it reached, or the difference.
    async fn run(&self, steps: &[Step]) -> Result<Reach, String> {
        self.clear().await;
        let mut run = self.start();
        run.go(steps).await.map(|()| run.into_reach())
    }

    fn start(&self) -> Run<'_> {
        Run::new(&self.benches, &self.listener)
    }

    async fn clear(&self) {
        for bench in &self.benches {
            bench.set_full(false).await;
            bench.restore(&Dump::new()).await;
        }
    }
}
