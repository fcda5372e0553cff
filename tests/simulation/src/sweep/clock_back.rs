//! Gates, runs and permits of a queue that only the scene serves, and items of a dispenser, while
//! the clock is set back: the first call afterwards is that of a worker that registers, and then
//! that of one that lives.

use std::time::Duration;

use optimus_core::{Gather, Limit, Rate};
use tokio::time::sleep;

use super::Actor;
use super::hand::{APART, Hand, LONG};
use super::limits::named;
use super::one_by_one::{Changed, limited};
use super::steps::ms;
use crate::queues::queue;
use crate::tasks::{Kind, Work};

const BACK_MS: i64 = -3_000;

pub(super) async fn clock_back(actor: &Actor) {
    let network = &actor.world.network;
    let mut hand = Hand::new(actor, "first", LONG).await;
    wait(&mut hand).await;
    let desk = actor.user.client.dispenser("clock").hold(ms(600)).hold_max(ms(900));
    drop(desk.add(["a", "b"]).await);
    drop(desk.assign("ann", 1).await);
    network.set_clock(BACK_MS);
    drop(desk.check("bob").await);
    let second = Hand::new(actor, "second", LONG).await;
    wait(&mut hand).await;
    network.set_clock(BACK_MS);
    drop(hand.broker.renew(&hand.queue, &hand.worker, LONG).await);
    // The usual workers of the other queue notice it, too.
    let plain = Work::new(1, Kind::Lasts(0)).queue(queue().as_str());
    actor.wait_for(1, actor.call(1, plain).await).await;
    for _ in 0..4 {
        sleep(ms(1_200)).await;
        hand.work(9).await;
    }
    for hand in [&hand, &second] {
        drop(hand.broker.leave(&hand.queue, &hand.worker).await);
    }
}

/// Tasks wait for a rate and for others with which they run, and a permit is lent.
async fn wait(hand: &mut Hand<'_>) {
    let slow = Limit::new().rate(Rate::per_minute(30));
    for _ in 0..2 {
        hand.submit(limited(slow)).await;
        let leases = hand.claim(1).await;
        hand.complete(&leases).await;
    }
    let gather = Gather { by: "late".into(), wait: Duration::from_secs(4), max: 9 };
    let gathers = |call| Changed(call, Box::new(|task| task.gathered(gather)));
    hand.submit(gathers).await;
    let (broker, gate) = (&hand.broker, named("lent"));
    let limit = Limit::new().max_working(1);
    drop(broker.set_limit(&hand.queue, &gate, Some(&limit)).await);
    drop(broker.acquire(&hand.queue, &gate, 1, APART, Duration::from_secs(5)).await);
}
