//! At maxmemory a submit is refused whole, and everything that drains the queue goes on.

use optimus_core::broker::BrokerError;

use crate::{
    bench::Bench,
    dump::Dump,
    world::{SITUATIONS, World},
};

async fn a_full_store_refuses_submits_whole_and_drains(bench: Bench) {
    for (script, situations) in SITUATIONS {
        for situation in *situations {
            bench.restore(&Dump::new()).await;
            let world = World::build(&bench).await;
            let before = bench.dump().await;
            bench.set_full(true).await;
            let answer = world.act(&bench, script, situation).await;
            bench.set_full(false).await;
            if *script == "submit" {
                assert!(matches!(answer, Err(BrokerError::Full)), "{situation}: {answer:?}");
                bench.assert_unchanged(&before).await;
            } else {
                answer.unwrap_or_else(|problem| panic!("{script}, {situation}: {problem:?}"));
            }
        }
    }
}

#[tokio::test]
async fn embedded() {
    a_full_store_refuses_submits_whole_and_drains(Bench::embedded()).await;
}

#[tokio::test]
async fn redis() {
    a_full_store_refuses_submits_whole_and_drains(Bench::own_redis().await).await;
}
