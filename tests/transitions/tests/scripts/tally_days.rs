//! Thirty days of statistics on virtual time, compared with a model that adds each count to its
//! minute, hour and day.

use std::{collections::BTreeMap, time::Duration};

use optimus_core::{StatsUnit, TaskStats, WorkerId};

use crate::bench::{Bench, START};

const DAY: u64 = 24 * 3_600_000;
const DAYS: u64 = 30;
const TASKS: [&str; 5] = ["mail", "bill", "resize", "export", "clean"];

/// What the model has of each task by the number of its minute, hour or day.
type Model = BTreeMap<(u64, String), TaskStats>;

async fn thirty_days_are_counted_exactly(bench: Bench) {
    let mut random = fastrand::Rng::with_seed(15);
    let mut workers: Vec<(WorkerId, u64)> = Vec::new();
    for name in ["a", "b", "c"] {
        workers.push((bench.worker_for(0, name, Duration::from_secs(9_999_999)).await, 0));
    }
    let units = [StatsUnit::Minute, StatsUnit::Hour, StatsUnit::Day];
    let mut models = [Model::new(), Model::new(), Model::new()];
    let mut at = 0;
    while at < DAYS * DAY {
        // Nights are quiet, and some hours have a call each few seconds.
        let busy = random.u32(..100) < 90;
        at += if busy { random.u64(1_000..60_000) } else { random.u64(..12 * 3_600_000) };
        let (worker, number) = &mut workers[random.usize(..3)];
        *number += 1;
        let mut counted: BTreeMap<&str, TaskStats> = BTreeMap::new();
        for _ in 0..random.usize(1..4) {
            let stats = counted.entry(TASKS[random.usize(..TASKS.len())]).or_default();
            stats.successes += random.u64(..100);
            stats.retries += random.u64(..3);
            stats.deaths += random.u64(..2);
            stats.record(Some(Duration::from_micros(random.u64(1..10_000_000))), None);
        }
        let broker = bench.at(at);
        let lines = || counted.iter().map(|(task, stats)| (*task, stats));
        broker.tally(&bench.queue, worker, *number, lines()).await.unwrap();
        if random.u32(..10) == 0 {
            // The answer was lost.
            broker.tally(&bench.queue, worker, *number, lines()).await.unwrap();
        }
        for (model, unit) in models.iter_mut().zip(units) {
            let row = (START + at) / u64::try_from(unit.length().as_millis()).unwrap();
            for (task, stats) in &counted {
                model.entry((row, (*task).to_owned())).or_default().add(stats);
            }
        }
    }
    for (model, unit) in models.iter().zip(units) {
        let length = u64::try_from(unit.length().as_millis()).unwrap();
        let stats = bench.at(at).stats(&bench.queue, unit, unit.kept()).await.unwrap();
        let since = (START + at) / length + 1 - u64::from(unit.kept());
        let mut expected = model.iter().filter(|((row, _), _)| *row >= since);
        for row in &stats.rows {
            let number = u64::try_from(row.since.timestamp_millis()).unwrap() / length;
            for (task, found) in &row.tasks {
                let (key, known) = expected.next().expect("the model has the row");
                assert_eq!((key.0, &key.1), (number, task), "{unit:?}");
                let counts = |stats: &TaskStats| {
                    (
                        stats.successes,
                        stats.retries,
                        stats.deaths,
                        stats.run.count(),
                        stats.run.mean(),
                    )
                };
                assert_eq!(counts(found), counts(known), "{unit:?} {key:?}");
            }
        }
        assert!(expected.next().is_none(), "{unit:?}: the store lacks a row");
    }
    assert_eq!(bench.fsck().await, [""; 0]);
}

on_both![thirty_days_are_counted_exactly];
