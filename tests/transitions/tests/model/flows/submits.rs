//! What clients submit: tasks with limits, calls that run together, and groups.

use optimus_core::{
    After, Due, Gather, Member, Prerequisite,
    PrerequisiteFailure::{self, Cancel, Run, Wait},
    QueueName, Submission, TaskId, TaskLimit, TaskRecord, TaskState,
    broker::{Enroll, Enrolled},
};

use crate::{
    bench::START,
    jobs::{job, job_of, ready_at},
    limits::{a_second, at_most},
};

use super::{
    groups::Group,
    reference::{self, Departure, Task},
    run::FlowRun,
    step::{Callback, Step},
};

/// How long groups are kept: longer than a run.
const KEPT_MS: u64 = 1 << 40;
/// How long calls that run together wait, and how many of them run at once.
const RUN_WAIT_MS: u64 = 2_000;
pub(crate) const RUN_MAX: u32 = 3;

/// The limits that tasks share: none, one, one within another, and two rates.
fn limits_of(at: usize) -> Vec<TaskLimit> {
    match at {
        0 => vec![],
        1 => vec![a_second("a", 10, 3)],
        2 => vec![at_most("b", 2)],
        3 => vec![at_most("b", 2), a_second("a", 10, 3)],
        4 => vec![a_second("c", 1, 1), at_most("b", 2)],
        5 => vec![a_second("a", 10, 3), a_second("d", 10, 3)],
        6 => vec![a_second("d", 10, 3)],
        _ => vec![a_second("c", 1, 1)],
    }
}

fn policy_of(at: usize) -> PrerequisiteFailure {
    [Wait, Cancel, Run][at]
}

impl FlowRun<'_> {
    /// A job that is submitted now.
    fn new_job(&mut self, queue: usize) -> Submission {
        let id = self.new_id(queue);
        ready_at(self.now, job().queue(&self.benches[queue].queue)).with_id(id)
    }

    pub(crate) async fn submit(&mut self, step: &Step) -> Result<(), Departure> {
        let mut tasks = Vec::new();
        let at = match *step {
            Step::Submit { queue, limits, cost, count, delay_ms } => {
                for _ in 0..count {
                    let mut task = Task::new(queue, self.now + delay_ms);
                    (task.limits, task.cost) = (limits_of(limits), cost);
                    let delay = Due::In(Self::wait(delay_ms));
                    let call = job().queue(&self.benches[queue].queue).cost(cost).due(delay);
                    let id = self.new_id(queue);
                    let sent = ready_at(self.now, call).with_id(id);
                    tasks.push((sent.limited_by(limits_of(limits)), task));
                }
                queue
            }
            Step::Gathered { queue, key, count } => {
                let limits = if key == 2 { limits_of(2) } else { vec![] };
                let (by, wait) = (format!("k {key}"), Self::wait(RUN_WAIT_MS));
                let gather = Gather { by, wait, max: RUN_MAX };
                for _ in 0..count {
                    let mut task = Task::new(queue, self.now);
                    (task.limits, task.gather) = (limits.clone(), Some(gather.clone()));
                    let sent = self.new_job(queue).gathered(gather.clone());
                    tasks.push((sent.limited_by(limits.clone()), task));
                }
                queue
            }
            _ => return Ok(()),
        };
        let sent: Vec<Submission> = tasks.iter().map(|(sent, _)| sent.clone()).collect();
        self.send(at, &sent).await?;
        for (sent, task) in tasks {
            self.world.add(sent.id().clone(), task);
        }
        Ok(())
    }

    pub(crate) async fn act_on_groups(&mut self, step: &Step) -> Result<(), Departure> {
        let count = self.world.groups.len().max(1);
        match *step {
            Step::Group { queue, members, places, policy, limits, callback } => {
                let id = self.new_id(queue);
                self.world.groups.push(Group::new(id, queue, policy_of(policy)));
                let group = self.world.groups.len() - 1;
                if places & 1 == 0 {
                    self.add_callback(group, callback).await?;
                }
                // Some groups are sealed later.
                let name = if members > 2 { "first" } else { "first and last" };
                self.add_members(group, (name, members), places, limits).await?;
                if places & 1 == 1 {
                    self.add_callback(group, callback).await?;
                }
                Ok(())
            }
            Step::Seal { group, members, places } if !self.world.groups.is_empty() => {
                let group = group % count;
                if self.world.groups[group].is_sealed {
                    return Ok(());
                }
                self.add_members(group, ("last", members), places, 0).await
            }
            Step::Again { group } if !self.world.groups.is_empty() => {
                self.add_again(group % count).await
            }
            Step::Disband { group } if !self.world.groups.is_empty() => {
                self.disband(group % count).await
            }
            _ => Ok(()),
        }
    }

    /// Cancels a group that has not ended.
    pub(crate) async fn disband(&mut self, group: usize) -> Result<(), Departure> {
        let now = self.now;
        let group = &mut self.world.groups[group];
        let broker = self.benches[group.queue].at(now);
        broker.disband(&group.id).await.map_err(|problem| format!("{problem:?}"))?;
        // A group that has ended only by what relays have yet to carry is cancelled, too.
        group.ended = group.ended.or(Some(TaskState::Cancelled));
        Ok(())
    }

    async fn enroll(
        &self,
        group: usize,
        (name, count): (&str, u32),
        queues: &[QueueName],
    ) -> Result<Enrolled, Departure> {
        let known = &self.world.groups[group];
        let members = Enroll {
            operation: name,
            count,
            queues,
            seal: name.ends_with("last"),
            keep: Some(Self::wait(KEPT_MS)),
            on_failure: known.policy,
            digest: "",
            submit: "",
            is_later: false,
        };
        let answer = self.benches[known.queue].at(self.now).enroll(&known.id, members).await;
        answer.map_err(|problem| format!("an addition fails: {problem:?}"))
    }

    /// Adds members to a group, each in the queue of its bit.
    async fn add_members(
        &mut self,
        group: usize,
        (name, count): (&str, usize),
        places: u8,
        limits: usize,
    ) -> Result<(), Departure> {
        let count = u32::try_from(count).expect("a few");
        let queues = [0, 1].map(|queue| self.benches[queue].queue.clone());
        let answer = self.enroll(group, (name, count), &queues).await?;
        let known = &mut self.world.groups[group];
        let expected = match known.ended {
            Some(state) => Enrolled::Ended(state),
            None => Enrolled::Added {
                first: known.total,
                total: known.total + count,
                is_new: true,
                posted: matches!(answer, Enrolled::Added { posted: true, .. }),
                born: *known.born.get_or_insert(START + self.now),
            },
        };
        if answer != expected {
            return Err(format!("an addition answers {answer:?}, not {expected:?}"));
        }
        if known.ended.is_some() {
            return Ok(());
        }
        let first = known.total;
        known.first = if first == 0 && known.first == 0 { count } else { known.first };
        known.total += count;
        known.is_sealed |= name.ends_with("last");
        known.end_if_done();
        let (id, on_failure) = (known.id.clone(), known.policy);
        for index in first..first + count {
            let queue = usize::from(places >> (index % 8) & 1 == 1);
            let own = Member::id(&id, &queues[queue], index);
            let task = ready_at(self.now, job().queue(&queues[queue])).with_id(own.clone());
            let member = Member { group: id.clone(), index, on_failure };
            let sent = task.member_of(member).limited_by(limits_of(limits));
            self.send(queue, &[sent]).await?;
            let mut task = Task::new(queue, self.now);
            task.limits = limits_of(limits);
            task.member = Some((group, index));
            self.world.add(own, task);
        }
        Ok(())
    }

    /// Repeats the first addition to a group, which adds nothing. A cancelled group is not open.
    async fn add_again(&mut self, group: usize) -> Result<(), Departure> {
        let known = &self.world.groups[group];
        let (first, total) = (known.first, known.total);
        let name = if first > 2 { "first" } else { "first and last" };
        let born = known.born.expect("a first addition");
        // The first answer may be lost, so a repetition tells what is left for a relay.
        let home = self.benches.iter().find(|bench| bench.queue == *known.id.queue());
        let home = home.expect("one of the queues");
        let left = home.now().outgoing(&home.queue).await.map_err(|why| why.to_string())?;
        let answer = self.enroll(group, (name, first), &[]).await?;
        let posted = !left.is_empty();
        let expected = match self.world.groups[group].ended {
            Some(TaskState::Cancelled) => Enrolled::Ended(TaskState::Cancelled),
            _ => Enrolled::Added { first: 0, total, is_new: false, posted, born },
        };
        if answer == expected { Ok(()) } else { Err(format!("a repetition answers {answer:?}")) }
    }

    /// Submits a task that takes the results of a group.
    async fn add_callback(&mut self, group: usize, callback: Callback) -> Result<(), Departure> {
        let Callback { queue, policy, delay_ms } = callback;
        let mut after = After::new([Prerequisite::Task(self.world.groups[group].id.clone())]);
        after.on_failure = policy_of(policy);
        let id = self.new_id(queue);
        let delay = Due::In(Self::wait(delay_ms));
        let call = job_of("[]").queue(&self.benches[queue].queue).due(delay);
        let sent = ready_at(self.now, call).with_id(id.clone()).waiting_for(after.taking("]"));
        self.send(queue, &[sent]).await?;
        let mut task = Task::new(queue, self.now + delay_ms);
        let policy = policy_of(policy);
        task.waits_for = Some(reference::Wait { group, policy, is_told: false });
        self.world.add(id, task);
        Ok(())
    }

    /// A task that waited for a group starts with where the results are.
    pub(crate) fn check_input(&self, id: &TaskId, record: Vec<u8>) -> Result<(), Departure> {
        let Some(wait) = self.world.tasks.get(id).and_then(|task| task.waits_for) else {
            return Ok(());
        };
        let group = &self.world.groups[wait.group];
        let record = TaskRecord::decode(record).map_err(|problem| format!("{problem}"))?;
        let input = String::from_utf8_lossy(&record.payload).into_owned();
        let [total, _, failed, cancelled, _] = group.progress();
        let counts = format!("\"total\":{total},\"failed\":{failed},\"cancelled\":{cancelled}");
        let is_right = match group.ended {
            Some(TaskState::Success) => input.contains(&counts),
            _ => input.contains("null"),
        };
        if is_right { Ok(()) } else { Err(format!("{id} starts with {input}, not {counts}")) }
    }
}
