//! A requeue of many tasks that is stopped: those that are back ask for what they wait for.

use std::time::Duration;

use crate::{
    common::{
        Bench,
        orders::{SOON, reserve, submit},
    },
    undone::confirmed,
};
use optimus_core::{
    Carrier, Counts, OperationAct, OperationFilter, OperationState, Operations,
    PrerequisiteFailure, TaskHandle, TaskState, broker::Broker,
};
use optimus_testkit::eventually;

/// How many tasks wait for the first one.
const WAITING: u64 = 100;
/// How many of them one step requeues, or lets ask.
const STEP: u64 = 32;
/// The lease of carriers that are killed.
const SHORT: Duration = Duration::from_millis(1);

async fn counts(bench: &Bench) -> Counts {
    bench.client.inspector().counts("default").await.unwrap()
}

/// Deletes all tasks that have ended or are ready.
async fn forget(bench: &Bench) {
    let all = OperationFilter::of(TaskState::Cancelled).or(TaskState::Ready);
    let delete = confirmed(bench, OperationAct::Delete, all).await;
    bench.client.operations().carry(&delete.id).await.unwrap();
}

/// A requeue that has brought back some tasks whose prerequisite has ended.
struct Undo {
    operations: Operations,
    id: String,
    policy: PrerequisiteFailure,
    /// What the tasks wait for.
    first: TaskHandle<()>,
}

impl Undo {
    /// Cancels tasks that wait for one in this queue, and some that wait for none. That one stays
    /// cancelled. Confirms the requeue of the others.
    async fn of(bench: &Bench, queue: &str, policy: PrerequisiteFailure, others: u64) -> Self {
        let of = format!("{policy:?} {queue}");
        let first = submit(bench, reserve(&of).queue(queue)).await;
        for number in 0..WAITING {
            let call = reserve(&format!("{of} {number}")).after(&first);
            submit(bench, call.on_prerequisite_failure(policy)).await;
        }
        for number in 0..others {
            submit(bench, reserve(&format!("{of} other {number}"))).await;
        }
        let waiting = OperationFilter::of(TaskState::Blocked).or(TaskState::Ready);
        let waiting = waiting.queue("default").unwrap();
        let cancel = confirmed(bench, OperationAct::Cancel, waiting).await;
        let operations = bench.client.operations();
        let cancelled = operations.carry(&cancel.id).await.unwrap();
        first.cancel().await.unwrap();
        let undo = confirmed(bench, OperationAct::Requeue, cancelled.undo().unwrap()).await;
        Self { operations, id: undo.id, policy, first }
    }

    /// Brings some tasks back, and returns who has done it.
    async fn begin(&self, bench: &Bench, lease: Duration) -> Carrier {
        let mut carrier = self.operations.carrier(&self.id).lease(lease);
        while carrier.step().await.unwrap().done <= STEP {}
        assert!(counts(bench).await.blocked > STEP, "{:?}", self.policy);
        carrier
    }

    /// Cancels it, and does nothing else, like a process that is killed then.
    async fn cancel(&self, bench: &Bench) {
        let slot = Broker::operations_slot();
        bench.client.broker().operation_cancel(&slot, &self.id).await.unwrap();
    }

    /// The tasks that are back have done what their policy says, and nobody has to go on.
    async fn is_over(&self, bench: &Bench, state: OperationState) {
        let none_waits = async || counts(bench).await.blocked == 0;
        eventually("the tasks that are back wait no more", SOON, none_waits).await;
        let over = self.operations.get(&self.id).await.unwrap().unwrap();
        assert!(over.state == state && over.done < over.matched, "{over:?}");
        let ready = if self.policy == PrerequisiteFailure::Run { over.done } else { 0 };
        assert_eq!(counts(bench).await.ready, ready, "{over:?}");
        let carried = bench.client.broker().operation_carried(&Broker::operations_slot()).await;
        assert_eq!(carried.unwrap(), None);
        assert_eq!(self.first.status().await.unwrap(), TaskState::Cancelled);
    }
}

on_both! {
    async fn tasks_of_a_cancelled_requeue_ask_if_its_carrier_lives(bench: Bench) {
        for policy in [PrerequisiteFailure::Run, PrerequisiteFailure::Cancel] {
            let undo = Undo::of(&bench, "stock", policy, 0).await;
            let mut carrier = undo.begin(&bench, Duration::from_secs(60)).await;
            let cancelled = undo.operations.cancel(&undo.id).await.unwrap();
            assert_eq!(cancelled.state, OperationState::Cancelled);
            assert!(counts(&bench).await.blocked > STEP, "it is left to the carrier");
            while carrier.is_held() {
                assert_eq!(carrier.step().await.unwrap().state, OperationState::Cancelled);
            }
            undo.is_over(&bench, OperationState::Cancelled).await;
            forget(&bench).await;
        }
    }

    async fn tasks_of_a_cancelled_requeue_ask_if_its_carrier_is_killed(bench: Bench) {
        for policy in [PrerequisiteFailure::Run, PrerequisiteFailure::Cancel] {
            for queue in ["stock", "default"] {
                let undo = Undo::of(&bench, queue, policy, 0).await;
                drop(undo.begin(&bench, SHORT).await);
                let none_waits = async || {
                    // The lease of the carrier may last for another moment.
                    undo.operations.cancel(&undo.id).await.unwrap();
                    counts(&bench).await.blocked == 0
                };
                eventually("who cancels it lets the tasks ask", SOON, none_waits).await;
                undo.is_over(&bench, OperationState::Cancelled).await;
                forget(&bench).await;
            }
        }
    }

    async fn another_carrier_lets_the_tasks_of_a_cancelled_requeue_ask(bench: Bench) {
        let undo = Undo::of(&bench, "stock", PrerequisiteFailure::Run, 0).await;
        drop(undo.begin(&bench, SHORT).await);
        undo.cancel(&bench).await;
        // The next one stops when it has learned of that, and the one after it is killed.
        for way in ["leaves", "is killed"] {
            let mut next = undo.operations.carrier(&undo.id).lease(Duration::from_millis(50));
            let has_lease = async || {
                next.step().await.unwrap();
                next.is_held()
            };
            eventually("the lease is free", SOON, has_lease).await;
            if way == "leaves" {
                next.leave().await;
            }
        }
        assert!(counts(&bench).await.blocked > 0, "not all have asked");
        let none_waits = async || {
            undo.operations.carry(&undo.id).await.unwrap();
            counts(&bench).await.blocked == 0
        };
        eventually("another one goes on", SOON, none_waits).await;
        undo.is_over(&bench, OperationState::Cancelled).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_a_requeue_that_fails_ask() {
    let bench = Bench::on_redis().await;
    for policy in [PrerequisiteFailure::Run, PrerequisiteFailure::Cancel] {
        let undo = Undo::of(&bench, "stock", policy, 200).await;
        let mut carrier = undo.begin(&bench, SHORT).await;
        let key = format!("{{{}:@operations:0}}:counted:{}", bench.namespace(), undo.id);
        // The tasks that wait are the last ones: they were cancelled first.
        bench.raw().await.run(&format!("HDEL {key} 1")).await;
        loop {
            let operation = carrier.step().await.unwrap();
            if operation.state.is_over() && !carrier.is_held() {
                break;
            }
        }
        undo.is_over(&bench, OperationState::Failed).await;
        let failed = undo.operations.get(&undo.id).await.unwrap().unwrap();
        let why = failed.failure.unwrap();
        assert!(why.contains("has lost which"), "{why}");
        forget(&bench).await;
    }
}
