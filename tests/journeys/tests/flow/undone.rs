//! Operations that bring back tasks which wait for each other.

use std::time::Duration;

use crate::common::{
    Bench, Gate,
    orders::{Log, SOON, done, reserve, start, state, submit},
};
use optimus_core::{
    Operation, OperationAct, OperationFilter, OperationState, PrerequisiteFailure, Task as _,
    TaskHandle, TaskOptions, TaskState,
};
use optimus_testkit::eventually;

/// Counts the tasks of a filter, and confirms their number.
pub(crate) async fn confirmed(
    bench: &Bench,
    act: OperationAct,
    filter: OperationFilter,
) -> Operation {
    let operations = bench.client.operations();
    let counting = operations.count(act, filter, "ann").await.unwrap();
    let counted = operations.carry(&counting.id).await.unwrap();
    operations.confirm(&counted.id, counted.matched, "").await.unwrap();
    counted
}

/// Changes the tasks of a filter. Returns how many.
async fn changed(bench: &Bench, act: OperationAct, filter: OperationFilter) -> Operation {
    let operation = confirmed(bench, act, filter).await;
    let over = bench.client.operations().carry(&operation.id).await.unwrap();
    assert_eq!(over.state, OperationState::Done, "{over:?}");
    over
}

/// Cancels all tasks that have not begun. Returns the filter of the tasks to bring back.
async fn cancelled(bench: &Bench) -> OperationFilter {
    let waiting = OperationFilter::of(TaskState::Ready).or(TaskState::Blocked);
    changed(bench, OperationAct::Cancel, waiting).await.undo().unwrap()
}

/// Submits orders, each after the one before it, to these queues in turn.
async fn submit_chain<const N: usize>(
    bench: &Bench,
    queues: [&str; N],
    policy: Option<PrerequisiteFailure>,
) -> Vec<TaskHandle<()>> {
    let mut chain: Vec<TaskHandle<()>> = Vec::new();
    for (step, queue) in queues.into_iter().enumerate() {
        let call = reserve(&format!("{policy:?} {step}")).queue(queue);
        let call = match (chain.last(), policy) {
            (None, _) => call,
            (Some(before), None) => call.after(before),
            (Some(before), Some(policy)) => call.after(before).on_prerequisite_failure(policy),
        };
        chain.push(submit(bench, call).await);
    }
    chain
}

async fn are_blocked(tasks: &[TaskHandle<()>]) {
    for task in tasks {
        assert_eq!(state(task).await, TaskState::Blocked);
    }
}

/// Cancels a chain over these queues and brings it back. All of it waits again, and runs in order.
async fn comes_back<const N: usize>(
    bench: &Bench,
    queues: [&str; N],
    policy: Option<PrerequisiteFailure>,
) {
    let chain = submit_chain(bench, queues, policy).await;
    let undo = cancelled(bench).await;
    for task in &chain {
        assert_eq!(state(task).await, TaskState::Cancelled);
    }
    let back = changed(bench, OperationAct::Requeue, undo).await;
    assert_eq!((back.matched, back.done), (N as u64, N as u64), "{back:?}");
    assert_eq!(state(&chain[0]).await, TaskState::Ready);
    are_blocked(&chain[1..]).await;
    let (log, gate) = (Log::default(), Gate::new());
    let worker = start(bench, &log, &gate, ["default", "stock"]);
    done(&chain[N - 1]).await;
    worker.stop().await;
    let all: Vec<_> = (0..N).map(|n| format!("reserve {policy:?} {n}")).collect();
    assert_eq!(log.lines(), all);
}

idle_task!(Prepare, "prepare", TaskOptions::new());

/// Cancels more pairs than a queue knows successes, and brings them back while a worker runs. The
/// first of each pair is in `queue`, and the second one in `default`.
async fn many_come_back_while_workers_run(bench: &Bench, queue: &str) {
    // A queue knows its last 1,000 successes, if nothing of them is kept.
    const PAIRS: usize = 1_300;
    let first = (0..PAIRS).map(|_| Prepare {}.call().queue(queue));
    let first = bench.client.submit_all(first).await.unwrap();
    let second = first.iter().map(|first| Prepare {}.call().after(first));
    let _second = bench.client.submit_all(second).await.unwrap();
    let undo = cancelled(bench).await;
    let worker = bench.worker().task_type::<Prepare>().queues(["default", "stock"]);
    let worker = bench.start(worker.concurrency(16));
    let back = changed(bench, OperationAct::Requeue, undo).await;
    assert_eq!((back.matched, back.done), (2 * PAIRS as u64, 2 * PAIRS as u64), "{back:?}");
    let is_done = async || {
        let counts = bench.client.inspector().counts("default").await.unwrap();
        counts.ready + counts.working + counts.blocked == 0
    };
    eventually("none waits", SOON, is_done).await;
    worker.stop().await;
}

on_both! {
    async fn an_undo_while_workers_run_leaves_no_task_waiting(bench: Bench) {
        many_come_back_while_workers_run(&bench, "default").await;
    }

    async fn an_undo_while_workers_run_leaves_no_task_waiting_for_another_queue(bench: Bench) {
        many_come_back_while_workers_run(&bench, "stock").await;
    }

    async fn an_undo_brings_back_chains_over_several_queues(bench: Bench) {
        for policy in [None, Some(PrerequisiteFailure::Cancel)] {
            comes_back(&bench, ["stock", "default", "stock", "default", "stock"], policy).await;
            comes_back(&bench, ["default", "stock", "default", "stock", "default"], policy).await;
        }
    }

    async fn an_undo_starts_no_task_whose_prerequisite_comes_back(bench: Bench) {
        // The second step is cancelled before the first one, so that nothing lets it start.
        comes_back(&bench, ["stock", "default"], Some(PrerequisiteFailure::Run)).await;
    }

    async fn an_undo_brings_back_many_tasks_that_wait_for_one(bench: Bench) {
        let cancel = PrerequisiteFailure::Cancel;
        let first = submit(&bench, reserve("first")).await;
        let mut others = Vec::new();
        for number in 0..100 {
            let call = reserve(&number.to_string()).after(&first).on_prerequisite_failure(cancel);
            others.push(submit(&bench, call).await);
        }
        let undo = cancelled(&bench).await;
        let back = changed(&bench, OperationAct::Requeue, undo).await;
        assert_eq!((back.matched, back.done), (101, 101), "{back:?}");
        assert_eq!(state(&first).await, TaskState::Ready);
        are_blocked(&others).await;
        let (log, gate) = (Log::default(), Gate::new());
        let worker = start(&bench, &log, &gate, ["default"]);
        for task in &others {
            done(task).await;
        }
        worker.stop().await;
    }

    async fn tasks_whose_prerequisite_does_not_come_back_do_what_they_are_to_do(bench: Bench) {
        let cancel = PrerequisiteFailure::Cancel;
        for queue in ["default", "stock"] {
            let first = submit(&bench, reserve("first").queue(queue)).await;
            let second = reserve("second").after(&first).on_prerequisite_failure(cancel);
            let second = submit(&bench, second).await;
            let undo = cancelled(&bench).await;
            bench.client.delete(first.id()).await.unwrap();
            let third = submit(&bench, reserve("third").after(&second)).await;
            let back = changed(&bench, OperationAct::Requeue, undo).await;
            assert_eq!((back.matched, back.done), (1, 1), "{back:?}");
            let is_over = async || state(&second).await == TaskState::Cancelled;
            eventually("it is cancelled again", SOON, is_over).await;
            let is_over = async || state(&third).await == TaskState::Cancelled;
            eventually("the task after it is cancelled in turn", SOON, is_over).await;
            for task in [&second, &third] {
                bench.client.delete(task.id()).await.unwrap();
            }
        }
    }

    async fn an_end_that_is_told_late_cancels_no_task_that_comes_back(bench: Bench) {
        let (log, gate) = (Log::default(), Gate::new());
        let chain =
            submit_chain(&bench, ["stock", "default"], Some(PrerequisiteFailure::Cancel)).await;
        let (broker, stock) = (bench.client.broker(), chain[0].id().queue());
        // Who cancels them is killed before the second queue learns of the end in the first.
        broker.cancel(chain[0].id()).await.unwrap();
        for outgoing in broker.outgoing(stock).await.unwrap() {
            let applied = broker.apply(&outgoing).await.unwrap();
            broker.relayed(&outgoing, applied.last).await.unwrap();
        }
        broker.cancel(chain[1].id()).await.unwrap();
        let untold = broker.outgoing(stock).await.unwrap();
        assert!(untold.iter().any(|one| one.target == *chain[1].id().queue()), "{untold:?}");

        let back = OperationFilter::of(TaskState::Cancelled);
        let back = changed(&bench, OperationAct::Requeue, back).await;
        assert_eq!((back.matched, back.done), (2, 2), "{back:?}");
        let worker = start(&bench, &log, &gate, ["default", "stock"]);
        done(&chain[1]).await;
        worker.stop().await;
    }

    async fn another_carrier_lets_the_requeued_tasks_ask(bench: Bench) {
        let (log, gate) = (Log::default(), Gate::new());
        let chain = submit_chain(&bench, ["stock", "default"], None).await;
        let undo = cancelled(&bench).await;
        let undo = confirmed(&bench, OperationAct::Requeue, undo).await;
        let operations = bench.client.operations();
        let mut carrier = operations.carrier(&undo.id).lease(Duration::from_millis(1));
        while carrier.step().await.unwrap().done < 2 {}
        // This carrier is killed here, and has let nobody ask.
        drop(carrier);
        let over = operations.carry(&undo.id).await.unwrap();
        assert_eq!((over.state, over.done), (OperationState::Done, 2));
        let worker = start(&bench, &log, &gate, ["default", "stock"]);
        done(&chain[1]).await;
        worker.stop().await;
    }
}
