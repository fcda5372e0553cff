//! The scenes of an operator, step by step.

use std::time::Duration;

use optimus_core::{Due, TaskHandle, TaskId};
use tokio::time::{sleep, timeout};

use super::Actor;
use super::steps::ms;
use crate::queues::queue;
use crate::tasks::{Kind, Work};

pub(super) async fn cancel_waiting(actor: &Actor) {
    let mut twice = None;
    actor.user.pause_queue(&queue()).await;
    let ready = actor.submit(1, Kind::Lasts(0)).await;
    let ranked = actor.call(2, Work::new(2, Kind::Lasts(0)).priority(1)).await;
    let delayed = actor.call(3, Work::new(3, Kind::Lasts(0)).due(Due::In(ms(500)))).await;
    let unique = actor.unique(4, 1).await;
    let waits = unique.clone();
    let window = Work::new(13, Kind::Lasts(0)).biz_id("b13").biz_window(ms(300));
    let window = actor.user.submit(13, window, Some(13), 0).await;
    for (number, handle) in [(1, ready), (2, ranked), (3, delayed), (4, unique), (13, window)] {
        if let Some(handle) = handle {
            actor.user.await_result(number, handle.clone());
            sleep(ms(5)).await;
            actor.user.cancel_task(number, handle.id()).await;
        }
    }
    actor.wait_for(4, waits).await;
    // This creates two tombstones of one task that are far from each other in the ready list.
    for number in 6..12 {
        let handle = actor.submit(number, Kind::Lasts(0)).await;
        if let Some(handle) = handle.filter(|_| number == 6) {
            actor.user.cancel_task(number, handle.id()).await;
            twice = Some(handle);
        }
    }
    if let Some(handle) = twice {
        actor.user.requeue_task(6, handle.id()).await;
        actor.user.cancel_task(6, handle.id()).await;
    }
    // This task is after all tombstones.
    let behind = actor.submit(5, Kind::Lasts(0)).await;
    actor.user.resume_queue(&queue()).await;
    actor.wait_for(5, behind).await;
}

pub(super) async fn cancel_running(actor: &Actor) {
    for (number, biz) in [(1, None), (2, Some("b2"))] {
        let mut call = Work::new(number, Kind::HangsOnce);
        if let Some(biz) = biz {
            call = call.biz_id(biz);
        }
        let handle = actor.call(number, call).await;
        actor.begun(number, 1).await;
        if let Some(handle) = handle {
            actor.user.cancel_task(number, handle.id()).await;
            actor.wait_for(number, Some(handle)).await;
        }
    }
    cancel_several(actor).await;
}

/// Cancels two of three tasks that a worker runs. Then cancels the third one, and two tasks that
/// wait.
async fn cancel_several(actor: &Actor) {
    let mut running = Vec::new();
    for number in 3..6 {
        let handle = actor.submit(number, Kind::HangsOnce).await;
        actor.begun(number, 1).await;
        running.extend(handle.map(|handle| (number, handle)));
    }
    let last = running.split_off(running.len().min(2));
    cancel_together(actor, running).await;
    actor.user.pause_queue(&queue()).await;
    let mut others = last;
    for number in 6..8 {
        let handle = actor.submit(number, Kind::Lasts(0)).await;
        others.extend(handle.map(|handle| (number, handle)));
    }
    cancel_together(actor, others).await;
    actor.user.resume_queue(&queue()).await;
}

async fn cancel_together(actor: &Actor, tasks: Vec<(u64, TaskHandle<u64>)>) {
    let ids: Vec<_> = tasks.iter().map(|(number, handle)| (*number, handle.id().clone())).collect();
    actor.user.cancel_tasks(&ids).await;
    for (number, handle) in tasks {
        actor.wait_for(number, Some(handle)).await;
    }
}

/// Asks one of a worker's tasks to stop. The task does not stop, and heartbeats report the request
/// during that time.
pub(super) async fn cancel_deaf(actor: &Actor) {
    for number in 1..6 {
        drop(actor.submit(number, Kind::Lasts(1_200)).await);
    }
    let call = Work::new(6, Kind::Hangs).timeout(ms(1_500)).max_retry(0);
    let handle = actor.call(6, call).await;
    actor.begun(6, 1).await;
    if let Some(handle) = handle {
        actor.user.cancel_task(6, handle.id()).await;
        actor.wait_for(6, Some(handle)).await;
    }
}

/// Requeues a task. The attempt after the requeue must not stop, though the stop request may arrive
/// late.
pub(super) async fn cancel_requeue(actor: &Actor) {
    let handle = actor.submit(1, Kind::HangsOnce).await;
    actor.begun(1, 1).await;
    if let Some(handle) = handle {
        actor.user.cancel_task(1, handle.id()).await;
        drop(timeout(ms(5_000), handle.ended()).await);
        actor.user.requeue_task(1, handle.id()).await;
        actor.wait_for(1, Some(handle)).await;
    }
}

pub(super) async fn requeue(actor: &Actor) {
    let call = Work::new(1, Kind::Fatal).biz_id("b1").priority(1);
    if let Some(handle) = actor.user.submit(1, call, Some(1), 0).await {
        actor.wait_for(1, Some(handle.clone())).await;
        actor.user.requeue_task(1, handle.id()).await;
        actor.wait_for(1, Some(handle)).await;
    }
    // When the task is requeued, another task has its biz id.
    let late = || Due::In(ms(700));
    let call = Work::new(3, Kind::Lasts(0)).biz_id("b3").due(late());
    if let Some(handle) = actor.user.submit(3, call, Some(3), 700).await {
        actor.user.cancel_task(3, handle.id()).await;
        let call = Work::new(4, Kind::Lasts(0)).biz_id("b3").due(late());
        drop(actor.user.submit(4, call, Some(3), 700).await);
        actor.user.requeue_task(3, handle.id()).await;
    }
    let call = Work::new(2, Kind::Lasts(0)).due(Due::In(Duration::from_secs(60)));
    if let Some(handle) = actor.call(2, call).await {
        actor.user.cancel_task(2, handle.id()).await;
        actor.user.requeue_task(2, handle.id()).await;
        actor.wait_for(2, Some(handle)).await;
    }
}

/// Deletes one task in each state. Then deletes several at once, of which one is working and one is
/// unknown.
pub(super) async fn delete(actor: &Actor) {
    let dead = actor.user.submit(1, Work::new(1, Kind::Fatal).biz_id("b1"), Some(1), 0).await;
    if let Some(handle) = dead {
        drop(timeout(ms(5_000), handle.ended()).await);
        actor.user.delete_tasks(&[(1, handle.id().clone())]).await;
        // The biz id of the deleted task is free. A submit with its own id reads the ids that were
        // deleted.
        let again = Work::new(2, Kind::Lasts(0)).id(TaskId::new(queue())).biz_id("b1");
        let again = actor.user.submit(2, again, Some(1), 0).await;
        actor.wait_for(2, again).await;
    }
    let retry = actor.submit(3, Kind::Fails(1)).await;
    actor.begun(3, 1).await;
    sleep(ms(5)).await;
    let working = actor.submit(4, Kind::Lasts(300)).await;
    actor.begun(4, 1).await;
    actor.user.pause_queue(&queue()).await;
    let cancelled = actor.submit(5, Kind::Lasts(0)).await;
    if let Some(handle) = &cancelled {
        actor.user.cancel_task(5, handle.id()).await;
    }
    let ready = actor.submit(6, Kind::Lasts(0)).await;
    let ranked = actor.call(7, Work::new(7, Kind::Lasts(0)).priority(1)).await;
    let delayed = actor.call(8, Work::new(8, Kind::Lasts(0)).due(Due::In(ms(800)))).await;
    let handles = [(3, &retry), (4, &working), (5, &cancelled), (6, &ready), (7, &ranked)];
    let handles = handles.into_iter().chain([(8, &delayed)]);
    let known = handles.filter_map(|(number, handle)| Some((number, handle.as_ref()?)));
    let ids: Vec<_> = known.map(|(number, handle)| (number, handle.id().clone())).collect();
    if let Some(handle) = ready.clone() {
        actor.user.await_result(6, handle);
        sleep(ms(5)).await;
    }
    actor.user.delete_tasks(&ids).await;
    actor.user.resume_queue(&queue()).await;
    actor.wait_for(4, working.clone()).await;
    if let Some(handle) = working {
        actor.user.delete_tasks(&[(4, handle.id().clone())]).await;
    }
}

pub(super) async fn pause(actor: &Actor) {
    actor.user.pause_queue(&queue()).await;
    let handle = actor.submit(1, Kind::Lasts(0)).await;
    sleep(ms(300)).await;
    actor.user.resume_queue(&queue()).await;
    actor.wait_for(1, handle).await;
}
