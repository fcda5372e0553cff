//! Tasks with limits: they wait, are listed, cancelled and paused, and one loses its worker.

use optimus_core::broker::{Acquired, Broker};
use optimus_core::{
    Call, Due, Error, Gate, Limit, PageCursor, Rate, Submission, Submit, TaskHandle, TaskLimit,
    TaskState,
};
use tokio::time::sleep;

use super::Actor;
use super::hand::{Hand, LONG};
use super::one_by_one::{Changed, limited};
use super::steps::ms;
use crate::queues::queue;
use crate::tasks::{Kind, Work};

/// A call with limits.
struct Limited(Call<Work>, Vec<TaskLimit>);

impl Submit for Limited {
    type Output = u64;

    fn into_submission(self) -> Result<Submission, Error> {
        Ok(self.0.into_submission()?.limited_by(self.1))
    }
}

pub(super) fn named(name: &str) -> Gate {
    Gate::Named(name.into())
}

fn most(name: &str) -> TaskLimit {
    TaskLimit { gate: named(name), limit: Limit::new().max_working(1) }
}

fn rate(name: &str) -> TaskLimit {
    TaskLimit { gate: named(name), limit: Limit::new().rate(Rate::per_second(20)) }
}

pub(super) async fn limits(actor: &Actor) {
    let broker = actor.user.client.broker().clone();
    // At first no task waits for a gate, and no permit is lent.
    let passes = submit(actor, 31, Work::new(31, Kind::Lasts(0)), vec![most("m")]).await;
    actor.wait_for(31, passes).await;
    let paused = actor.user.pause_queue(&queue()).await;
    let first = submit(actor, 1, Work::new(1, Kind::Lasts(300)), vec![most("m")]).await;
    lend(&broker).await;
    drop(broker.pause_gate(&queue(), &named("z"), "the scene", "one task waits alone").await);
    let kinds = [Kind::Fails(1), Kind::Snoozes, Kind::Shuts, Kind::Lasts(0)];
    let mut last = None;
    for (number, kind) in (2..).zip(kinds) {
        last = submit(actor, number, Work::new(number, kind), vec![most("m")]).await;
    }
    for number in 6..9 {
        let call = Work::new(number, Kind::Lasts(0)).priority(1);
        drop(submit(actor, number, call, vec![rate("r"), most("m")]).await);
    }
    let late = Work::new(9, Kind::Lasts(0)).due(Due::In(ms(30)));
    drop(submit(actor, 9, late, vec![rate("r")]).await);
    drop(submit(actor, 10, Work::new(10, Kind::Lasts(0)), vec![most("s")]).await);
    let alone = submit(actor, 11, Work::new(11, Kind::Lasts(0)), vec![most("z")]).await;
    for number in 12..30 {
        drop(submit(actor, number, Work::new(number, Kind::Lasts(0)), vec![rate("r")]).await);
    }
    if paused {
        actor.user.resume_queue(&queue()).await;
    }
    actor.begun(1, 1).await;
    sleep(ms(20)).await;
    drop(submit(actor, 30, Work::new(30, Kind::Lasts(0)), vec![most("m")]).await);
    read(actor, &broker, last.as_ref()).await;
    if let Some(handle) = &alone {
        actor.user.cancel_task(11, handle.id()).await;
    }
    operate(actor, &broker).await;
    actor.wait_for(1, first).await;
    actor.wait_for(11, alone).await;
    actor.wait_for(5, last).await;
    drop_the_first(actor).await;
    wait_for_two(actor).await;
}

/// Cancels or deletes the first of the tasks that wait for a rate.
async fn drop_the_first(actor: &Actor) {
    let mut hand = Hand::new(actor, "of limits", LONG).await;
    for is_delete in [false, true] {
        let mut ids = Vec::new();
        for _ in 0..3 {
            ids.push(hand.submit(limited(Limit::new().rate(Rate::per_second(1)))).await);
        }
        let leases = hand.claim(9).await;
        hand.complete(&leases).await;
        if let Some(first) = &ids[1] {
            if is_delete {
                drop(hand.broker.delete_all(&hand.queue, &[first]).await);
            } else {
                drop(hand.broker.cancel(first).await);
            }
        }
        for _ in 0..2 {
            sleep(ms(1_100)).await;
            hand.work(9).await;
        }
    }
    drop(hand.broker.leave(&hand.queue, &hand.worker).await);
}

/// Tasks of several kinds wait for a rate. Once it lets one start, they wait for a permit.
async fn wait_for_two(actor: &Actor) {
    let mut hand = Hand::new(actor, "of two limits", LONG).await;
    let both = [
        TaskLimit { gate: named("x"), limit: Limit::new().max_working(2) },
        TaskLimit { gate: named("y"), limit: Limit::new().rate(Rate::per_second(1)) },
    ];
    for kind in 0..4 {
        let limits = [&[most(&format!("kind-{kind}"))], &both[..]].concat();
        let change = |call| Changed(call, Box::new(|task| task.limited_by(limits)));
        drop(hand.submit(change).await);
    }
    let mut leases = hand.claim(9).await;
    for _ in 0..2 {
        sleep(ms(1_100)).await;
        leases.extend(hand.claim(1).await);
    }
    hand.complete(&leases).await;
    for _ in 0..4 {
        sleep(ms(1_100)).await;
        hand.work(9).await;
    }
    drop(hand.broker.leave(&hand.queue, &hand.worker).await);
}

async fn submit(
    actor: &Actor,
    number: u64,
    call: Call<Work>,
    limits: Vec<TaskLimit>,
) -> Option<TaskHandle<u64>> {
    actor.call(number, Limited(call, limits)).await
}

/// Lends permits outside tasks, one of which is not given back.
async fn lend(broker: &Broker) {
    let (queue, gate) = (queue(), named("s"));
    drop(broker.set_limit(&queue, &gate, Some(&Limit::new().max_working(1))).await);
    for (permit, lease) in [("kept", 100), ("refused", 100)] {
        let answer = broker.acquire(&queue, &gate, 1, permit, ms(lease)).await;
        if matches!(answer, Ok(Acquired::Granted)) {
            drop(broker.renew_permit(&queue, &gate, permit, ms(lease)).await);
        }
    }
    let other = named("back");
    drop(broker.set_limit(&queue, &other, Some(&Limit::new().rate(Rate::per_second(9)))).await);
    drop(broker.acquire(&queue, &other, 1, "back", ms(500)).await);
    drop(broker.give_back(&queue, &other, "back").await);
}

/// Reads the tasks that wait, in pages of one row. The first cursor is that of a task that is gone.
async fn read(actor: &Actor, broker: &Broker, waits: Option<&TaskHandle<u64>>) {
    let inspector = actor.user.client.inspector();
    if let Some(handle) = waits {
        drop(handle.status().await);
    }
    drop(broker.limits(&queue(), 9).await);
    let mut after = format!("{}~blocked~g5~20gone", queue()).parse::<PageCursor>().ok();
    for _ in 0..6 {
        let listed = inspector.list(&queue(), TaskState::Blocked, after.as_ref(), 1).await;
        let Ok(page) = listed else { break };
        after = page.next;
        if after.is_none() {
            break;
        }
    }
}

/// Changes and pauses gates while tasks wait for them, and kills the worker of one.
async fn operate(actor: &Actor, broker: &Broker) {
    let queue = queue();
    if let Some(process) = actor.begun(1, 1).await {
        actor.world.network.kill(process);
    }
    drop(broker.set_limit(&queue, &named("m"), Some(&Limit::new().max_working(2))).await);
    drop(broker.pause_gate(&queue, &named("r"), "the scene", "it is a test").await);
    sleep(ms(60)).await;
    drop(broker.set_limit(&queue, &named("m"), None).await);
    let limit = Limit::new().rate(Rate::per_second(200)).max_working(3);
    drop(broker.set_limit(&queue, &Gate::Queue, Some(&limit)).await);
    release_all(broker).await;
}

/// Resumes every gate of the queue and removes what was set, until Redis has answered.
pub(crate) async fn release_all(broker: &Broker) {
    let gates = ["r", "s", "m", "z", "back"].map(named);
    let gates = [&gates[..], &[Gate::Queue]].concat();
    for gate in &gates {
        for _ in 0..100 {
            let resumed = match gate {
                Gate::Queue => Ok(true),
                _ => broker.resume_gate(&queue(), gate).await,
            };
            let removed = broker.set_limit(&queue(), gate, None).await;
            if resumed.is_ok() && removed.is_ok() {
                break;
            }
            sleep(ms(100)).await;
        }
    }
}
