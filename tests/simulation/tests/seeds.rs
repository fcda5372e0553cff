//! Tests some seeds. `cargo xtask simulate` runs many.

use optimus_simulation::run::{Voice, run};
use optimus_simulation::run_sources::run_sources;

const SEEDS: std::ops::Range<u64> = 0..24;
/// Seeds with and without flows, of one queue and of many, whose runs are short.
const REPEATED: [u64; 13] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16];
/// Runs of schedules and of shards, in turn.
const SOURCES: std::ops::Range<u64> = 0..10;

#[test]
fn no_promise_is_broken() {
    let mut calls = 0;
    for seed in SEEDS {
        let outcome = run(seed, Voice::Quiet);
        assert_eq!(outcome.wrong, [""; 0], "cargo xtask simulate --seed {seed} --calls 1");
        calls += outcome.tally.script_calls;
    }
    assert!(calls > 10_000, "{calls}");
}

#[test]
fn a_seed_with_all_its_faults_runs_the_same_twice() {
    let (mut faults, mut differ) = (0, Vec::new());
    for seed in REPEATED {
        let (first, again) = (run(seed, Voice::Quiet), run(seed, Voice::Quiet));
        faults += first.tally.faults.iter().sum::<u64>();
        let same =
            first.trace == again.trace && first.tally.script_calls == again.tally.script_calls;
        differ.extend((!same).then_some(seed));
    }
    assert!(faults > 100, "{faults}");
    assert_eq!(differ, [0; 0], "compare the output of two runs with --loud");
}

fn of_sources(seeds: impl Iterator<Item = u64>) {
    for seed in seeds {
        let outcome = run_sources(seed, Voice::Quiet);
        let again = "cargo xtask simulate --sources --calls 1 --seed";
        assert_eq!(outcome.wrong, [""; 0], "{again} {seed}");
        let calls = outcome.tally.script_calls;
        assert!(calls > 500, "seed {seed}: {calls}");
    }
}

#[test]
fn each_instant_of_a_schedule_is_taken_once() {
    of_sources(SOURCES.step_by(2));
}

#[test]
fn each_shard_has_one_worker() {
    of_sources(SOURCES.skip(1).step_by(2));
}
