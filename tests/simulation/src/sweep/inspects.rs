//! An operator who reads all data, and makes requests that the state of a task does not allow.

use std::time::Duration;

use optimus_core::{Due, PageCursor, TaskId, TaskState};

use super::{Actor, steps::ms};
use crate::queues::queue;
use crate::tasks::{Kind, Work};

pub(super) async fn inspect(actor: &Actor) {
    let dead = actor.submit(1, Kind::Fatal).await;
    actor.wait_for(1, dead.clone()).await;
    let running = actor.submit(2, Kind::Lasts(300)).await;
    actor.begun(2, 1).await;
    let done = actor.submit(3, Kind::Lasts(0)).await;
    actor.wait_for(3, done.clone()).await;
    let delayed = actor.call(4, Work::new(4, Kind::Lasts(0)).due(Due::In(ms(900)))).await;
    let inspector = actor.user.client.inspector();
    for handle in [dead, running, done, delayed].into_iter().flatten() {
        drop(inspector.get(handle.id()).await);
        drop(handle.status().await);
    }
    turn_pages(actor).await;
    drop(inspector.workers(&queue()).await);
    drop(inspector.counts(&queue()).await);
    refused(actor).await;
}

/// Reads pages of one row, so that each page except the first begins after another.
async fn turn_pages(actor: &Actor) {
    let inspector = actor.user.client.inspector();
    let paused = actor.user.pause_queue(&queue()).await;
    let mut waiting = Vec::new();
    for number in 11..17 {
        let call = Work::new(number, Kind::Lasts(0));
        let call = match number {
            11..13 => call.priority(1),
            13..15 => call.due(Due::In(ms(500))),
            _ => call,
        };
        waiting.extend(actor.call(number, call).await);
    }
    for number in 17..19 {
        let handle = actor.call(number, Work::new(number, Kind::Lasts(0))).await;
        if let Some(handle) = &handle {
            actor.user.cancel_task(number, handle.id()).await;
        }
    }
    for state in TaskState::ALL {
        let mut after = None;
        for _ in 0..6 {
            let Ok(page) = inspector.list(&queue(), state, after.as_ref(), 1).await else { break };
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    // This cursor belongs to a task that has left the list.
    for state in [TaskState::Cancelled, TaskState::Delayed] {
        let gone = format!("{}~{state}~5~20gone", queue()).parse::<PageCursor>();
        drop(inspector.list(&queue(), state, gone.as_ref().ok(), 1).await);
    }
    if paused {
        actor.user.resume_queue(&queue()).await;
    }
}

/// Requests to cancel or requeue tasks in other states.
async fn refused(actor: &Actor) {
    let client = &actor.user.client;
    let mute = Work::new(5, Kind::Lasts(0)).result_ttl(Duration::ZERO);
    let mute = actor.call(5, mute).await;
    let done = actor.submit(6, Kind::Lasts(0)).await;
    actor.wait_for(6, done.clone()).await;
    for (number, handle) in [(5, &mute), (6, &done)] {
        if let Some(handle) = handle {
            actor.user.cancel_task(number, handle.id()).await;
        }
    }
    for (number, handle) in [(5, mute), (6, done)] {
        let Some(handle) = handle else { continue };
        drop(handle.status().await);
        drop(client.inspector().get(handle.id()).await);
        // The cancel and the requeue take effect if a rollback has undone the success.
        actor.user.requeue_task(number, handle.id()).await;
    }
    let unknown = TaskId::new(queue());
    drop(client.handle::<u64>(unknown.clone()).status().await);
    drop(client.requeue(&unknown).await);
    let running = actor.submit(7, Kind::Lasts(100)).await;
    actor.begun(7, 1).await;
    if let Some(handle) = running {
        actor.user.requeue_task(7, handle.id()).await;
    }
}
