//! Tasks that wait for others, here and in another queue: they are listed, cancelled, requeued and
//! deleted, prerequisites end in each way, and relays carry the effects.

use optimus_core::{
    After, Call, Due, Error, Prerequisite, PrerequisiteFailure, QueueName, Submission, Submit,
    TaskHandle, TaskId, TaskState, platform,
};
use optimus_testkit::history::What;
use tokio::time::sleep;

use super::Actor;
use super::steps::ms;
use crate::relay;
use crate::tasks::{Kind, Work};
use crate::world::World;

use PrerequisiteFailure::{Cancel, Run};

/// Pairs of numbers of tasks. The first task of a pair begins only after the second one has
/// succeeded.
const PAIRS: [(u64, u64); 8] =
    [(2, 1), (3, 1), (4, 5), (10, 1), (14, 2), (16, 1), (23, 5), (25, 24)];

/// A call that waits.
struct Waits(Call<Work>, After);

impl Submit for Waits {
    type Output = u64;

    fn into_submission(self) -> Result<Submission, Error> {
        Ok(self.0.into_submission()?.waiting_for(self.1))
    }
}

pub(super) async fn after(actor: &Actor) {
    let names = actor.world.queues.names().to_vec();
    let (here, there) = (&names[0], &names[1]);
    let paused = actor.user.pause_queue(here).await;
    let first = some(actor.submit(1, Kind::Lasts(50)).await);
    let fatal = some(actor.submit(6, Kind::Fatal).await);
    let stopped = some(actor.submit(17, Kind::Lasts(2_000)).await);
    let wait = |id: &TaskId| After::new([Prerequisite::Task(id.clone())]);
    let second = submit(actor, 2, |call| call.priority(1), wait(&first)).await;
    drop(submit(actor, 3, |call| call.due(Due::In(ms(900))), wait(&first)).await);
    let key = Prerequisite::Key { queue: here.clone(), task: "work".into(), biz_id: "b1".into() };
    drop(submit(actor, 4, plain, After::new([key.clone()])).await);
    drop(actor.unique(5, 1).await);
    drop(submit(actor, 23, plain, After::new([key])).await);
    // A queue that has no dependants of its own.
    let far = actor.call(24, Work::new(24, Kind::Lasts(0)).queue(&names[2])).await;
    drop(submit(actor, 25, plain, wait(&some(far))).await);
    for (number, policy) in [(7, Cancel), (8, Run)] {
        drop(submit(actor, number, plain, or(policy, wait(&fatal))).await);
        let elsewhere = |call: Call<Work>| call.queue(there);
        drop(submit(actor, number + 12, elsewhere, or(policy, wait(&fatal))).await);
        drop(submit(actor, number + 14, plain, or(policy, wait(&stopped))).await);
    }
    let again = submit(actor, 9, plain, wait(&first)).await;
    drop(submit(actor, 10, |call| call.queue(there), wait(&first)).await);
    let gone = submit(actor, 11, |call| call.queue(there), wait(&first)).await;
    let deleted = submit(actor, 12, plain, wait(&first)).await;
    drop(submit(actor, 13, plain, or(Cancel, wait(&some(deleted.clone())))).await);
    drop(submit(actor, 14, plain, wait(&some(second))).await);
    circle(actor, here, there).await;
    operate(actor, [(9, again), (11, gone), (12, deleted)]).await;
    if paused {
        actor.user.resume_queue(here).await;
    }
    relay_some(actor, &names, 0).await;
    reask(actor, here, SILENT_MS).await;
    relay_some(actor, &names, 0).await;
    actor.user.cancel_task(17, &stopped).await;
    sleep(ms(500)).await;
    relay_some(actor, &names, 0).await;
    // Prerequisites that have ended before.
    drop(submit(actor, 15, plain, or(Cancel, wait(&fatal))).await);
    let last = submit(actor, 16, |call| call.queue(there), wait(&first)).await;
    drop(submit(actor, 18, plain, wait(&first)).await);
    // Some tasks ask again before a relay has carried the effects.
    reask(actor, there, 61_000).await;
    relay_some(actor, &names, 0).await;
    actor.wait_for(16, last).await;
    relay_some(actor, &names, ASKED_MS).await;
}

/// After this time, all have asked again and have given up.
const ASKED_MS: u64 = 3_600_000;
/// After this time, a queue asks whether tasks elsewhere still wait.
const SILENT_MS: u64 = 11_000_000;

fn some(handle: Option<TaskHandle<u64>>) -> TaskId {
    let unknown = || TaskId::new(crate::queues::queue());
    handle.map_or_else(unknown, |handle| handle.id().clone())
}

fn or(policy: PrerequisiteFailure, mut wait: After) -> After {
    wait.on_failure = policy;
    wait
}

fn plain(call: Call<Work>) -> Call<Work> {
    call
}

/// Each gives up at some time, because a fault may keep its prerequisite from being submitted.
async fn submit(
    actor: &Actor,
    number: u64,
    change: impl FnOnce(Call<Work>) -> Call<Work>,
    mut wait: After,
) -> Option<TaskHandle<u64>> {
    wait.give_up_after = Some(ms(1_800_000));
    let call = change(Work::new(number, Kind::Lasts(0)));
    actor.user.network.journal.write(actor.user.process, What::Waits { task: number });
    actor.call(number, Waits(call, wait)).await
}

/// Cancels two tasks that wait and requeues the first, deletes the third, and reads the others.
async fn operate(actor: &Actor, tasks: [(u64, Option<TaskHandle<u64>>); 3]) {
    let [again, gone, deleted] = tasks;
    if let (number, Some(handle)) = again {
        actor.user.cancel_task(number, handle.id()).await;
        actor.user.requeue_task(number, handle.id()).await;
    }
    if let (number, Some(handle)) = gone {
        actor.user.cancel_task(number, handle.id()).await;
    }
    if let (number, Some(handle)) = deleted {
        actor.user.delete_tasks(&[(number, handle.id().clone())]).await;
    }
    let inspector = actor.user.client.inspector();
    let (queue, mut from) = (crate::queues::queue(), None);
    for _ in 0..3 {
        let listed = inspector.list(&queue, TaskState::Blocked, from.as_ref(), 4);
        let Ok(page) = listed.await else { break };
        from = page.next;
        if from.is_none() {
            break;
        }
    }
}

/// Two tasks that would wait for each other: the later one is refused. A third one waits elsewhere
/// for a biz id that no task gets.
async fn circle(actor: &Actor, here: &QueueName, there: &QueueName) {
    let key = |biz: &str| {
        let (queue, task) = (here.clone(), "work".into());
        After::new([Prerequisite::Key { queue, task, biz_id: biz.into() }])
    };
    drop(submit(actor, 26, |call| call.biz_id("c1"), key("c2")).await);
    drop(submit(actor, 27, |call| call.biz_id("c2"), key("c1")).await);
    drop(submit(actor, 28, |call| call.queue(there), key("c2")).await);
}

async fn reask(actor: &Actor, queue: &QueueName, ahead_ms: u64) {
    let now_ms = platform::now_ms() + ahead_ms;
    drop(actor.user.client.broker().at(now_ms).reask(queue).await);
}

/// A relay works for a short time, as if it were this many ms later.
pub(super) async fn relay_some(actor: &Actor, queues: &[QueueName], ahead_ms: u64) {
    for _ in 0..6 {
        relay::turn(&actor.user.client, queues, ahead_ms).await;
        sleep(ms(50)).await;
    }
}

/// Checks that tasks began after the tasks that they waited for. A rolled back store may have lost
/// an end.
pub(super) fn check(world: &World) {
    let journal = &world.network.journal;
    if journal.was_rolled_back() {
        return;
    }
    let events = journal.events();
    for (task, first) in PAIRS {
        let at = |is: &dyn Fn(&What) -> bool| events.iter().position(|event| is(&event.what));
        let begun = at(&|what| matches!(what, What::Begin { task: t, .. } if *t == task));
        let ended = at(&|what| matches!(what, What::End { task: t, .. } if *t == first));
        if begun.is_some_and(|begun| ended.is_none_or(|ended| begun < ended)) {
            world.network.complain(format!("task {task} began before {first} had ended"));
        }
    }
}
