//! Calls of one task and of several, of tasks of lanes and with limits, in a queue that only the
//! scene serves. Each such call has a path of its own through the scripts.

use optimus_core::broker::FailureOutcome;
use optimus_core::{
    After, Call, Error, Lane, Limit, Prerequisite, Rate, Submission, Submit, TaskLimit,
};
use tokio::time::sleep;

use super::Actor;
use super::hand::{APART, Hand, LONG};
use super::limits::named;
use super::steps::ms;
use crate::tasks::{Kind, Work};

/// A call, and what changes its submission.
pub(super) struct Changed(
    pub(super) Call<Work>,
    pub(super) Box<dyn FnOnce(Submission) -> Submission + Send>,
);

impl Submit for Changed {
    type Output = u64;

    fn into_submission(self) -> Result<Submission, Error> {
        Ok((self.1)(self.0.into_submission()?))
    }
}

fn in_lane(key: &'static str) -> impl Fn(Call<Work>) -> Changed {
    move |call| Changed(call, Box::new(move |task: Submission| task.in_lane(Lane::new(key))))
}

pub(super) fn limited(limit: Limit) -> impl Fn(Call<Work>) -> Changed {
    move |call| {
        let limit = TaskLimit { gate: named("one"), limit };
        Changed(call, Box::new(move |task: Submission| task.limited_by(vec![limit])))
    }
}

impl Hand<'_> {
    /// Claims and completes as many tasks at once, until none is left.
    pub(super) async fn work(&mut self, at_once: usize) {
        for _ in 0..9 {
            let leases = self.claim(at_once).await;
            if leases.is_empty() {
                break;
            }
            self.complete(&leases).await;
        }
    }
}

pub(super) async fn one_by_one(actor: &Actor) {
    let mut hand = Hand::new(actor, "one", LONG).await;
    lanes(&mut hand).await;
    lanes_in_one_call(&mut hand).await;
    others_wait(&mut hand).await;
    limits(&mut hand).await;
    not_begun(&mut hand).await;
    remembered(&mut hand).await;
    of_another(&mut hand).await;
    for _ in 0..4 {
        sleep(ms(1_500)).await;
        hand.work(9).await;
    }
    drop(hand.broker.leave(&hand.queue, &hand.worker).await);
}

async fn lanes(hand: &mut Hand<'_>) {
    for key in ["a", "a", "a", "b"] {
        hand.submit(in_lane(key)).await;
    }
    for _ in 0..6 {
        let lease = hand.claim(1).await;
        // A report that passes a permit on writes a wakeup only if there is none.
        hand.take_wakeup().await;
        hand.complete(&lease).await;
    }
}

/// In each call, several tasks of one lane join it, and several lanes pass their permits on.
async fn lanes_in_one_call(hand: &mut Hand<'_>) {
    for _ in 0..2 {
        let keys = ["a", "a", "a", "b", "b", "c"];
        let call = || Work::new(0, Kind::Lasts(0)).queue(APART);
        let calls: Vec<_> = keys.into_iter().map(|key| in_lane(key)(call())).collect();
        drop(hand.actor.user.client.submit_all(calls).await);
    }
    hand.work(9).await;
}

/// One task waits for one of several that succeed in one call.
async fn others_wait(hand: &mut Hand<'_>) {
    let first = hand.submit(|call| call).await;
    hand.submit(|call| call).await;
    if let Some(first) = first {
        let wait = After::new([Prerequisite::Task(first)]);
        hand.submit(|call| Changed(call, Box::new(|task: Submission| task.waiting_for(wait))))
            .await;
    }
    hand.work(9).await;
}

/// The gate is known from the second task on. A task without limits ends while another one has a
/// permit.
async fn limits(hand: &mut Hand<'_>) {
    for limit in [Limit::new().rate(Rate::per_second(20)), Limit::new().max_working(2)] {
        for _ in 0..3 {
            hand.submit(limited(limit)).await;
            // A token is there again, so no task ever waits for the gate.
            sleep(ms(60)).await;
            hand.work(1).await;
        }
    }
    hand.submit(limited(Limit::new().max_working(2))).await;
    let kept = hand.claim(1).await;
    hand.submit(|call| call).await;
    hand.work(1).await;
    hand.complete(&kept).await;
}

/// A task with a rate is given back and then expires, both before it begins, while another one
/// waits for its token.
async fn not_begun(hand: &mut Hand<'_>) {
    for _ in 0..2 {
        hand.submit(limited(Limit::new().rate(Rate::per_second(1)))).await;
    }
    let given = hand.claim(2).await;
    hand.release(&given).await;
    let late = hand.claim(2).await;
    hand.fail(&late, FailureOutcome::Expired).await;
    sleep(ms(1_100)).await;
    hand.work(1).await;
}

/// Successes that later submits find, by id and by biz id.
async fn remembered(hand: &mut Hand<'_>) {
    for _ in 0..2 {
        hand.submit(|call| call.biz_id("kept").outcome_ttl(LONG)).await;
    }
    hand.work(1).await;
}

/// A call of several reports, one of which has no lease any more.
async fn of_another(hand: &mut Hand<'_>) {
    for _ in 0..2 {
        hand.submit(|call| call).await;
    }
    let own = hand.claim(2).await;
    if let Some(first) = own.first() {
        hand.complete(std::slice::from_ref(first)).await;
        hand.complete(&own).await;
    }
}
