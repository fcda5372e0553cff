//! Finds out why a task has not started, why a queue's tasks are not claimed, and why a worker is
//! idle: [`Inspector::explain`].

use futures_util::{future::try_join_all, try_join};

use crate::{
    Error,
    after::After,
    broker::{
        Broker, BrokerError, Found as Seen, HeldBack, LanePlace, LostTask, NextRun, ReadyPlace,
        RunWait,
    },
    explain_cycle::cycle_of,
    explain_group::{Hop, must_be_requeued},
    explain_limits::{gates_of, of_gates, read_gates},
    explain_workers::{LiveWorkers, of_workers},
    explanation::Explanation,
    gate::Gate,
    id::{QueueName, TaskId, WorkerId},
    inspect::{Inspector, PrerequisiteDetails, read_error},
    lane::Lane,
    obstacle::Obstacle,
    platform::instant,
    record::TaskRecord,
    source_row::source_that_counts,
    state::{Reason, TaskState},
};

/// At most this many prerequisites, lanes, limits and limits of lanes of a queue are shown.
const SHOWN_MAX: usize = 4;

/// The prerequisites of at most this many tasks of a queue are read. Those that must be requeued
/// are shown first.
const UNMET_MAX: usize = 16;

/// The obstacles of a queue, and the names of its first ready tasks.
type Found = (Vec<Obstacle>, Vec<String>);

impl Inspector {
    /// Explains why a task has not started, or how far a [group](fn@crate::group) is, if the id is
    /// that of one. The reads are bounded: they do not depend on how many tasks the queue has.
    ///
    /// If the task waits for others that wait, too, it names the one at which they all wait.
    ///
    /// ```
    /// # async fn doc(client: &optimus_core::Client, id: &optimus_core::TaskId)
    /// # -> Result<(), optimus_core::Error> {
    /// println!("{}", client.inspector().explain(id).await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::is_unavailable`].
    pub async fn explain(&self, id: &TaskId) -> Result<Explanation, Error> {
        let found = self.broker.inspect(id).await?;
        match found.state {
            TaskState::Forgotten => return Ok(Explanation::of(self.of_group(id).await?)),
            TaskState::Working => {
                let cancel =
                    found.cancel_ms.map(|at_ms| Obstacle::AskedToStop { at: instant(at_ms) });
                let running = self.of_running(id, found.worker).await?;
                let running = Explanation::of(running.into_iter().chain(cancel).collect());
                let record = TaskRecord::decode(found.record).ok();
                return Ok(running.at(self.member_place(record.as_ref()).await?));
            }
            TaskState::Success | TaskState::Dead | TaskState::Cancelled => {
                return self.of_ended(id, found).await;
            }
            _ => {}
        }
        let record = TaskRecord::decode(found.record).ok();
        let after = record.as_ref().and_then(|record| record.after.as_ref());
        let lane = record.as_ref().and_then(|record| record.lane.as_ref());
        let key = lane.map(|lane| &*lane.key);
        let (broker, queue) = (&self.broker, id.queue());
        // The reads do not depend on each other, so they share the connection.
        let (newer, unmet, now_ms, place, run, limits, workers, before, member) = try_join!(
            broker.newer(queue),
            self.unmet(id, after),
            broker.now_ms(),
            place_in_lane(broker, id, key),
            run_of(broker, id, record.as_ref(), found.tries),
            read_gates(broker, queue, gates_of(record.as_ref(), key)),
            self.live_workers(queue),
            place_in_queue(broker, id, found.state),
            self.member_place(record.as_ref()),
        )?;
        let cycle = cycle_of(broker, id, &unmet).await?;
        let mut obstacles = match cycle {
            // What its prerequisites wait for is the task itself.
            Some(path) => {
                let unmet = unmet.into_iter().map(Obstacle::Prerequisite);
                unmet.chain([Obstacle::Cycle { path }]).collect()
            }
            None => self.of_prerequisites(unmet).await?,
        };
        obstacles.extend(newer.map(|needs| Obstacle::NewerQueue { needs }));
        // A task that is due keeps its state until the next claim.
        let at_ms = found.at_ms.filter(|at| *at > now_ms);
        obstacles.extend(at_ms.map(|at| Obstacle::NotDue { at: instant(at) }));
        if let (Some(Lane { key, width, .. }), Some(place)) = (lane, place) {
            let (key, LanePlace { holders, ahead, width_set }) = (key.clone(), place);
            let stuck = stuck_holders(broker, queue, &holders, now_ms).await?;
            obstacles.push(Obstacle::Lane { key, holders, ahead, width: *width, width_set });
            obstacles.extend(stuck);
        }
        if let Some(RunWait { others, leader, due_ms }) = run {
            obstacles.push(Obstacle::Run { others, leader, due: instant(due_ms) });
        }
        let cost = record.as_ref().map_or(1, |record| record.cost);
        obstacles.extend(of_gates(limits, cost, now_ms));
        let task = record.as_ref().map(|record| &*record.task);
        obstacles.extend(of_workers(&workers, task));
        obstacles.extend(workers.others(&obstacles));
        obstacles.extend(before);
        Ok(Explanation::of(obstacles).at(member))
    }

    /// What is known of a task that has ended, and what to do before a requeue.
    async fn of_ended(&self, id: &TaskId, found: Seen) -> Result<Explanation, Error> {
        let error = found.errors.lines().filter_map(read_error).next_back();
        let is_unmet = error.as_ref().is_some_and(|error| error.reason == Reason::Unmet);
        let record = TaskRecord::decode(found.record).ok();
        let is_final = match found.state {
            _ if is_unmet => self.broker.is_void(id).await?,
            TaskState::Cancelled => {
                let after = record.as_ref().and_then(|record| record.after.as_ref());
                self.unmet(id, after).await?.iter().any(is_cancelled_group)
            }
            _ => false,
        };
        let mut obstacles = vec![Obstacle::Ended { state: found.state, error, is_final }];
        if is_final {
            obstacles.push(Obstacle::Void);
        } else if is_unmet {
            obstacles.push(Obstacle::RequeueFirst);
        }
        if found.state == TaskState::Dead
            && let Some(source) = record.as_ref().and_then(source_that_counts)
        {
            obstacles.push(Obstacle::FailedRow { source: source.to_owned() });
        }
        Ok(Explanation::of(obstacles).at(self.member_place(record.as_ref()).await?))
    }

    /// What is known of a task that a worker holds. A worker may have ended without a word.
    async fn of_running(
        &self,
        id: &TaskId,
        worker: Option<WorkerId>,
    ) -> Result<Vec<Obstacle>, BrokerError> {
        let Some(worker) = worker else { return Ok(vec![Obstacle::Running(None)]) };
        let (load, now_ms) =
            try_join!(self.broker.worker_load(id.queue(), &worker), self.broker.now_ms())?;
        let Some(load) = load else { return Ok(vec![Obstacle::Running(Some(worker))]) };
        if load.lease_until_ms > now_ms {
            let blocked = self.blocked_worker(id.queue(), load).await?;
            return Ok([Obstacle::Running(Some(worker))].into_iter().chain(blocked).collect());
        }
        let since = instant(load.lease_until_ms);
        let is_served = !self.live_workers(id.queue()).await?.is_empty();
        let unserved = (!is_served).then_some(Obstacle::NoWorker);
        Ok([Obstacle::LostWorker { worker, since }].into_iter().chain(unserved).collect())
    }

    /// Explains why no task of a queue is claimed: what its tasks wait for, which lanes and limits
    /// hold tasks back, who has paused them, and whether workers could run them. Of many, it names
    /// those for which most tasks wait, the pauses of names and limits first, and says how many
    /// others there are.
    ///
    /// # Errors
    /// [`Error::is_unavailable`]; [`Error::is_invalid`] if no queue can have this name.
    pub async fn explain_queue(&self, queue: impl AsRef<str>) -> Result<Explanation, Error> {
        let queue = &QueueName::new(queue)?;
        let (found, workers) = try_join!(self.of_queue(queue), self.live_workers(queue))?;
        let Some((mut obstacles, tasks)) = found else {
            let known = if workers.is_empty() {
                Obstacle::UnknownQueue
            } else {
                Obstacle::NothingReady { blocked: 0 }
            };
            return Ok(Explanation::of_queue(vec![known]));
        };
        obstacles.extend(of_workers(&workers, None));
        obstacles.extend(unknown(&workers, tasks));
        obstacles.extend(workers.others(&obstacles));
        Ok(Explanation::of_queue(obstacles))
    }

    /// Explains why a worker claims no task of a queue. [`workers`](Self::workers) returns the ids
    /// of the queue's workers, and a worker logs its id when it starts.
    ///
    /// # Errors
    /// As for [`explain_queue`](Self::explain_queue).
    pub async fn explain_worker(
        &self,
        queue: impl AsRef<str>,
        worker: &WorkerId,
    ) -> Result<Explanation, Error> {
        let queue = &QueueName::new(queue)?;
        let (workers, found) = try_join!(self.live_worker(queue, worker), self.of_queue(queue))?;
        if workers.is_empty() {
            return Ok(Explanation::of(vec![Obstacle::NotRegistered]));
        }
        let nothing = || (vec![Obstacle::NothingReady { blocked: 0 }], Vec::new());
        let (mut obstacles, tasks) = found.unwrap_or_else(nothing);
        obstacles.extend(of_workers(&workers, None));
        obstacles.extend(unknown(&workers, tasks));
        Ok(Explanation::of_queue(obstacles))
    }

    /// What keeps a queue from being claimed, without its workers, and the names of its first ready
    /// tasks; `None` if nothing is stored of the queue.
    async fn of_queue(&self, queue: &QueueName) -> Result<Option<Found>, BrokerError> {
        let broker = &self.broker;
        let (load, now_ms, whole, (lanes, lane_count), held_back, run) = try_join!(
            broker.queue_load(queue),
            broker.now_ms(),
            read_gates(broker, queue, vec![(Gate::Queue, None)]),
            broker.fullest_lanes(queue, SHOWN_MAX),
            broker.held_back(queue, SHOWN_MAX),
            broker.next_run(queue),
        )?;
        let records = load.first.into_iter().filter_map(|record| TaskRecord::decode(record).ok());
        let records: Vec<TaskRecord> = records.collect();
        // A claim passes no ready task that the limit of the queue keeps.
        let cost = records.first().map_or(1, |record| record.cost);
        let mut obstacles = of_gates(whole, cost, now_ms);
        if !load.is_used && obstacles.is_empty() {
            return Ok(None);
        }
        obstacles.extend(load.newer.map(|needs| Obstacle::NewerQueue { needs }));
        // Tasks that are due become ready at the next claim.
        let run_is_due = run.as_ref().is_some_and(|run| run.due_ms <= now_ms);
        let is_due = run_is_due || load.next_due_ms.is_some_and(|at| at <= now_ms);
        if load.ready == 0 && !is_due {
            obstacles.push(Obstacle::NothingReady { blocked: load.blocked + load.unmet });
        }
        if load.unmet > 0 {
            let unmet = self.unmet_of(queue).await?;
            let origin = self.origin(&unmet).await?.filter(|hop| hop.through > 0);
            obstacles.push(Obstacle::Prerequisites { waiting: load.unmet, unmet });
            obstacles.extend(origin.map(|Hop { through, from, found }| Obstacle::Origin {
                from,
                through,
                prerequisite: found,
            }));
        }
        let HeldBack { names, lanes: of_lanes, others, or_more } = held_back;
        // A name or a limit holds back the tasks of many lanes.
        obstacles.extend(names.into_iter().map(Obstacle::Limit));
        let more_lanes = lane_count.saturating_sub(lanes.len() as u64);
        let holders: Vec<TaskId> = lanes.iter().flat_map(|lane| lane.holders.clone()).collect();
        let dead: Vec<TaskId> = lanes.iter().flat_map(|lane| lane.dead.clone()).collect();
        let lost = lost_holders(broker, queue, &holders, now_ms).await?;
        obstacles.extend(lanes.into_iter().map(Obstacle::WaitingLane));
        obstacles.extend(dead.into_iter().map(|holder| Obstacle::DeadHolder { holder }));
        obstacles.extend(lost);
        if more_lanes > 0 {
            obstacles.push(Obstacle::MoreLanes { count: more_lanes });
        }
        obstacles.extend(of_lanes.into_iter().map(Obstacle::Limit));
        if others > 0 {
            obstacles.push(Obstacle::MoreLimits { count: others, or_more });
        }
        if let Some(run) = run.filter(|_| !run_is_due) {
            let NextRun { task, by, waiting, leader, due_ms, others } = run;
            let due = instant(due_ms);
            obstacles.push(Obstacle::NextRun { task, by, waiting, leader, due, others });
        }
        if load.ready == 0 && !is_due {
            let at = load.next_due_ms.map(instant);
            obstacles.extend(at.map(|at| Obstacle::NextDue { at }));
        }
        Ok(Some((obstacles, records.into_iter().map(|record| record.task).collect())))
    }

    /// What a task still waits for.
    async fn unmet(
        &self,
        id: &TaskId,
        after: Option<&After>,
    ) -> Result<Vec<PrerequisiteDetails>, BrokerError> {
        let found = self.prerequisites_after(id, after).await?.into_iter();
        Ok(found.filter(|found| !found.is_met).collect())
    }

    /// What some tasks of a queue wait for.
    async fn unmet_of(&self, queue: &QueueName) -> Result<Vec<PrerequisiteDetails>, BrokerError> {
        let some = self.broker.some_unmet(queue, UNMET_MAX).await?;
        let reads = some.into_iter().map(|(id, record)| async move {
            let after = TaskRecord::decode(record).ok().and_then(|record| record.after);
            match after {
                Some(after) => self.broker.prerequisites(&id, &after).await,
                None => Ok(Vec::new()),
            }
        });
        let mut all: Vec<PrerequisiteDetails> = Vec::new();
        for found in try_join_all(reads).await?.into_iter().flatten() {
            if !found.is_met && !all.contains(&found) {
                all.push(found);
            }
        }
        // Many tasks may wait for one group, which is looked at once.
        self.see_requeued(&mut all).await?;
        all.sort_by_key(|found| !must_be_requeued(found));
        all.truncate(SHOWN_MAX);
        Ok(all)
    }
}

fn is_cancelled_group(found: &PrerequisiteDetails) -> bool {
    let Some(group) = &found.group else { return false };
    group.ended == Some(TaskState::Cancelled)
}

/// Returns the first of these tasks that no worker knows, if there are workers.
fn unknown(workers: &LiveWorkers, tasks: Vec<String>) -> Option<Obstacle> {
    let is_unknown = |task: &String| !workers.is_empty() && !workers.knows(task);
    tasks.into_iter().find(is_unknown).map(|task| Obstacle::UnknownTask { task })
}

async fn place_in_lane(
    broker: &Broker,
    id: &TaskId,
    lane: Option<&str>,
) -> Result<Option<LanePlace>, BrokerError> {
    match lane {
        Some(lane) => broker.lane_place(id, lane).await,
        None => Ok(None),
    }
}

/// The run for which the task waits with others.
async fn run_of(
    broker: &Broker,
    id: &TaskId,
    record: Option<&TaskRecord>,
    (failures, losses, _): (u32, u32, u32),
) -> Result<Option<RunWait>, BrokerError> {
    let Some(TaskRecord { task, gather: Some(gather), .. }) = record else { return Ok(None) };
    broker.run_wait(id, task, &gather.by, (failures, losses)).await
}

/// What keeps a ready task from being the next: those before it, or that it is in no list.
async fn place_in_queue(
    broker: &Broker,
    id: &TaskId,
    state: TaskState,
) -> Result<Option<Obstacle>, BrokerError> {
    if state != TaskState::Ready {
        return Ok(None);
    }
    let ReadyPlace { ahead, or_more, is_listed } = broker.ready_place(id).await?;
    if is_listed {
        let is_first = ahead == 0 && !or_more;
        return Ok((!is_first).then_some(Obstacle::Behind { ahead, or_more }));
    }
    // A worker may have claimed it since its state was read.
    let is_ready = broker.inspect(id).await?.state == TaskState::Ready;
    let is_unlisted = is_ready && !broker.ready_place(id).await?.is_listed;
    Ok(is_unlisted.then_some(Obstacle::Unlisted))
}

/// The tasks that have a lane and do not go on: dead ones, and those of workers that are gone.
async fn stuck_holders(
    broker: &Broker,
    queue: &QueueName,
    holders: &[TaskId],
    now_ms: u64,
) -> Result<Vec<Obstacle>, BrokerError> {
    let (dead, lost) = try_join!(
        broker.dead_tasks(queue, holders),
        lost_holders(broker, queue, holders, now_ms),
    )?;
    let dead = dead.into_iter().map(|holder| Obstacle::DeadHolder { holder });
    Ok(dead.chain(lost).collect())
}

/// Those of the tasks that have a lane whose workers are gone.
async fn lost_holders(
    broker: &Broker,
    queue: &QueueName,
    holders: &[TaskId],
    now_ms: u64,
) -> Result<Vec<Obstacle>, BrokerError> {
    let lost = broker.lost_tasks(queue, holders, now_ms).await?;
    let is_gone = |LostTask { id, worker, lease_until_ms }| Obstacle::LostHolder {
        holder: id,
        worker,
        since: instant(lease_until_ms),
    };
    Ok(lost.into_iter().map(is_gone).collect())
}
