//! At maxmemory a submit is refused as a whole, and every script that drains the queue works.

use optimus_core::broker::BrokerError;

use crate::{
    acts::{Grants, ms},
    bench::Bench,
    dump::Dump,
    gathers::{gathered, three_of},
    jobs::jobs,
    situations::SITUATIONS,
    world::World,
};

async fn a_full_store_refuses_whole_submits_and_can_be_drained(bench: Bench) {
    for (script, situations) in SITUATIONS {
        for situation in *situations {
            bench.restore(&Dump::new()).await;
            let world = World::build_for(&bench, situation).await;
            let before = bench.dump().await;
            bench.set_full(true).await;
            let answer = world.act(&bench, script, situation).await;
            bench.set_full(false).await;
            if grows(script, situation) {
                assert!(matches!(answer, Err(BrokerError::Full)), "{situation}: {answer:?}");
                bench.assert_unchanged(&before).await;
            } else {
                answer.unwrap_or_else(|problem| panic!("{script}, {situation}: {problem:?}"));
            }
        }
    }
}

/// Returns whether the call only adds something, so that a full store refuses it.
fn grows(script: &str, situation: &str) -> bool {
    match script {
        "submit" | "schedule" | "tick" | "dispenser_add" => true,
        "tally" | "annotate" => situation != "a repeat",
        "dispenser_rebuild" => situation != "dispensed, end",
        _ => false,
    }
}

/// The tasks of that submit are stored, so an answer that nothing was done would be wrong.
async fn a_full_store_answers_a_submit_that_is_sent_again(bench: Bench) {
    let tasks = jobs(2);
    let first = bench.send(0, 1, &tasks).await.unwrap();
    bench.set_full(true).await;
    let again = bench.send(1, 1, &tasks).await;
    bench.set_full(false).await;
    assert_eq!(again.unwrap(), first);
}

/// A run is due, and nothing else, when a worker claims, and when it looks at the run again.
async fn a_full_store_grants_tasks_beside_a_run(bench: Bench) {
    let worker = bench.worker_for(0, "w", ms(600_000)).await;
    bench.submit(0, &gathered(0, 3, &three_of("a"))).await;
    bench.submit(0, &jobs(2)).await;
    bench.set_full(true).await;
    let first = bench.claim(1, &worker, 1, 2).await.ids();
    let again = bench.claim(20_000, &worker, 2, 2).await.ids();
    bench.set_full(false).await;
    assert_eq!((first.len(), again.len()), (2, 1));
}

#[tokio::test]
async fn embedded() {
    a_full_store_refuses_whole_submits_and_can_be_drained(Bench::embedded()).await;
    a_full_store_answers_a_submit_that_is_sent_again(Bench::embedded()).await;
    a_full_store_grants_tasks_beside_a_run(Bench::embedded()).await;
}

#[tokio::test]
async fn redis() {
    a_full_store_refuses_whole_submits_and_can_be_drained(Bench::own_redis().await).await;
    a_full_store_answers_a_submit_that_is_sent_again(Bench::own_redis().await).await;
    a_full_store_grants_tasks_beside_a_run(Bench::own_redis().await).await;
}
