//! Operations on many tasks, which carriers take over from each other, beside tasks that run.

use optimus_core::broker::{Broker, FailureOutcome};
use optimus_core::{
    AuditAct, Due, OperationAct, OperationFilter, OperationState, TaskId, TaskState,
};
use tokio::time::timeout;

use super::Actor;
use super::hand::{APART, Hand, LONG};
use super::steps::ms;
use crate::tasks::Kind;
use crate::world::LEASE;

/// What the operations of a foreign program are about.
const ABOUT: &str = r#"{"act":"requeue","filter":{"queues":["apart"],"states":["dead"]},"who":""}"#;

pub(super) async fn operations(actor: &Actor) {
    let mut hand = Hand::new(actor, "operated", LEASE).await;
    let beside = actor.submit(1, Kind::Lasts(900)).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.extend(hand.submit(|call| call).await);
    }
    let run = hand.claim(3).await;
    hand.fail(&run, FailureOutcome::Dead).await;
    change(&hand, &ids, OperationAct::Requeue, TaskState::Dead).await;
    change(&hand, &ids, OperationAct::Cancel, TaskState::Ready).await;
    change(&hand, &ids, OperationAct::Delete, TaskState::Cancelled).await;
    requeue_twice(&mut hand).await;
    let late = hand.submit(|call| call.due(Due::In(LONG))).await;
    change(&hand, &late.into_iter().collect::<Vec<_>>(), OperationAct::RunNow, TaskState::Delayed)
        .await;
    reject(&hand).await;
    replace(&hand).await;
    write_down(&hand).await;
    actor.wait_for(1, beside).await;
}

/// Changes all tasks in a state. The first carrier falls silent in its second step.
async fn change(hand: &Hand<'_>, ids: &[TaskId], act: OperationAct, state: TaskState) {
    let Some(mut operation) = count(hand, act, state).await else { return };
    let operations = hand.actor.user.client.operations();
    if operation.state == OperationState::Counting {
        let Ok(counted) = operations.carry(&operation.id).await else { return };
        operation = counted;
    }
    let before = number_in(hand, ids, reached(act)).await;
    drop(operations.confirm(&operation.id, operation.matched, "a test").await);
    let mut silent = operations.carrier(&operation.id).lease(LEASE);
    for within in [LEASE, ms(4)] {
        drop(timeout(within, silent.step()).await);
    }
    let Ok(Ok(done)) = timeout(10 * LEASE, operations.carry(&operation.id)).await else { return };
    let after = number_in(hand, ids, reached(act)).await;
    let (Some(before), Some(after)) = (before, after) else { return };
    let network = &hand.actor.world.network;
    // A task whose submit was not answered is there, and its id is not known.
    let knows_all = done.matched <= ids.len() as u64;
    let is_certain = done.state == OperationState::Done && act != OperationAct::RunNow;
    if is_certain && knows_all && before + done.done != after && !network.journal.was_rolled_back()
    {
        network.complain(format!("{act:?}: {before} and then {after}, by {done:?}"));
    }
}

async fn count(
    hand: &Hand<'_>,
    act: OperationAct,
    state: TaskState,
) -> Option<optimus_core::Operation> {
    let filter = OperationFilter::of(state).queue(APART).ok()?;
    hand.actor.user.client.operations().count(act, filter, "ann").await.ok()
}

fn reached(act: OperationAct) -> TaskState {
    match act {
        OperationAct::Cancel => TaskState::Cancelled,
        OperationAct::Delete => TaskState::Forgotten,
        _ => TaskState::Ready,
    }
}

/// Returns how many of the tasks are in a state.
async fn number_in(hand: &Hand<'_>, ids: &[TaskId], state: TaskState) -> Option<u64> {
    let mut number = 0;
    for id in ids {
        let found = hand.actor.user.client.inspector().get(id).await.ok()?;
        let found = found.map_or(TaskState::Forgotten, |found| found.state);
        number += u64::from(found == state);
    }
    Some(number)
}

/// Counts tasks, and changes none.
async fn reject(hand: &Hand<'_>) {
    let operations = hand.actor.user.client.operations();
    if let Some(operation) = count(hand, OperationAct::Delete, TaskState::Delayed).await {
        drop(operations.confirm(&operation.id, operation.matched + 1, "").await);
        drop(operations.cancel(&operation.id).await);
        drop(operations.carry(&operation.id).await);
    }
}

/// Cancels and requeues a task that can expire, so that it has two tombstones, one on each side of
/// another task.
async fn requeue_twice(hand: &mut Hand<'_>) {
    let twice = hand.submit(|call| call.expires_in(LONG)).await;
    hand.submit(|call| call).await;
    if let Some(id) = twice {
        for _ in 0..2 {
            drop(hand.broker.cancel(&id).await);
            drop(hand.broker.requeue(&id).await);
        }
    }
    for _ in 0..2 {
        let run = hand.claim(1).await;
        hand.fail(&run, FailureOutcome::Dead).await;
    }
}

/// Writes down an act, and what became of it.
async fn write_down(hand: &Hand<'_>) {
    let act = AuditAct { who: "ann".into(), act: "task.delete".into(), ..AuditAct::default() };
    if let Ok(note) = hand.actor.user.client.audit(act).await {
        drop(note.outcome("done").await);
    }
    drop(hand.actor.user.client.inspector().audit(None, 9).await);
}

/// Adds operations of which each replaces an earlier one that is over.
async fn replace(hand: &Hand<'_>) {
    let (broker, slot) = (&hand.broker, Broker::operations_slot());
    for id in ["first", "second", "second"] {
        drop(broker.operation_add(&slot, id, (ABOUT, ""), 2).await);
    }
    drop(hand.actor.user.client.operations().list(9).await);
}
