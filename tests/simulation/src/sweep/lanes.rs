//! Tasks of lanes: they wait, are listed, cancelled and requeued, and one loses its worker.

use std::num::NonZeroU16;

use optimus_core::{
    Call, Client, Due, Error, Lane, PageCursor, Submission, Submit, TaskHandle, TaskState,
};
use optimus_testkit::history::What;
use tokio::time::sleep;

use super::Actor;
use super::steps::ms;
use crate::queues::queue;
use crate::tasks::{Kind, Work};
use crate::world::World;

/// The numbers of the tasks of one lane of width 1. They are submitted in this order, and nobody
/// cancels or delays them.
const IN_ORDER: [u64; 4] = [1, 2, 3, 4];

/// A call in a lane.
struct InLane(Call<Work>, Lane);

impl Submit for InLane {
    type Output = u64;

    fn into_submission(self) -> Result<Submission, Error> {
        Ok(self.0.into_submission()?.in_lane(self.1))
    }
}

pub(super) async fn lanes(actor: &Actor) {
    let (ordered, other) = (Lane::new("ordered"), Lane::new("other"));
    let wide = Lane { width: NonZeroU16::new(2).expect("2 is not 0"), ..Lane::new("wide") };
    let paused = actor.user.pause_queue(&queue()).await;
    let kinds = [Kind::Lasts(400), Kind::Fails(1), Kind::Snoozes, Kind::Lasts(0)];
    let mut last = None;
    for (number, kind) in IN_ORDER.into_iter().zip(kinds) {
        last = submit(actor, number, Work::new(number, kind), &ordered).await;
    }
    for (number, kind) in [(5, Kind::Fails(1)), (6, Kind::Snoozes), (7, Kind::Lasts(50))] {
        drop(submit(actor, number, Work::new(number, kind).priority(1), &wide).await);
    }
    // The first of these ends while the second still has its permit, and the third waits.
    let roomy = Lane { width: wide.width, ..Lane::new("roomy") };
    for (number, takes_ms) in [(11, 20), (12, 600), (13, 0)] {
        drop(submit(actor, number, Work::new(number, Kind::Lasts(takes_ms)), &roomy).await);
    }
    resize(actor).await;
    let late = Work::new(8, Kind::Lasts(0)).due(Due::In(ms(30)));
    drop(submit(actor, 8, late, &wide).await);
    drop(submit(actor, 9, Work::new(9, Kind::Fatal), &other).await);
    let cancelled = submit(actor, 10, Work::new(10, Kind::Lasts(0)), &other).await;
    read(actor, last.as_ref()).await;
    if let Some(handle) = &cancelled {
        actor.user.cancel_task(10, handle.id()).await;
        actor.user.requeue_task(10, handle.id()).await;
    }
    if paused {
        actor.user.resume_queue(&queue()).await;
    }
    if let Some(process) = actor.begun(IN_ORDER[0], 1).await {
        actor.world.network.kill(process);
    }
    actor.wait_for(10, cancelled).await;
    actor.wait_for(IN_ORDER[3], last).await;
    reset(&actor.user.client, &["wide", "roomy", "other", "ordered"]).await;
}

/// Makes a lane of two narrower, another one wider, and resets one.
async fn resize(actor: &Actor) {
    for (key, width) in [("wide", 1), ("roomy", 3), ("wide", 3), ("other", 2), ("ordered", 1)] {
        drop(actor.user.client.lane(queue(), key).set_width(width).await);
    }
    // Tasks wait in the second one.
    reset(&actor.user.client, &["wide", "ordered"]).await;
}

/// Resets the widths of these lanes, until Redis has answered.
async fn reset(client: &Client, keys: &[&str]) {
    for key in keys {
        for _ in 0..100 {
            if client.lane(queue(), *key).reset_width().await.is_ok() {
                break;
            }
            sleep(ms(100)).await;
        }
    }
}

async fn submit(
    actor: &Actor,
    number: u64,
    call: Call<Work>,
    lane: &Lane,
) -> Option<TaskHandle<u64>> {
    actor.call(number, InLane(call, lane.clone())).await
}

/// Reads the tasks that wait, in pages of one row. One cursor is that of a task that is gone.
async fn read(actor: &Actor, waits: Option<&TaskHandle<u64>>) {
    let inspector = actor.user.client.inspector();
    if let Some(handle) = waits {
        drop(handle.status().await);
    }
    drop(inspector.list(&queue(), TaskState::Blocked, None, 100).await);
    let mut after = format!("{}~blocked~5~20gone", queue()).parse::<PageCursor>().ok();
    for _ in 0..6 {
        let listed = inspector.list(&queue(), TaskState::Blocked, after.as_ref(), 1).await;
        let Ok(page) = listed else { break };
        after = page.next;
        if after.is_none() {
            break;
        }
    }
}

/// Checks that no task of the lane began after a later one. A rolled back store may have lost an
/// end, and a submit without an answer may arrive late.
pub(super) fn check(world: &World) {
    let journal = &world.network.journal;
    if journal.was_rolled_back() {
        return;
    }
    let events = journal.events();
    let is_known = |number: u64| {
        let acked = |what: &What| matches!(what, What::Acked { task, .. } if *task == number);
        events.iter().any(|event| acked(&event.what))
    };
    let mut latest = 0;
    for event in &events {
        let What::Begin { task, .. } = event.what else { continue };
        if !IN_ORDER.contains(&task) || !is_known(task) {
            continue;
        }
        if task < latest {
            world.network.complain(format!("task {task} began after {latest} of its lane"));
        }
        latest = latest.max(task);
    }
}
