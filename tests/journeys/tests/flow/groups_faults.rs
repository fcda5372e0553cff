//! Groups whose client or worker is killed: no member is lost, and none counts twice.

use std::{collections::HashSet, future::pending, time::Duration};

use crate::common::{
    Bench, Gate,
    orders::Log,
    sums::{LoggedWorker, Number, SOON, builder, note, number, sum},
};
use optimus_core::{Call, QueueName, TaskId, group};
use optimus_testkit::eventually;

/// The environment variable with which a child process finds the id of the group.
const GROUP: &str = "CHILD_GROUP";
const MEMBERS: u64 = 30_000;

fn new_id() -> TaskId {
    TaskId::new(QueueName::new("default").unwrap())
}

fn members() -> impl Iterator<Item = Call<Number>> + Send {
    (0..MEMBERS).map(number)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "another test starts it as a process"]
async fn a_client_process_for_the_other_test() {
    let bench = Bench::of_parent().await;
    let id: TaskId = std::env::var(GROUP).unwrap().parse().unwrap();
    let flow = group(members()).id(id).then(sum);
    drop(bench.client.submit_flow(flow).await.unwrap());
    println!("submitted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "another test starts it as a process"]
async fn a_worker_process_for_the_other_test() {
    let bench = Bench::of_parent().await;
    let worker = bench.start(builder(&bench, &Log::default(), &Gate::new()).concurrency(64));
    println!("works");
    pending::<()>().await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_whose_client_is_killed_midway_is_finished_by_the_same_submit() {
    let bench = Bench::on_redis().await;
    let id = new_id();
    let found = bench.client.group::<u64>(id.clone());
    let mut doomed = bench
        .child("groups_faults::a_client_process_for_the_other_test")
        .env(GROUP, id.to_string())
        .start();
    let begun = async || found.progress().await.is_ok_and(|progress| progress.total >= 3_000);
    eventually("some members are stored", SOON, begun).await;
    doomed.kill9();
    assert!(!found.progress().await.unwrap().is_sealed, "the client was killed midway");

    let logged = LoggedWorker::of(&bench);
    let handle = bench.client.submit_flow(group(members()).id(id).then(sum)).await.unwrap();
    let total = handle.result_within(Duration::from_secs(120)).await.unwrap();
    assert_eq!(total, (MEMBERS - 1) * MEMBERS / 2);
    assert_eq!(found.progress().await.unwrap().total, u32::try_from(MEMBERS).unwrap());
    logged.worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_of_a_worker_that_is_killed_run_elsewhere_and_count_once() {
    let bench = Bench::on_redis().await;
    let handle = bench.client.submit_flow(group(members()).then(sum)).await.unwrap();
    let mut doomed = bench.child("groups_faults::a_worker_process_for_the_other_test").start();
    doomed.wait_for_line("works", SOON).await;
    let found = bench.client.group::<u64>(handle.steps()[0].id().clone());
    let some = async || found.progress().await.unwrap().done >= 1_000;
    eventually("some members have ended", SOON, some).await;
    doomed.kill9();
    let logged = LoggedWorker::of(&bench);
    let total = handle.result_within(Duration::from_secs(120)).await.unwrap();
    assert_eq!(total, (MEMBERS - 1) * MEMBERS / 2);
    logged.worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_groups_of_two_clients_do_not_mix() {
    let bench = Bench::on_memory().await;
    let logged = LoggedWorker::of(&bench);
    let submit = |from: u64| {
        let calls = (from..from + 1_500).map(|n| note(&n.to_string()));
        bench.client.submit_group(group(calls))
    };
    let (one, two) = tokio::join!(submit(0), submit(1_500));
    for group in [one.unwrap(), two.unwrap()] {
        assert_eq!(group.ended().await.unwrap().done, 1_500);
    }
    let lines: HashSet<String> = logged.log.lines().into_iter().collect();
    assert_eq!(lines.len(), 3_000);
    logged.worker.stop().await;
}
