//! A master that becomes a replica for a while, as in a failover.

use std::time::Duration;

use crate::common::{Bench, Double};
use optimus_core::{QueueName, Task};
use optimus_testkit::RedisServer;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demoted_master_is_an_outage_and_nothing_is_lost() {
    let redis = RedisServer::start();
    let mut admin = redis.admin().await;
    let bench = Bench::at(&redis.url()).await;
    let before = bench.client.submit(Double { number: 1 }.call()).await.unwrap();
    let mut follow = async |host: &str, port: &str| {
        let mut command = redis::cmd("REPLICAOF");
        command.arg(host).arg(port).query_async::<()>(&mut admin).await.unwrap();
    };

    // A replica without a primary answers READONLY to every write.
    follow("127.0.0.1", "1").await;
    let client = bench.client.clone();
    let during = tokio::spawn(async move { client.submit(Double { number: 2 }.call()).await });
    let impatient = optimus_core::Client::builder(&redis.url())
        .namespace(bench.namespace())
        .submit_timeout(Duration::from_millis(200))
        .connect()
        .await
        .unwrap();
    let problem = impatient.submit(Double { number: 3 }.call()).await.unwrap_err();
    assert!(problem.is_unavailable(), "{problem}");
    assert!(!during.is_finished());

    follow("NO", "ONE").await;
    let during = during.await.unwrap().unwrap();
    let worker = bench.start(bench.worker().task_type::<Double>());
    for (handle, result) in [(before, 2), (during, 4)] {
        assert_eq!(handle.result_within(Duration::from_secs(20)).await.unwrap(), result);
    }
    worker.stop().await;
}

/// After a failover, the name may lead to another server, but this connection never does.
#[tokio::test]
async fn a_connection_that_a_failover_left_at_a_replica_is_replaced() {
    let redis = RedisServer::start();
    let bench = Bench::at(&redis.url()).await;
    let (mut raw, queue) = (bench.raw().await, QueueName::new("default").unwrap());
    let broker = bench.client.broker().separate("test");
    broker.ping().await.unwrap();
    raw.run("REPLICAOF 127.0.0.1 1").await;
    let connections = raw.info("total_connections_received").await;
    let problem = broker.pause(&queue).await.unwrap_err();
    assert!(problem.is_transient(), "{problem}");
    broker.ping().await.unwrap();
    assert_eq!(raw.info("total_connections_received").await, connections + 1);
}
