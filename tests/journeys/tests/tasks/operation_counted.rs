//! An operation changes the tasks that it has counted, and no others, whatever clocks say.

use std::time::Duration;

use optimus_core::{
    Due, Obstacle, OperationAct, OperationFilter, OperationState, PACED, Task, TaskId, TaskState,
    Uuid,
    broker::{Act, Broker, CountedTask, Mark, OperationBatch},
};
use optimus_worker::WorkerBuilder;

use optimus_testkit::RedisServer;

use super::operations::{SOON, all, clock_moves_on, count, counted, sums};
use crate::common::{Bench, Double};

async fn submitted(bench: &Bench, tasks: i64) -> Vec<TaskId> {
    let mut ids = Vec::new();
    for number in 0..tasks {
        ids.push(bench.client.submit(Double { number }.call()).await.unwrap().id().clone());
    }
    ids
}

async fn keep_submitting(bench: &Bench) {
    loop {
        let calls = (0..1_000).map(|number| Double { number }.call());
        bench.client.submit_all(calls).await.unwrap();
        tokio::task::yield_now().await;
    }
}

/// Confirms a counted operation, and carries it on to its end. Returns its numbers.
async fn carried(bench: &Bench, operation: &optimus_core::Operation) -> [u64; 5] {
    let operations = bench.client.operations();
    operations.confirm(&operation.id, operation.matched, "").await.unwrap();
    let done = operations.carry(&operation.id).await.unwrap();
    assert_eq!(done.state, OperationState::Done, "{done:?}");
    sums(&done)
}

fn double_worker(bench: &Bench) -> WorkerBuilder {
    bench.worker().task_type::<Double>()
}

/// Submits a task whose id was made at that ms, by the clock of its submitter.
async fn submit_at(bench: &Bench, ms: u64, number: u128) {
    let id = Uuid::from_u128(u128::from(ms) << 80 | 7 << 76 | 2 << 62 | number);
    let call = Double { number: 1 }.call().id(format!("default/{id}").parse().unwrap());
    bench.client.submit(call).await.unwrap();
}

on_both! {
    async fn tasks_that_come_into_the_state_after_the_count_stay(bench: Bench) {
        for act in [OperationAct::Delete, OperationAct::Cancel] {
            let invoices = submitted(&bench, 5).await;
            for id in &invoices {
                bench.client.handle::<i64>(id.clone()).cancel().await.unwrap();
            }
            let junk = submitted(&bench, 4).await;
            let operation = counted(&bench, act, all(TaskState::Ready)).await;
            assert_eq!(operation.matched, 4);
            for id in &junk[1..] {
                bench.client.delete(id).await.unwrap();
            }
            for id in &invoices {
                bench.client.requeue(id).await.unwrap();
            }
            assert_eq!(carried(&bench, &operation).await, [4, 1, 0, 3, 0], "{act:?}");
            assert_eq!(count(&bench, TaskState::Ready).await, 5, "{act:?}");
            for id in &invoices {
                bench.client.delete(id).await.unwrap();
            }
        }
    }

    async fn ended_tasks_that_have_run_again_since_the_count_stay(bench: Bench) {
        let ids = submitted(&bench, 3).await;
        let cancel = async |id: &TaskId| {
            bench.client.handle::<i64>(id.clone()).cancel().await.unwrap();
        };
        for id in &ids {
            cancel(id).await;
        }
        let operation = counted(&bench, OperationAct::Delete, all(TaskState::Cancelled)).await;
        clock_moves_on(&bench).await;
        bench.client.requeue(&ids[0]).await.unwrap();
        cancel(&ids[0]).await;
        assert_eq!(carried(&bench, &operation).await, [3, 2, 0, 1, 0]);
        assert_eq!(count(&bench, TaskState::Cancelled).await, 1);
    }

    async fn the_clocks_of_submitters_do_not_matter(bench: Bench) {
        let now = bench.client.inspector().now().await.unwrap().timestamp_millis();
        let (now, hour) = (u64::try_from(now).unwrap(), 3_600_000);
        for number in 1..=3 {
            submit_at(&bench, now + hour, number).await;
        }
        let operation = counted(&bench, OperationAct::Delete, all(TaskState::Ready)).await;
        assert_eq!(operation.matched, 3, "their clock is ahead");
        for number in 4..=5 {
            submit_at(&bench, now - hour, number).await;
        }
        assert_eq!(carried(&bench, &operation).await, [3, 3, 0, 0, 0]);
        assert_eq!(count(&bench, TaskState::Ready).await, 2, "they came later");
    }

    async fn an_undo_brings_back_only_what_an_operation_can_have_cancelled(bench: Bench) {
        let ids = submitted(&bench, 3).await;
        let act = OperationAct::Cancel;
        let operation = counted(&bench, act, all(TaskState::Ready)).await;
        let dropped = counted(&bench, act, all(TaskState::Ready)).await;
        let dropped = bench.client.operations().cancel(&dropped.id).await.unwrap();
        assert_eq!((dropped.state, dropped.undo()), (OperationState::Cancelled, None));
        // Somebody else cancels one of them before the operation begins.
        bench.client.handle::<i64>(ids[0].clone()).cancel().await.unwrap();
        clock_moves_on(&bench).await;
        assert_eq!(carried(&bench, &operation).await, [3, 2, 0, 1, 0]);
        let done = bench.client.operations().get(&operation.id).await.unwrap().unwrap();
        let undo = counted(&bench, OperationAct::Requeue, done.undo().unwrap()).await;
        assert_eq!(carried(&bench, &undo).await, [2, 2, 0, 0, 0]);
        assert_eq!(count(&bench, TaskState::Cancelled).await, 1);
        let dropped = bench.client.operations().get(&dropped.id).await.unwrap().unwrap();
        assert_eq!(dropped.undo(), None, "it has cancelled nothing");
    }

    async fn an_undo_brings_back_what_a_killed_carrier_has_cancelled_and_not_stored(bench: Bench) {
        let (ids, operations) = (submitted(&bench, 3).await, bench.client.operations());
        let id = counted(&bench, OperationAct::Cancel, all(TaskState::Ready)).await.id;
        operations.confirm(&id, 3, "").await.unwrap();
        // It has stored in which queue it goes on, cancels the tasks there, and is killed.
        let lease = Duration::from_millis(1);
        operations.carrier(&id).lease(lease).step().await.unwrap();
        clock_moves_on(&bench).await;
        let (broker, slot) = (bench.client.broker(), Broker::operations_slot());
        let (fence, saved) = broker.operation_take(&slot, &id, lease).await.unwrap();
        let mark = Mark::failed(0);
        let tasks: Vec<_> = ids.into_iter().map(|id| CountedTask { id, mark }).collect();
        let (states, until_ms) = (&[TaskState::Ready][..], saved.added_ms);
        let batch = OperationBatch { operation: &id, fence, number: 1, states, until_ms };
        broker.operate(Act::Cancel, tasks[0].id.queue(), batch, &tasks).await.unwrap();
        clock_moves_on(&bench).await;
        let done = operations.carry(&id).await.unwrap();
        assert_eq!((done.state, sums(&done)), (OperationState::Done, [3, 3, 0, 0, 0]));
        let undo = counted(&bench, OperationAct::Requeue, done.undo().unwrap()).await;
        assert_eq!(undo.matched, 3, "it has cancelled three tasks");
    }

    async fn an_undo_of_a_cancel_lets_delayed_tasks_wait_for_their_time(bench: Bench) {
        let soon = |number| Double { number }.call().due(Due::In(SOON));
        bench.client.submit_all((0..3).map(soon)).await.unwrap();
        let due = async || {
            let inspector = bench.client.inspector();
            let page = inspector.list("default", TaskState::Delayed, None, 9);
            page.await.unwrap().rows.into_iter().map(|row| (row.id, row.at)).collect::<Vec<_>>()
        };
        let before = due().await;
        let operation = counted(&bench, OperationAct::Cancel, all(TaskState::Delayed)).await;
        assert_eq!(carried(&bench, &operation).await, [3, 3, 0, 0, 0]);
        assert_eq!(due().await, []);
        let done = bench.client.operations().get(&operation.id).await.unwrap().unwrap();
        let undo = counted(&bench, OperationAct::Requeue, done.undo().unwrap()).await;
        assert_eq!(carried(&bench, &undo).await, [3, 3, 0, 0, 0]);
        assert_eq!(due().await, before);
    }

    async fn an_undo_of_a_cancel_gives_a_lane_to_the_task_that_had_it(bench: Bench) {
        let call = |number| Double { number }.call().lane("orders");
        let handles = bench.client.submit_all((0..40).map(call)).await.unwrap();
        let waiting = all(TaskState::Ready).or(TaskState::Blocked);
        let operation = counted(&bench, OperationAct::Cancel, waiting).await;
        assert_eq!(carried(&bench, &operation).await, [40, 40, 0, 0, 0]);
        let done = bench.client.operations().get(&operation.id).await.unwrap().unwrap();
        let undo = counted(&bench, OperationAct::Requeue, done.undo().unwrap()).await;
        assert_eq!(carried(&bench, &undo).await, [40, 40, 0, 0, 0]);
        let inspector = bench.client.inspector();
        let lanes = inspector.lanes("default", 9).await.unwrap();
        assert_eq!(lanes[0].holders, [handles[0].id().clone()]);
        let why = inspector.explain(handles[39].id()).await.unwrap();
        let Obstacle::Lane { ahead, .. } = why.obstacles[0] else { panic!("{why}") };
        assert_eq!(ahead, 38, "the others wait in the order of their submits");
    }

    async fn an_undo_of_a_cancel_keeps_the_time_of_tasks_that_waited_for_others(bench: Bench) {
        for succeeds_meanwhile in [false, true] {
            let first = bench.client.submit(Double { number: 1 }.call()).await.unwrap();
            let call = Double { number: 2 }.call().after(&first).due(Due::In(SOON));
            let reminder = bench.client.submit(call).await.unwrap();
            let operation = counted(&bench, OperationAct::Cancel, all(TaskState::Blocked)).await;
            assert_eq!(carried(&bench, &operation).await, [1, 1, 0, 0, 0]);
            let worker = succeeds_meanwhile.then(|| bench.start(double_worker(&bench)));
            if succeeds_meanwhile {
                assert_eq!(first.result_within(SOON).await.unwrap(), 2);
            }
            let done = bench.client.operations().get(&operation.id).await.unwrap().unwrap();
            let undo = counted(&bench, OperationAct::Requeue, done.undo().unwrap()).await;
            assert_eq!(carried(&bench, &undo).await, [1, 1, 0, 0, 0]);
            let worker = worker.unwrap_or_else(|| bench.start(double_worker(&bench)));
            assert_eq!(first.result_within(SOON).await.unwrap(), 2);
            assert_eq!(reminder.status().await.unwrap(), TaskState::Delayed);
            worker.stop().await;
            bench.client.delete(reminder.id()).await.unwrap();
        }
    }

    async fn tasks_of_many_pages_are_each_changed_once(bench: Bench) {
        let soon = |number| Double { number }.call().due(Due::In(SOON));
        bench.client.submit_all((0..3_000).map(soon)).await.unwrap();
        let filter = all(TaskState::Delayed).or(TaskState::Ready);
        let operation = counted(&bench, OperationAct::Cancel, filter).await;
        bench.client.submit_all((0..300).map(|number| Double { number }.call())).await.unwrap();
        assert_eq!(carried(&bench, &operation).await, [3_000, 3_000, 0, 0, 0]);
        assert_eq!(count(&bench, TaskState::Ready).await, 300);
    }

    async fn a_task_that_a_list_has_twice_is_counted_once(bench: Bench) {
        // A cancel leaves an entry in the ready list, and a requeue adds another one.
        for id in submitted(&bench, 200).await {
            bench.client.handle::<i64>(id.clone()).cancel().await.unwrap();
            bench.client.requeue(&id).await.unwrap();
        }
        let operation = counted(&bench, OperationAct::Cancel, all(TaskState::Ready)).await;
        assert_eq!(carried(&bench, &operation).await, [200, 200, 0, 0, 0]);
    }

    async fn a_count_ends_though_tasks_keep_coming(bench: Bench) {
        submitted(&bench, 200).await;
        let operation = tokio::select! {
            operation = counted(&bench, OperationAct::Delete, all(TaskState::Ready)) => operation,
            () = keep_submitting(&bench) => unreachable!("it has no end"),
        };
        assert!(operation.matched >= 200, "{operation:?}");
    }

    async fn an_operation_of_an_earlier_release_changes_nothing_and_says_so(bench: Bench) {
        submitted(&bench, 2).await;
        let slot = Broker::operations_slot();
        let about = r#"{"act":"delete","filter":{"queues":[],"states":["ready"]},"who":"ann"}"#;
        bench.client.broker().operation_add(&slot, "earlier", (about, ""), 9).await.unwrap();
        let failed = bench.client.operations().carry("earlier").await.unwrap();
        assert_eq!(failed.state, OperationState::Failed);
        let why = failed.failure.unwrap();
        assert!(why.contains("begin it again"), "{why}");
        assert_eq!(count(&bench, TaskState::Ready).await, 2);
    }
}

/// Submits delayed tasks to three queues.
async fn in_three_queues(bench: &Bench) {
    for queue in ["a", "b", "c"] {
        let later = |number| Double { number }.call().queue(queue).due(Due::In(SOON));
        bench.client.submit_all((0..3).map(later)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_needs_a_later_release_does_not_keep_the_others() {
    let bench = Bench::on_redis().await;
    in_three_queues(&bench).await;
    let filter = OperationFilter::of(TaskState::Delayed);
    let operation = counted(&bench, OperationAct::Cancel, filter).await;
    assert_eq!(operation.matched, 9);
    let needs = format!("HSET {{{}:a:0}}:meta needs 999", bench.namespace());
    bench.raw().await.run(&needs).await;
    assert_eq!(carried(&bench, &operation).await, [9, 6, 3, 0, 0]);
    let done = bench.client.operations().get(&operation.id).await.unwrap().unwrap();
    assert!(done.problems[0].error.contains("newer"), "{:?}", done.problems);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_queue_is_named_and_does_not_keep_the_others() {
    let bench = Bench::on_redis().await;
    in_three_queues(&bench).await;
    let damage = async |queue: &str| {
        let key = format!("{{{}:{queue}:0}}:delayed", bench.namespace());
        bench.raw().await.run(&format!("SET {key} wrong")).await;
    };
    damage("b").await;
    let filter = OperationFilter::of(TaskState::Delayed);
    let operation = counted(&bench, OperationAct::Delete, filter).await;
    assert_eq!((operation.state, operation.matched), (OperationState::Counted, 6));
    let [unread] = &operation.unread[..] else { panic!("{operation:?}") };
    assert!(unread.contains("queue b") && unread.contains("WRONGTYPE"), "{unread}");
    damage("c").await;
    assert_eq!(carried(&bench, &operation).await, [6, 3, 3, 0, 0]);
    let done = bench.client.operations().get(&operation.id).await.unwrap().unwrap();
    assert!(done.problems[0].error.contains("WRONGTYPE"), "{:?}", done.problems);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_whose_counted_tasks_are_lost_fails_and_says_so() {
    let bench = Bench::on_redis().await;
    submitted(&bench, 3).await;
    let operations = bench.client.operations();
    let operation = counted(&bench, OperationAct::Delete, all(TaskState::Ready)).await;
    operations.confirm(&operation.id, 3, "").await.unwrap();
    let key = format!("{{{}:@operations:0}}:counted:{}", bench.namespace(), operation.id);
    bench.raw().await.run(&format!("DEL {key}")).await;
    let failed = tokio::time::timeout(Duration::from_secs(60), operations.carry(&operation.id));
    let failed = failed.await.unwrap().unwrap();
    let why = failed.failure.unwrap();
    assert!(failed.state == OperationState::Failed && why.contains("has lost which"), "{why}");
    assert_eq!(count(&bench, TaskState::Ready).await, 3);
}

/// The tasks of a call that a server has logged: what follows its keys, the time and the batch. The
/// log keeps 31 words of a call, and how many there are more.
fn tasks_of_call(words: &[String]) -> usize {
    let more = words.last().and_then(|last| last.strip_prefix("... ("));
    let more = more.and_then(|more| more.split(' ').next()?.parse::<usize>().ok());
    let (count, keys) = (more.map_or(words.len(), |more| 31 + more), &words[2]);
    count - 3 - keys.parse::<usize>().unwrap() - 2
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_changes_few_tasks_a_call_and_reads_what_it_has_counted_once() {
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    submitted(&bench, 256).await;
    let operation = counted(&bench, OperationAct::Cancel, all(TaskState::Ready)).await;
    let mut admin = server.admin().await;
    for (name, value) in [("slowlog-max-len", 10_000), ("slowlog-log-slower-than", 0)] {
        let mut set = redis::cmd("CONFIG");
        set.arg("SET").arg(name).arg(value).exec_async(&mut admin).await.unwrap();
    }
    assert_eq!(carried(&bench, &operation).await[0], 256);
    let log: Vec<(u64, u64, u64, Vec<String>, redis::Value, redis::Value)> =
        redis::cmd("SLOWLOG").arg("GET").arg(-1).query_async(&mut admin).await.unwrap();
    let words: Vec<_> = log.into_iter().map(|(_, _, _, words, ..)| words).collect();
    let is_read = |words: &&Vec<String>| words[0] == "HGET" && words[1].contains(":counted:");
    assert_eq!(words.iter().filter(is_read).count(), 2, "128 tasks are stored together");
    // A script that the server did not know is sent again as a text.
    let calls = words.iter().filter(|words| words[0].eq_ignore_ascii_case("evalsha"));
    let of_key = |key: String| calls.clone().filter(move |words| words.get(3) == Some(&key));
    let changes = of_key(format!("{{{}:default:0}}:meta", bench.namespace()));
    let sizes: Vec<usize> = changes.map(|words| tasks_of_call(words)).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 256, "{sizes:?}");
    let most = sizes.into_iter().max();
    assert!(most <= Some(PACED) && PACED <= 4, "others wait for one call: {most:?}");
    let saves = of_key(format!("{{{}:@operations:0}}:carried", bench.namespace())).count();
    assert!((8..=12).contains(&saves), "{saves} times it was stored how far the operation is");
}

#[tokio::test]
async fn tasks_behind_many_entries_of_others_that_were_cancelled_and_requeued_are_counted() {
    let bench = Bench::on_redis().await;
    let calls: Vec<_> = (0..1_500).map(|number| Double { number }.call()).collect();
    let handles = bench.client.submit_all(calls).await.unwrap();
    let key = |name| bench.key("default", name);
    let mut raw = bench.raw().await;
    // What a cancel of all leaves in the list, if they were tried.
    for cancels in 1..=2 {
        for handle in &handles {
            let id = handle.id().stored();
            raw.run(&format!("RPUSH {} kkkkkkkk:{id}", key("ready"))).await;
            raw.run(&format!("HSET {} {id} {cancels}", key("skips"))).await;
        }
    }
    raw.run(&format!("HSET {} tombstones 3000", key("meta"))).await;
    submitted(&bench, 3).await;
    let operation = counted(&bench, OperationAct::Delete, all(TaskState::Ready)).await;
    assert_eq!(operation.matched, 1_503);
}
