//! `count`: how many tasks are in each state, at one moment.

use optimus_core::broker::{Counts, FailureOutcome};

use crate::{
    acts::{failed, ms},
    bench::Bench,
    jobs::job,
};

/// How often the task changes its state.
const MOVES: u32 = 200;

fn all(counts: &Counts) -> u64 {
    counts.ready + counts.delayed + counts.blocked + counts.retry + counts.working
}

async fn a_task_that_moves_is_counted_once(bench: Bench) {
    bench.add(0, job()).await;
    let worker = bench.worker(0, "w").await;
    let moves = async {
        for number in 1..=MOVES {
            let lease = bench.take(number.into(), &worker, number.into()).await;
            let retry = failed(&lease, FailureOutcome::Retry(ms(1)));
            assert!(bench.fail(number.into(), &[retry]).await.is_empty());
        }
    };
    let reader = bench.now();
    let counts = async {
        loop {
            let counts = reader.counts(&bench.queue).await.unwrap();
            assert_eq!(all(&counts), 1, "{counts:?}");
        }
    };
    tokio::select! {
        biased;
        () = moves => {}
        () = counts => {}
    }
}

on_both![a_task_that_moves_is_counted_once];
