//! Tasks that run together, in a queue that only the scene serves: their runs end in each way, and
//! an operator cancels, deletes, requeues and lists them.

use std::time::Duration;

use optimus_core::broker::{FailureOutcome, StoredBy};
use optimus_core::{Call, Error, Gather, Lease, Submission, Submit, TaskId, TaskState};
use tokio::time::sleep;

use super::Actor;
use super::hand::{APART, Hand, LONG};
use super::steps::ms;
use crate::tasks::{Kind, Work};

/// A lease of 200 ms that was prolonged is over by then.
const REAPS_MAX: usize = 8;
/// After this time, a claim checks whether the task that leads a run still does.
const LOOKS_AFTER: Duration = Duration::from_millis(15_100);

/// A call that runs together with others.
struct Gathered(Call<Work>, Gather);

impl Submit for Gathered {
    type Output = u64;

    fn into_submission(self) -> Result<Submission, Error> {
        Ok(self.0.into_submission()?.gathered(self.1))
    }
}

impl Hand<'_> {
    /// Submits calls of a key. Three are enough for a run.
    async fn gather(&self, by: &str, count: usize) -> Vec<TaskId> {
        let mut ids = Vec::new();
        for _ in 0..count {
            let gather = Gather { by: by.into(), wait: ms(300), max: 3 };
            ids.extend(self.submit(|call| Gathered(call, gather)).await);
        }
        ids
    }

    /// Collects the run of the first of these leaders.
    async fn run(&mut self, leaders: Vec<Lease>, want: usize) -> Vec<Lease> {
        let Some(leader) = leaders.first() else { return leaders };
        let mut run = leaders.clone();
        if let Ok(Some(collected)) = self.broker.collect(leader, want).await {
            run.extend(self.leases(&collected.grants, collected.token));
        }
        run
    }

    /// Runs all calls that are left.
    async fn drain(&mut self) {
        for _ in 0..4 {
            sleep(ms(1_500)).await;
            for leader in self.claim(9).await {
                let run = self.run(vec![leader], 9).await;
                self.complete(&run).await;
            }
        }
    }
}

pub(super) async fn gathers(actor: &Actor) {
    let mut hand = Hand::new(actor, "hand", LONG).await;
    succeed(&mut hand).await;
    end_before_collecting(&mut hand).await;
    come_back(&mut hand).await;
    operate(&mut hand).await;
    lose(&mut hand).await;
    hand.drain().await;
    drop(hand.broker.leave(&hand.queue, &hand.worker).await);
}

async fn succeed(hand: &mut Hand<'_>) {
    hand.gather("a", 3).await;
    let leaders = hand.claim(9).await;
    let late = hand.gather("a", 1).await;
    let run = hand.run(leaders, 2).await;
    hand.complete(&run).await;
    if let Some(late) = late.first() {
        drop(hand.broker.state_of(late, None::<StoredBy<'_>>).await);
        drop(hand.broker.cancel(late).await);
    }
}

/// Two leaders die before they collect. Another call leads after one of them.
async fn end_before_collecting(hand: &mut Hand<'_>) {
    hand.gather("b", 3).await;
    hand.gather("c", 1).await;
    sleep(ms(310)).await;
    let leaders = hand.claim(9).await;
    hand.fail(&leaders, FailureOutcome::Dead).await;
    sleep(LOOKS_AFTER).await;
    let leaders = hand.claim(9).await;
    let alone = hand.run(leaders, 0).await;
    hand.complete(&alone).await;
    for lease in &alone {
        drop(hand.broker.requeue(&lease.id).await);
    }
    // A call that died can gather again.
    let inspector = hand.actor.user.client.inspector();
    if let Ok(page) = inspector.list(APART, TaskState::Dead, None, 9).await {
        for task in page.rows {
            drop(hand.broker.requeue(&task.id).await);
        }
    }
    hand.drain().await;
}

/// Calls come back without an attempt, and after one. A claim checks a leader that still leads.
async fn come_back(hand: &mut Hand<'_>) {
    hand.gather("d", 3).await;
    let leaders = hand.claim(9).await;
    let run = hand.run(leaders, 2).await;
    hand.release(&run).await;
    drop(hand.claim(9).await);
    let leaders = hand.claim(9).await;
    let run = hand.run(leaders, 2).await;
    hand.fail(&run, FailureOutcome::Retry(ms(10))).await;
    sleep(ms(20)).await;
    drop(hand.claim(9).await);
    let leaders = hand.claim(9).await;
    sleep(LOOKS_AFTER).await;
    drop(hand.claim(9).await);
    // While a new call waits, those that have failed once fail again.
    hand.gather("d", 1).await;
    let run = hand.run(leaders, 2).await;
    hand.fail(&run, FailureOutcome::Retry(ms(10))).await;
    hand.drain().await;
}

/// An operator removes a call that waits, and two that lead.
async fn operate(hand: &mut Hand<'_>) {
    for is_delete in [false, true] {
        let key = if is_delete { "e" } else { "f" };
        let plain = Work::new(0, Kind::Lasts(0)).queue(APART);
        drop(hand.actor.user.client.submit(plain).await);
        let mut ids = hand.gather(key, 3).await;
        ids.extend(hand.gather(key, 1).await);
        let plain = hand.claim(1).await;
        hand.complete(&plain).await;
        let inspector = hand.actor.user.client.inspector();
        let mut after = None;
        for _ in 0..6 {
            let page = inspector.list(APART, TaskState::Blocked, after.as_ref(), 1).await;
            after = page.ok().and_then(|page| page.next);
            if after.is_none() {
                break;
            }
        }
        ids.sort();
        for id in ids.iter().take(2) {
            if is_delete {
                drop(hand.broker.delete_all(&hand.queue, &[id]).await);
            } else {
                drop(hand.broker.cancel(id).await);
            }
        }
        if let Some(id) = ids.last() {
            drop(inspector.explain(id).await);
        }
        hand.drain().await;
    }
}

/// A worker dies with a run.
async fn lose(hand: &mut Hand<'_>) {
    let mut lost = Hand::new(hand.actor, "lost", ms(200)).await;
    lost.gather("g", 3).await;
    let leaders = lost.claim(9).await;
    drop(lost.run(leaders, 2).await);
    // After a time in which nobody watched the leases, the first reap prolongs them. A fault may
    // have kept the run from its worker.
    for _ in 0..REAPS_MAX {
        sleep(ms(250)).await;
        drop(hand.broker.renew(&hand.queue, &hand.worker, LONG).await);
        let reaped = hand.broker.reap(&hand.queue, &hand.worker, ms(200), 128).await;
        if reaped.is_ok_and(|reaped| reaped.tasks > 0) {
            break;
        }
    }
}
