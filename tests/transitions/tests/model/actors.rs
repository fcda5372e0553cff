//! The clients, workers and operators of one queue: what each remembers, and which call it makes
//! for a step.

use std::{collections::BTreeMap, num::NonZeroU16, time::Duration};

use optimus_core::{
    After, Lane, OnLost, Prerequisite, PrerequisiteFailure, QueueName, TaskId, WorkerId,
    broker::{BATCH_MAX, LEDGER_SLOTS},
};

use crate::{
    answer::Answer,
    call::{Call, DueMs, SubmitCall, Wait, Wanted},
    granted_tasks::Holds,
    lanes::{blocking, lane},
    reference::{Place, Queue},
    step::{Aim, Kind, Pick, Plan, Step},
};

/// How often a client asks to keep its ledger for another day.
const KEEP_EVERY_MS: u64 = 6 * 60 * 60 * 1000;

/// The maximum number of other tasks that a wait also reads.
const ALONG_MAX: usize = 5;

/// The biz window of tasks that have one.
const WINDOW_MS: u64 = 60 * 60 * 1000;

/// The age of version 7 ids that a program made before the submit.
const STALE_MS: u64 = 60_000;

/// How far each client's clock is ahead of that of Redis. Up to a second counts as no difference.
const AHEAD_MS: [i64; 3] = [0, -900, 3_600_000];

/// All callers of one queue.
pub(crate) struct Actors {
    queue: QueueName,
    clients: [Client; 3],
    workers: [Worker; 12],
    /// Every task that was submitted, in order.
    pub(crate) tasks: Vec<TaskId>,
    /// The call, and its client, that stored a task, if the call was answered.
    calls: BTreeMap<TaskId, (String, u64)>,
    holds: Holds,
}

#[derive(Default)]
struct Client {
    last_number: u64,
    /// The last answered call of each slot.
    answered: BTreeMap<u64, u64>,
    kept_at: Option<u64>,
}

struct Worker {
    id: WorkerId,
    starts: u32,
    last_seq: u64,
}

impl Actors {
    pub(crate) fn new(queue: QueueName) -> Self {
        let worker =
            |name: &str| Worker { id: WorkerId::from_stored(name), starts: 1, last_seq: 0 };
        let workers = std::array::from_fn(|number| worker(&format!("w{number}")));
        Self {
            queue,
            clients: Default::default(),
            workers,
            tasks: vec![],
            calls: BTreeMap::new(),
            holds: Holds::default(),
        }
    }

    /// Makes the call for a step at this point; `None` if the step makes none.
    pub(crate) fn call(&mut self, now: u64, step: &Step, reference: &Queue) -> Option<Call> {
        let call = match *step {
            Step::Submit { client, lost, ref plans, .. } => {
                self.submit(now, client, lost, plans, reference)
            }
            // A worker that has lapsed usually registers before it claims again.
            Step::Claim { worker, want, .. }
                if want > 0 && !reference.workers.contains_key(&self.worker(worker)) =>
            {
                let lease_ms = if want % 2 == 0 { 15_000 } else { 4_000 };
                Call::Register { worker: self.restart(worker, reference), lease_ms }
            }
            Step::Claim { worker, want, .. } => self.claim(worker, usize::from(want)),
            Step::ClaimAgain { worker, .. } => {
                let worker = &self.workers[usize::from(worker)];
                if worker.last_seq == 0 {
                    return None;
                }
                let (worker, seq) = (worker.id.clone(), worker.last_seq);
                Call::Claim { worker, seq, want: 3, alone: false }
            }
            Step::Complete { worker, ref picks, .. } => {
                self.holds.complete(now, self.busy(worker, reference), picks, reference)?
            }
            Step::Fail { worker, ref picks, .. } => {
                self.holds.fail(self.busy(worker, reference), picks, reference)?
            }
            Step::Release { worker, ref picks, .. } => {
                self.holds.release(self.busy(worker, reference), picks, reference)?
            }
            Step::Register { worker, lease_ms, .. } => {
                Call::Register { worker: self.restart(worker, reference), lease_ms }
            }
            Step::Renew { worker, lease_ms, .. } => {
                Call::Renew { worker: self.worker(worker), lease_ms }
            }
            Step::Reap { worker, limit, .. } => {
                let (worker, limit) = (self.worker(worker), usize::from(limit));
                Call::Reap { worker, lease_ms: 15_000, limit }
            }
            Step::Leave { worker, .. } => Call::Leave { worker: self.worker(worker) },
            Step::Cancel { ref tasks, aim, .. } => {
                let aimed = tasks.iter().map(|task| self.aimed(*task, aim, reference));
                Call::Cancel { ids: aimed.collect::<Option<_>>()? }
            }
            Step::Requeue { task, aim, .. } => {
                Call::Requeue { id: self.aimed(task, aim, reference)? }
            }
            Step::Pause { paused, .. } => Call::Pause { paused },
            Step::Resize { lane, width, .. } => resize(lane, width),
            Step::Delete { ref tasks, aim, .. } => {
                let aimed = tasks.iter().map(|task| self.aimed(*task, aim, reference));
                Call::Delete { ids: aimed.collect::<Option<_>>()? }
            }
            Step::Purge { keep, .. } => Call::Purge { keep },
            Step::Retire { idle_ms, .. } => Call::Retire { idle_ms },
            Step::Await { task, client, .. } => {
                self.wait(self.aimed(task, Aim::Any, reference)?, client)
            }
            Step::Inspect { task, .. } => {
                Call::Inspect { id: self.aimed(task, Aim::Any, reference)? }
            }
            Step::Read { .. } => Call::Read,
            Step::Relay { .. } => relay(reference)?,
            Step::Reask { .. } => Call::Reask,
            _ => return None,
        };
        Some(call)
    }

    fn wait(&self, id: TaskId, client: u8) -> Call {
        let stored_by = self.calls.get(&id).cloned();
        if client == 2 {
            return Call::State { id, stored_by };
        }
        let along = self.along(&id, stored_by.as_ref());
        Call::Await(Wait { id, client: client_name(client), stored_by, along })
    }

    fn claim(&mut self, worker: u8, want: usize) -> Call {
        let worker = &mut self.workers[usize::from(worker)];
        worker.last_seq += 1;
        let seq = worker.last_seq;
        let alone = want == 1 && seq.is_multiple_of(2);
        Call::Claim { worker: worker.id.clone(), seq, want, alone }
    }

    /// Returns the report that all tasks which a worker holds succeeded.
    pub(crate) fn complete_all(
        &self,
        now: u64,
        worker: &WorkerId,
        reference: &Queue,
    ) -> Option<Call> {
        let held = reference.workers.get(worker).map_or(0, |worker| worker.holds.len());
        let count = u16::try_from(held).expect("a claim is not that large");
        let picks: Vec<Pick> = (0..count).map(Pick::Held).collect();
        self.holds.complete(now, worker.clone(), &picks, reference)
    }

    /// Records the facts that a caller learns from an answer.
    pub(crate) fn learn(&mut self, call: &Call, answer: &Answer) {
        if let Call::Submit(submit_call) = call {
            let mut clients = self.clients.iter_mut().zip(0..);
            let client = clients.find(|(_, index)| client_name(*index) == submit_call.client);
            let (client, _) = client.expect("the model has the client");
            match answer {
                Answer::Receipts(owners, _) => {
                    let answered =
                        client.answered.entry(submit_call.number % LEDGER_SLOTS).or_default();
                    *answered = submit_call.number.max(*answered);
                    for (wanted, _) in
                        submit_call.tasks.iter().zip(owners).filter(|(_, o)| o.is_none())
                    {
                        let stored_by = (submit_call.client.clone(), submit_call.number);
                        self.calls.insert(wanted.id.clone(), stored_by);
                    }
                }
                _ if submit_call.keep => client.kept_at = None,
                _ => {}
            }
        }
        if let (Call::Claim { worker, .. }, Answer::Granted(granted)) = (call, answer) {
            self.holds.add(worker, granted);
        }
    }

    /// Returns the current id of a worker.
    pub(crate) fn worker(&self, worker: u8) -> WorkerId {
        self.workers[usize::from(worker)].id.clone()
    }

    /// Returns the worker, or another one if only that holds tasks.
    pub(crate) fn busy(&self, worker: u8, reference: &Queue) -> WorkerId {
        let mut others = (0..3).map(|step| self.worker((worker + step) % 3));
        let holds = |id: &WorkerId| reference.workers.get(id).is_some_and(|w| !w.holds.is_empty());
        others.find(holds).unwrap_or_else(|| self.worker(worker))
    }

    /// Gives a worker that was reaped or has left a new id.
    fn restart(&mut self, worker: u8, reference: &Queue) -> WorkerId {
        let index = worker;
        let worker = &mut self.workers[usize::from(worker)];
        if worker.last_seq > 0 && !reference.workers.contains_key(&worker.id) {
            worker.id = WorkerId::from_stored(&format!("w{index}-{}", worker.starts));
            worker.starts += 1;
            worker.last_seq = 0;
        }
        worker.id.clone()
    }

    fn submit(
        &mut self,
        now: u64,
        client: u8,
        lost: u8,
        plans: &[Plan],
        reference: &Queue,
    ) -> Call {
        let ahead_ms = AHEAD_MS[usize::from(client)];
        let here = now.checked_add_signed(ahead_ms).expect("the clocks are close");
        let tasks: Vec<Wanted> =
            plans.iter().map(|plan| self.wanted(now, here, plan, reference)).collect();
        let name = client_name(client);
        let client = &mut self.clients[usize::from(client)];
        client.last_number += u64::from(lost) + 1;
        let keep = client.kept_at.is_none_or(|kept| now.abs_diff(kept) > KEEP_EVERY_MS);
        if keep {
            client.kept_at = Some(now);
        }
        let number = client.last_number;
        let since = client.answered.get(&(number % LEDGER_SLOTS)).copied().unwrap_or(0);
        Call::Submit(SubmitCall { client: name, ahead_ms, number, since, keep, tasks })
    }

    fn wanted(&mut self, now: u64, here: u64, plan: &Plan, reference: &Queue) -> Wanted {
        let stored = reference.tasks.len().max(1);
        let again = plan.again.and_then(|at| reference.tasks.keys().nth(usize::from(at) % stored));
        let made = match (plan.foreign, self.tasks.len()) {
            (false, count) => made_id(&self.queue, 7, here, count),
            (true, count) if count % 2 == 0 => made_id(&self.queue, 7, here - STALE_MS, count),
            // The id gets random bits instead of its time.
            (true, count) => made_id(&self.queue, 4, here << (count % 7), count),
        };
        let id = again.cloned().unwrap_or(made);
        let after = self.after(&id, plan);
        if again.is_none() {
            self.tasks.push(id.clone());
        }
        let due = match plan.due {
            None => DueMs::Now,
            Some((ms, true)) => DueMs::At(now.saturating_add_signed(ms)),
            Some((ms, false)) => DueMs::In(ms.unsigned_abs()),
        };
        Wanted {
            id,
            fragile: plan.kind == Kind::Fragile,
            due,
            priority: plan.priority,
            biz: plan.biz.map(|biz| format!("b{biz}")),
            lane: plan.lane.map(lane_of),
            after,
            window_ms: (plan.window && plan.biz.is_some()).then_some(WINDOW_MS),
            on_lost: if plan.kind == Kind::AtMostOnce { OnLost::Dead } else { OnLost::Retry },
            expires_in_ms: plan.expires.then_some(60_000),
            large: plan.kind == Kind::Large,
            given: again.is_some() || plan.foreign,
        }
    }

    /// The wait for one or two other tasks, by their ids or by a biz id.
    fn after(&self, id: &TaskId, plan: &Plan) -> Option<After> {
        let (first, second, policy, give_up) = plan.after?;
        let one = |choice: u16| {
            if self.tasks.is_empty() || choice.is_multiple_of(4) {
                let (queue, biz_id) = (self.queue.clone(), format!("b{}", choice / 4 % 4));
                return Prerequisite::Key { queue, task: "job".into(), biz_id };
            }
            // Mostly tasks that were submitted recently.
            let near = usize::from(choice) % self.tasks.len().min(12);
            Prerequisite::Task(self.tasks[self.tasks.len() - 1 - near].clone())
        };
        let all = std::iter::once(first).chain(second).map(one);
        let own = plan.biz.map(|biz| format!("b{biz}"));
        let is_itself = |one: &Prerequisite| match one {
            Prerequisite::Task(other) => other == id,
            Prerequisite::Key { biz_id, .. } => Some(biz_id) == own.as_ref(),
        };
        let mut after = After::new(all.filter(|one| !is_itself(one)));
        after.on_failure =
            [PrerequisiteFailure::Wait, PrerequisiteFailure::Cancel, PrerequisiteFailure::Run]
                [usize::from(policy)];
        after.give_up_after = give_up.map(Duration::from_millis);
        (!after.prerequisites.is_empty()).then_some(after)
    }

    /// Tasks that the same client submitted after this one.
    fn along(&self, id: &TaskId, stored_by: Option<&(String, u64)>) -> Vec<(TaskId, u64)> {
        let later = self.tasks.iter().skip_while(|task| *task != id).skip(1);
        let calls = later.filter_map(|task| Some((task, self.calls.get(task)?)));
        let theirs = calls.filter(|(_, (client, _))| stored_by.is_some_and(|by| by.0 == *client));
        theirs.take(ALONG_MAX).map(|(task, (_, number))| (task.clone(), *number)).collect()
    }

    fn aimed(&self, task: u16, aim: Aim, reference: &Queue) -> Option<TaskId> {
        let fits = |id: &&TaskId| match (aim, reference.tasks.get(*id).map(|task| task.place)) {
            (Aim::Ended, place) => matches!(place, Some(Place::Dead(_) | Place::Cancelled(_))),
            (Aim::Live, place) => {
                !matches!(place, None | Some(Place::Dead(_) | Place::Cancelled(_)))
            }
            (Aim::Any, _) => true,
        };
        let mut among: Vec<&TaskId> = self.tasks.iter().filter(fits).collect();
        if among.is_empty() {
            among = self.tasks.iter().collect();
        }
        among.get(usize::from(task) % among.len().max(1)).map(|id| (*id).clone())
    }
}

/// The first effects of the queue on itself.
pub(crate) fn relay(reference: &Queue) -> Option<Call> {
    let effects = reference.outbox.effects.iter().take(BATCH_MAX);
    let effects: Vec<_> = effects.map(|(number, effect)| format!("{number} {effect}")).collect();
    (!effects.is_empty()).then_some(Call::Apply { effects })
}

fn resize(lane: u8, width: u16) -> Call {
    Call::Resize { lane: lane_of(lane).key, width: NonZeroU16::new(width) }
}

/// A lane that a dead task blocks, one of each width up to 3, and one for few tasks.
fn lane_of(number: u8) -> Lane {
    match number {
        0 => blocking("l 0"),
        number => lane(&format!("l{number}"), u16::from(number.min(3))),
    }
}

pub(crate) fn client_name(client: u8) -> String {
    format!("c{client}")
}

/// Returns an id that a client with this clock makes, the same in every run. Its other bits have no
/// order, so that equal times are not sorted by age.
pub(crate) fn made_id(queue: &QueueName, version: u8, here_ms: u64, count: usize) -> TaskId {
    let rest = (count as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (high, low) = (here_ms >> 16 & 0xffff_ffff, here_ms & 0xffff);
    let (a, b, c) = (rest & 0xfff, rest >> 12 & 0x3fff, rest >> 16);
    let uuid = format!("{high:08x}-{low:04x}-{version}{a:03x}-{:04x}-{c:012x}", 0x8000 | b);
    format!("{queue}/{uuid}").parse().expect("a uuid")
}
