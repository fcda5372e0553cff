//! Submits that are acknowledged only once Redis has confirmed them.

use std::time::Duration;

use crate::common::{Bench, Double, Raw, server_pair::Pair};
use futures_util::future::join_all;
use optimus_core::{Client, Durability, Task};
use optimus_testkit::{FaultProxy, RedisServer, eventually};

const SOON: Duration = Duration::from_secs(10);
/// The timeout of a submit that can't be confirmed.
const GIVES_UP: Duration = Duration::from_millis(500);

async fn client(url: &str, durability: Durability, timeout: Duration) -> Client {
    let builder = Client::builder(url).durability(durability).submit_timeout(timeout);
    builder.connect().await.unwrap()
}

fn double(number: u32) -> optimus_core::Call<Double> {
    Double { number: number.into() }.call()
}

#[tokio::test]
async fn a_store_that_cannot_confirm_is_refused_when_the_client_connects() {
    let server = RedisServer::start();
    for url in ["memory://durability", &server.url()] {
        let builder = Client::builder(url).durability(Durability::Fsynced);
        let problem =
            builder.connect().await.expect_err("the store in memory syncs nothing to disk");
        assert!(problem.is_unsupported(), "{problem}");
        assert!(problem.to_string().contains("appendonly yes"), "{problem}");
    }
    let nobody = Client::builder(&server.url()).durability(Durability::Replicated(0));
    assert!(nobody.connect().await.err().unwrap().is_invalid());
}

#[tokio::test]
async fn the_facts_of_a_primary_show_how_many_replicas_it_has() {
    let pair = Pair::start().await;
    let client = Client::connect(&pair.primary.url()).await.unwrap();
    let facts = client.inspector().server().await.unwrap();
    assert_eq!((facts.replicas, facts.is_replica), (Some(1), Some(false)));
    assert!(facts.to_string().contains("1 replica"), "{facts}");
    let client = Client::connect(&pair.replica.url()).await.unwrap();
    assert!(client.inspector().server().await.unwrap().refusal().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn submits_that_a_replica_confirmed_outlive_the_primary() {
    let mut pair = Pair::start().await;
    let client = client(&pair.primary.url(), Durability::Replicated(1), SOON).await;
    let submits = (0..4_000).map(|number| {
        let client = client.clone();
        tokio::spawn(async move { client.submit(double(number)).await })
    });
    let mut submits: Vec<_> = submits.collect();
    // At this time, some submits are acknowledged and others are under way.
    let mut ids = vec![submits.remove(0).await.unwrap().unwrap().id().clone()];
    pair.primary.kill();
    let gone = async || client.broker().ping().await.is_err();
    eventually("the client sees that the primary is gone", SOON, gone).await;
    for submit in submits {
        submit.abort();
        // The other submits have no answer, because a dead server sends none.
        if let Ok(acknowledged) = submit.await {
            ids.push(acknowledged.unwrap().id().clone());
        }
    }

    pair.promote().await;
    let survivor = Client::connect(&pair.replica.url()).await.unwrap();
    for id in &ids {
        assert!(survivor.inspector().get(id).await.unwrap().is_some(), "{id} is lost");
    }
}

#[tokio::test]
async fn a_submit_that_no_replica_confirms_in_time_is_unknown_and_stored() {
    let pair = Pair::start().await;
    let patient = client(&pair.primary.url(), Durability::Replicated(1), SOON).await;
    let client = client(&pair.primary.url(), Durability::Replicated(1), GIVES_UP).await;
    patient.submit(double(1)).await.unwrap();

    pair.replica.pause();
    let problem = client.submit(double(2)).await.unwrap_err();
    assert!(problem.is_unknown_outcome(), "{problem}");
    assert!(problem.to_string().contains("not received by a replica"), "{problem}");
    let [id] = problem.task_ids() else { panic!("the error names its task") };
    assert!(client.inspector().get(id).await.unwrap().is_some());

    pair.replica.resume();
    patient.submit(double(3)).await.unwrap();
}

/// `WAIT` covers only the writes of its own connection. Before Redis 8, it covers more.
#[tokio::test]
async fn a_submit_that_is_sent_again_is_not_confirmed_by_its_ledger() {
    let pair = Pair::start().await;
    let proxy = FaultProxy::start(&pair.primary.url()).await;
    let client = client(&proxy.url(), Durability::Replicated(1), 4 * GIVES_UP).await;
    client.submit(double(1)).await.unwrap();

    pair.replica.pause();
    proxy.drop_reply(1);
    let problem = client.submit(double(2)).await.unwrap_err();
    assert!(proxy.struck());
    assert!(problem.to_string().contains("not received by a replica"), "{problem}");
    pair.replica.resume();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn submits_that_wait_together_share_one_wait() {
    let pair = Pair::start().await;
    let client = client(&pair.primary.url(), Durability::Replicated(1), SOON).await;
    let submits = (0..500).map(|number| client.submit(double(number)));
    for submitted in join_all(submits).await {
        submitted.unwrap();
    }
    let stats = Raw::connect(&pair.primary.url()).await.run("INFO commandstats").await.remove(0);
    let stats = String::from_utf8(stats).unwrap();
    let waits = stats.lines().find_map(|line| line.strip_prefix("cmdstat_wait:calls=")).unwrap();
    let waits: u32 = waits.split(',').next().unwrap().parse().unwrap();
    assert!(waits < 20, "{waits} for 500 submits");
}

#[tokio::test]
async fn a_submit_is_not_acknowledged_before_the_server_has_synced_it() {
    // Redis writes to the file, and the system syncs the file later.
    let server = RedisServer::builder().arg("--appendonly", "yes").arg("--appendfsync", "no");
    let server = server.start();
    let builder = Client::builder(&server.url()).durability(Durability::Fsynced);
    let client = match builder.submit_timeout(GIVES_UP).connect().await {
        Ok(client) => client,
        Err(problem) => {
            assert!(problem.is_unsupported(), "{problem}");
            assert!(problem.to_string().contains("7.2"), "{problem}");
            return;
        }
    };
    let problem = client.submit(double(1)).await.unwrap_err();
    assert!(problem.to_string().contains("not synced to disk"), "{problem}");

    Raw::connect(&server.url()).await.run("CONFIG SET appendfsync always").await;
    let patient = self::client(&server.url(), Durability::Fsynced, SOON).await;
    let handle = patient.submit(double(2)).await.unwrap();
    let bench = Bench::shared(&server.url(), "optimus").await;
    let worker = bench.start(bench.worker().task_type::<Double>());
    assert_eq!(handle.result_within(SOON).await.unwrap(), 4);
    worker.stop().await;
}
