//! The steps of each [scene](super::Scene).

use std::time::Duration;

use optimus_core::{
    BoxError, Call, Context, DeleteAnswer, Due, LaneFailure, Task, TaskHandle, TaskId, TaskOptions,
};
use serde::{Deserialize, Serialize};
use tokio::time::{sleep, timeout};

use super::Actor;
use crate::dump::dump;
use crate::hostile::{Hostile, Place};
use crate::queues::{QUEUE, queue};
use crate::tasks::{Kind, Mute, Neighbour, Poison, Rare, Work};
use crate::world::{LEASE, Setup};

const LARGE: usize = 20 * 1024;
/// A queue that no worker serves.
const UNSERVED: &str = "unserved";
/// A time that is longer than any retention time.
const YEAR_MS: i64 = 365 * 24 * 60 * 60 * 1000;

pub(super) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(super) async fn batch(actor: &Actor) {
    let calls: Vec<Call<Work>> = (0..12)
        .map(|number| {
            let padding = if number == 5 { "x".repeat(LARGE) } else { String::new() };
            let call = Call::new(Work { number, kind: Kind::Lasts(number * 5), padding });
            match number {
                6..8 => call.priority(2),
                8 => call.due(Due::In(ms(100))),
                9 => call.due(Due::In(ms(50))).priority(-1),
                10 => call.expires_in(Duration::from_secs(3_600)),
                _ => call,
            }
        })
        .collect();
    (0..12).for_each(|number| actor.user.invoke(number, None, 0));
    let answers = actor.user.submit_all(calls).await;
    for (number, answer) in (0..12).zip(answers) {
        actor.user.answered(number, &answer);
        // Some tasks are awaited one after another, so that the check of one task includes the
        // next.
        if number < 3 || number % 4 == 3 {
            actor.wait_for(number, answer.ok()).await;
        }
    }
}

pub(super) async fn biz_id(actor: &Actor) {
    let first = actor.unique(1, 1).await;
    let again = actor.unique(2, 1).await;
    actor.wait_for(1, first).await;
    actor.wait_for(2, again).await;
    actor.wait_for(3, actor.unique(3, 1).await).await;
    let window = Work::new(4, Kind::Lasts(0)).biz_id("b2").biz_window(ms(300));
    let handle = actor.user.submit(4, window, Some(2), 0).await;
    actor.wait_for(4, handle).await;
    drop(actor.unique(5, 2).await);
}

/// Checks that one id is one task while it is stored, even if it is submitted again.
pub(super) async fn same_id(actor: &Actor) {
    let (id, delay_ms) = (TaskId::new(queue()), 10_000);
    for number in 1..3 {
        // The delay is longer than a fault can delay the second submit. The first task must still
        // be stored then, because its id is free after its success.
        let call = Work::new(number, Kind::Lasts(0)).id(id.clone()).due(Due::In(ms(delay_ms)));
        let handle = actor.user.submit(number, call, None, delay_ms).await;
        if number == 2 {
            actor.wait_for(number, handle).await;
        }
    }
    sleep(ms(400)).await;
}

pub(super) async fn later(actor: &Actor) {
    // A worker that waits for the only task finds none. A worker that waits for the first of two
    // tasks finds the second.
    let only = Work::new(5, Kind::Lasts(0)).due(Due::In(ms(150)));
    if let Some(only) = actor.user.submit(5, only, None, 150).await {
        actor.user.cancel_task(5, only.id()).await;
    }
    sleep(ms(200)).await;
    let first = Work::new(3, Kind::Lasts(0)).due(Due::In(ms(200)));
    let first = actor.user.submit(3, first, None, 200).await;
    let second = Work::new(4, Kind::Lasts(0)).due(Due::In(ms(500)));
    drop(actor.user.submit(4, second, None, 500).await);
    if let Some(first) = first {
        actor.user.cancel_task(3, first.id()).await;
    }
    sleep(ms(300)).await;
    for (number, delay_ms) in [(1, 700), (2, 300)] {
        let call = Work::new(number, Kind::Lasts(0)).due(Due::In(ms(delay_ms)));
        let handle = actor.user.submit(number, call, None, delay_ms).await;
        if number == 2 {
            actor.wait_for(number, handle).await;
        }
    }
    // More tasks are due at once than there are slots.
    for number in 10..20 {
        // A submit takes 2 ms.
        let call = Work::new(number, Kind::Lasts(20)).due(Due::In(ms(440 - 2 * number)));
        drop(actor.user.submit(number, call, None, 0).await);
    }
    sleep(ms(900)).await;
}

/// Checks that each queue has its own biz ids, and that a paused queue does not delay the others.
pub(super) async fn queues(actor: &Actor) {
    let names = actor.world.queues.names().to_vec();
    actor.user.pause_queue(&names[1]).await;
    let mut handles = Vec::new();
    for number in 0..9 {
        let queue = names[usize::try_from(number).unwrap_or(0) % names.len()].as_str();
        let call = Work::new(number, Kind::Lasts(number * 20)).queue(queue).biz_id("b");
        let handle = actor.user.submit(number, call, Some(number % 3), 0).await;
        handles.push((number, handle));
    }
    sleep(ms(400)).await;
    actor.user.resume_queue(&names[1]).await;
    for (number, handle) in handles {
        actor.wait_for(number, handle).await;
    }
}

/// Makes Redis unavailable for longer than any lease. One worker has a longer lease. The tasks do
/// not stop when their leases are in doubt.
pub(super) async fn outage(actor: &Actor) {
    let lease = 3 * LEASE;
    let patient = actor.world.worker(Setup { lease, ..Setup::of(4) });
    sleep(ms(50)).await;
    let mut handles = Vec::new();
    for number in 1..8 {
        let lasts = Duration::from_secs(15);
        let call = Work::new(number, Kind::Hangs).timeout(lasts).max_retry(0);
        handles.push((number, actor.call(number, call).await));
        actor.begun(number, 1).await;
    }
    actor.world.network.cut(None, lease + LEASE / 2);
    for (number, handle) in handles {
        actor.wait_for(number, handle).await;
    }
    actor.world.ask_to_end(patient.process);
}

/// Rolls the store back twice, for a client that continues in one slot of its ledger.
pub(super) async fn failover(actor: &Actor) {
    for number in 1..10 {
        let handle = actor.submit(number, Kind::Lasts(0)).await;
        match number {
            3 | 6 => actor.world.network.roll_back(3),
            _ => actor.wait_for(number, handle).await,
        }
    }
}

/// Submits tasks that return nothing, and waits for them after the store has no data of their
/// success. Then submits more of them. A failover keeps the first ones and loses the last ones
/// before any of them runs.
pub(super) async fn elimination(actor: &Actor) {
    let submit = async |number: u64| {
        let handle = actor.call(number, Mute { number }.call()).await;
        if let Some(handle) = handle {
            actor.user.await_success(number, handle, ms(2_000));
        }
    };
    for number in 1..5 {
        submit(number).await;
    }
    sleep(ms(2_500)).await;
    actor.user.pause_queue(&queue()).await;
    for number in 5..9 {
        submit(number).await;
    }
    actor.world.network.roll_back(2);
    actor.user.resume_queue(&queue()).await;
    submit(9).await;
    sleep(ms(2_500)).await;
}

/// Runs a task of each kind that ends by itself. The worker continues after each of them.
pub(super) async fn hostile(actor: &Actor) {
    for (number, place) in (1..).zip(Place::ALL) {
        drop(actor.call(number, Hostile::new(number, place)).await);
    }
    actor.wait_for(20, actor.submit(20, Kind::Lasts(0)).await).await;
}

/// Returns when all three tasks have begun. The second one has a priority, and the third one has a
/// biz id.
async fn three_that_hang(actor: &Actor) -> [Option<TaskHandle<u64>>; 3] {
    let plain = actor.submit(1, Kind::HangsOnce).await;
    let ranked = actor.call(2, Work::new(2, Kind::HangsOnce).priority(1)).await;
    let unique = actor.call(3, Work::new(3, Kind::HangsOnce).biz_id("b3")).await;
    for number in [1, 2, 3] {
        actor.begun(number, 1).await;
    }
    [plain, ranked, unique]
}

pub(super) async fn release(actor: &Actor) {
    let [handle, ranked, cancelled] = three_that_hang(actor).await;
    if let Some(handle) = &cancelled {
        actor.user.await_result(3, handle.clone());
        sleep(ms(5)).await;
        actor.user.cancel_task(3, handle.id()).await;
    }
    for number in [1, 2, 3] {
        if let Some(process) = actor.begun(number, 1).await {
            actor.world.ask_to_end(process);
        }
    }
    actor.wait_for(1, handle).await;
    actor.wait_for(2, ranked).await;
}

pub(super) async fn reap(actor: &Actor) {
    let [handle, ranked, cancelled] = three_that_hang(actor).await;
    for number in [1, 2, 3] {
        if let Some(process) = actor.begun(number, 1).await {
            actor.world.network.kill(process);
        }
    }
    if let Some(handle) = &cancelled {
        actor.user.cancel_task(3, handle.id()).await;
        actor.user.await_result(3, handle.clone());
    }
    actor.wait_for(1, handle).await;
    actor.wait_for(2, ranked).await;
}

/// The numbers of the tasks next to the poisonous task.
pub(super) const NEIGHBOURS: u64 = 10;

pub(super) async fn poison(actor: &Actor) {
    for number in NEIGHBOURS..NEIGHBOURS + 3 {
        drop(actor.call(number, Call::new(Neighbour { number })).await);
    }
    let poison = actor.call(1, Call::new(Poison { number: 1 })).await;
    for number in NEIGHBOURS + 3..NEIGHBOURS + 6 {
        drop(actor.call(number, Call::new(Neighbour { number })).await);
    }
    if let Some(poison) = poison {
        drop(timeout(Duration::from_secs(30), poison.ended()).await);
    }
}

/// Runs a task that has lost two workers, so it runs alone, and succeeds. Then its worker continues
/// with other tasks.
pub(super) async fn quarantine(actor: &Actor) {
    drop(actor.call(1, Call::new(Neighbour { number: 1 })).await);
    for losses in 1..3 {
        if let Some(process) = actor.begun(1, losses).await {
            actor.world.network.kill(process);
        }
    }
    actor.begun(1, 3).await;
    // The task runs so long that its worker claims again, finds nothing and removes the mark.
    sleep(ms(6_000)).await;
    actor.wait_for(2, actor.submit(2, Kind::Lasts(0)).await).await;
}

pub(super) async fn control_words(actor: &Actor) {
    let kinds =
        [Kind::Snoozes, Kind::Shuts, Kind::RetriesAfter, Kind::Panics, Kind::GivesUp, Kind::Fatal];
    for (number, kind) in (1..).zip(kinds) {
        let call = Work::new(number, kind).biz_id(format!("c{number}"));
        let handle = actor.call(number, call).await;
        actor.wait_for(number, handle).await;
    }
    drop(actor.call(9, Call::new(Rare { number: 9 })).await);
}

/// Arguments that no worker can read.
#[derive(Serialize, Deserialize)]
struct Misshapen {}

impl Task for Misshapen {
    const NAME: &'static str = Work::NAME;
    type Output = ();

    fn options() -> TaskOptions {
        TaskOptions::new().queue(QUEUE)
    }

    async fn run(self, _: Context) -> Result<(), BoxError> {
        Ok(())
    }
}

/// Submits tasks without a record in the journal, because the history checker would count a
/// forgotten task as lost. None of these tasks ever begins.
pub(super) async fn purge(actor: &Actor) {
    let (client, network) = (&actor.user.client, &actor.world.network);
    let dead = Misshapen {}.call().biz_id("b1").priority(1).due(Due::In(ms(50)));
    let cancelled = Misshapen {}.call().biz_id("b2").expires_in(Duration::from_secs(90));
    let cancelled = cancelled.due(Due::In(Duration::from_secs(60)));
    let mut all = client.submit(dead).await.is_ok();
    match client.submit(cancelled).await {
        Ok(handle) => all &= client.cancel(handle.id()).await.is_ok(),
        Err(_) => all = false,
    }
    match client.submit(Misshapen {}.call().queue(UNSERVED)).await {
        Ok(handle) => all &= client.cancel(handle.id()).await.is_ok(),
        Err(_) => all = false,
    }
    // It ends as Dead, and blocks its lane.
    let stuck = Misshapen {}.call().lane("stuck").on_lane_failure(LaneFailure::Block);
    let stuck = client.submit(stuck).await;
    all &= stuck.is_ok();
    sleep(ms(300)).await;
    network.set_clock(YEAR_MS);
    // A worker cleans up at its start.
    network.kill(1);
    sleep(Duration::from_secs(1)).await;
    if let Ok(handle) = stuck {
        let deleted = client.delete(handle.id()).await;
        all &= deleted.is_ok();
        if all && network.faults() == 0 && deleted.ok() != Some(DeleteAnswer::Deleted) {
            network.complain("a task that blocked its lane was purged");
        }
    }
    let is_gone = dump(&network.store).values().all(|queue| !queue.keys.contains_key("tasks"));
    if all && network.faults() == 0 && !is_gone {
        network.complain("a task that is a year old still exists");
    }
    let names = client.inspector().queues().await.unwrap_or_default();
    let is_kept = names.iter().any(|name| name.as_str() == UNSERVED);
    if all && network.faults() == 0 && is_kept {
        network.complain("a queue that was unused for a year still exists");
    }
}

pub(super) async fn clock(actor: &Actor) {
    let handle = actor.submit(1, Kind::HangsOnce).await;
    for round in 0..16 {
        if round % 7 == 1
            && let Some(process) = actor.begun(1, 1).await
        {
            actor.world.network.kill(process);
            actor.world.network.kill(2);
        }
        sleep(ms(170)).await;
        actor.world.network.set_clock(-400);
    }
    actor.wait_for(1, handle).await;
}
