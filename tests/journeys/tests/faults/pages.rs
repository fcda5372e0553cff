//! Walks through pages while Redis restarts.

use std::{collections::BTreeSet, time::Duration};

use crate::common::{Bench, Double};
use optimus_core::{Due, Task, TaskState};
use optimus_testkit::RedisServer;

const LATER: Duration = Duration::from_secs(3_600);

#[tokio::test]
async fn a_walk_through_tasks_that_wait_for_others_shows_all_after_a_restart_of_redis() {
    let mut server = RedisServer::builder().appendonly_always().start();
    let bench = Bench::at(&server.url()).await;
    let first = bench.client.submit(Double { number: 0 }.call().due(Due::In(LATER))).await.unwrap();
    let calls = (0..500).map(|number| Double { number }.call().after(first.id()));
    let handles = bench.client.submit_all(calls.collect::<Vec<_>>()).await.unwrap();
    let waiting: BTreeSet<_> = handles.iter().map(|handle| handle.id().clone()).collect();
    let inspector = bench.client.inspector();
    for pages_before in [1, 5, 9] {
        let (mut seen, mut after) = (BTreeSet::new(), None);
        for number in 0.. {
            if number == pages_before {
                server.restart();
            }
            let page = inspector.list("default", TaskState::Blocked, after.as_ref(), 40).await;
            let page = page.unwrap();
            seen.extend(page.rows.into_iter().map(|row| row.id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(seen, waiting, "a restart after {pages_before} pages");
    }
}
