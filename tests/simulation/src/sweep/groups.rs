//! Results that are handed on, and groups: members succeed, die and come back, here and in another
//! queue, and groups end, are cancelled, or are forgotten. A chain with a group in it is submitted
//! twice.

use optimus_core::{
    After, Call, Due, Error, Member, Prerequisite, PrerequisiteFailure, QueueName, Submission,
    Submit, TaskHandle, TaskId,
    broker::{Enroll, Keep},
    group, platform,
};
use optimus_testkit::history::What;
use tokio::time::sleep;

use super::Actor;
use super::after::relay_some;
use super::steps::ms;
use crate::tasks::{Kind, Work};

use PrerequisiteFailure::{Cancel, Run, Wait};

/// How long groups are kept, in ms. Tasks that wait give up before.
const KEEP_MS: u64 = 5_000_000;

/// A call that takes a result, or counts in a group.
struct Flows {
    call: Call<Work>,
    takes: Option<(After, String)>,
    member: Option<Member>,
}

impl Submit for Flows {
    type Output = u64;

    fn into_submission(self) -> Result<Submission, Error> {
        let mut submission = self.call.into_submission()?;
        if let Some((after, arguments)) = self.takes {
            submission = submission.waiting_for(after.taking("}")).with_payload(arguments.into());
        }
        Ok(match self.member {
            Some(member) => submission.member_of(member),
            None => submission,
        })
    }
}

pub(super) async fn groups(actor: &Actor) {
    let names = actor.world.queues.names().to_vec();
    let (here, there) = (&names[0], &names[1]);
    let paused = actor.user.pause_queue(here).await;
    let first = id_of(actor.submit(1, Kind::Lasts(50)).await);
    // Arguments that become large with the result, and arguments that are large before.
    for (number, bytes) in [(2, 0), (3, 16_325), (4, 20_000)] {
        take(actor, number, here, &first, bytes).await;
    }
    take(actor, 5, there, &first, 0).await;
    let [all, single, far, gone, open] = std::array::from_fn(|_| TaskId::new(here.clone()));
    // A group in a queue that has no dependants.
    enroll(actor, &TaskId::new(names[2].clone()), "all", 0, Seal::Now).await;
    for (group, count, seal) in [
        (&all, 4, Seal::Later),
        (&single, 1, Seal::Now),
        (&far, 1, Seal::Now),
        (&gone, 1, Seal::Now),
        (&open, 1, Seal::Now),
    ] {
        enroll(actor, group, "all", count, seal).await;
        enroll(actor, group, "all", count, seal).await;
    }
    for (number, group) in [(20, &all), (21, &single), (22, &far), (23, &gone), (24, &open)] {
        take(actor, number, here, group, 0).await;
    }
    take(actor, 25, there, &all, 0).await;
    let back = member(actor, (10, Kind::Lasts(0)), here, (&all, 0, Wait)).await;
    let back_there = later_member(actor, 11, there, (&all, 1, Wait)).await;
    drop(member(actor, (12, Kind::Fatal), here, (&all, 2, Run)).await);
    drop(member(actor, (13, Kind::Lasts(0)), here, (&all, 3, Cancel)).await);
    drop(member(actor, (14, Kind::Lasts(0)), here, (&single, 0, Wait)).await);
    drop(member(actor, (15, Kind::Lasts(0)), there, (&far, 0, Wait)).await);
    drop(member(actor, (16, Kind::Fatal), there, (&gone, 0, Cancel)).await);
    for (number, id) in [(10, &back), (11, &back_there)] {
        actor.user.cancel_task(number, id).await;
    }
    relay_some(actor, &names, 0).await;
    for (number, id) in [(10, &back), (11, &back_there)] {
        actor.user.requeue_task(number, id).await;
    }
    if paused {
        actor.user.resume_queue(here).await;
    }
    sleep(ms(300)).await;
    relay_some(actor, &names, 0).await;
    enroll(actor, &all, "seal", 0, Seal::Now).await;
    relay_some(actor, &names, 0).await;
    enroll(actor, &all, "late", 1, Seal::Now).await;
    // What they wait for has ended before.
    take(actor, 6, here, &first, 0).await;
    take(actor, 7, there, &all, 0).await;
    let cancelled = TaskId::new(here.clone());
    enroll(actor, &cancelled, "all", 1, Seal::Now).await;
    take(actor, 26, here, &cancelled, 0).await;
    drop(actor.user.client.broker().disband(&cancelled).await);
    let removed = TaskId::new(here.clone());
    enroll_under(actor, &removed, "all", (1, Seal::Now), Cancel).await;
    take(actor, 27, here, &removed, 0).await;
    drop(actor.user.client.broker().forget_group(&removed).await);
    chain(actor, here, there).await;
    relay_some(actor, &names, 0).await;
    forget_old(actor, here).await;
    relay_some(actor, &names, GIVEN_UP_MS).await;
}

/// Submits a chain with a group in it, and again while it runs. A fault may end each submit midway.
async fn chain(actor: &Actor, here: &QueueName, there: &QueueName) {
    let id = TaskId::new(here.clone());
    let work = |number, queue: &QueueName| {
        Work::new(number, Kind::Lasts(0)).queue(queue).give_up_after(ms(1_800_000))
    };
    let flow = || {
        let members = group([work(41, here), work(42, there)]).id(id.clone());
        let first = Work::new(40, Kind::Lasts(0)).queue(here);
        first.then(members.result_ttl(ms(KEEP_MS))).then(work(43, there))
    };
    (40..44).for_each(|number| actor.user.invoke(number, None, 0));
    for _ in 0..2 {
        drop(actor.user.client.submit_flow(flow()).await);
    }
    for task in 40..44 {
        let outcomes = [What::Unknown { task }, What::Delete { task }, What::Cancel { task }];
        for what in outcomes.into_iter().chain([What::Waits { task }]) {
            actor.user.network.journal.write(actor.user.process, what);
        }
    }
    sleep(ms(300)).await;
}

/// A time after which all that wait have given up.
const GIVEN_UP_MS: u64 = 3_600_000;

fn id_of(handle: Option<TaskHandle<u64>>) -> TaskId {
    let unknown = || TaskId::new(crate::queues::queue());
    handle.map_or_else(unknown, |handle| handle.id().clone())
}

/// Whether an addition is the last one that its group needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seal {
    Now,
    Later,
}

async fn enroll(actor: &Actor, group: &TaskId, operation: &str, count: u32, seal: Seal) {
    enroll_under(actor, group, operation, (count, seal), Wait).await;
}

async fn enroll_under(
    actor: &Actor,
    group: &TaskId,
    operation: &str,
    (count, seal): (u32, Seal),
    on_failure: PrerequisiteFailure,
) {
    let queues = actor.world.queues.names().to_vec();
    let (keep, digest, submit, is_later) = (Some(ms(KEEP_MS)), "", "", false);
    let (queues, seal) = (&queues[..], seal == Seal::Now);
    let members =
        Enroll { operation, count, queues, seal, keep, on_failure, digest, submit, is_later };
    drop(actor.user.client.broker().enroll(group, members).await);
}

/// Submits a task that takes the result of another one, and has arguments of this many bytes
/// besides.
async fn take(actor: &Actor, number: u64, queue: &QueueName, of: &TaskId, bytes: usize) {
    let mut after = After::new([Prerequisite::Task(of.clone())]);
    after.on_failure = Cancel;
    after.give_up_after = Some(ms(1_800_000));
    let padding = "x".repeat(bytes);
    let arguments = format!(
        "{{\"number\":{number},\"kind\":{{\"Lasts\":0}},\"padding\":\"{padding}\",\"input\":"
    );
    let call = Work::new(number, Kind::Lasts(0)).queue(queue);
    actor.user.network.journal.write(actor.user.process, What::Waits { task: number });
    let flows = Flows { call, takes: Some((after, arguments)), member: None };
    drop(actor.call(number, flows).await);
}

async fn member(
    actor: &Actor,
    (number, kind): (u64, Kind),
    queue: &QueueName,
    (group, index, on_failure): (&TaskId, u32, PrerequisiteFailure),
) -> TaskId {
    let member = Some(Member { group: group.clone(), index, on_failure });
    let call = Work::new(number, kind).queue(queue);
    id_of(actor.call(number, Flows { call, takes: None, member }).await)
}

/// A member that can be cancelled before it starts.
async fn later_member(
    actor: &Actor,
    number: u64,
    queue: &QueueName,
    (group, index, on_failure): (&TaskId, u32, PrerequisiteFailure),
) -> TaskId {
    let member = Some(Member { group: group.clone(), index, on_failure });
    let call = Work::new(number, Kind::Lasts(0)).queue(queue).due(Due::In(ms(60_000)));
    id_of(actor.call(number, Flows { call, takes: None, member }).await)
}

/// Removes old groups. Those who still wait for one learn of it.
async fn forget_old(actor: &Actor, queue: &QueueName) {
    let now_ms = platform::now_ms();
    let keep = Keep { age: ms(u64::MAX >> 12), ..Keep::DEFAULT };
    let broker = actor.user.client.broker().at(now_ms + KEEP_MS + 60_000);
    drop(broker.purge(queue, keep, ms(u64::MAX >> 12)).await);
}
