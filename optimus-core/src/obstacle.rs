//! One thing that keeps tasks waiting, and its text: [`Obstacle`].

use std::{fmt, num::NonZeroU16, time::Duration};

use chrono::{DateTime, Utc};

use crate::{
    after::Prerequisite,
    gate::Gate,
    group::GroupProgress,
    group_details::LostMember,
    id::{TaskId, WorkerId},
    inspect::{LaneDetails, PrerequisiteDetails},
    limit::LimitDetails,
    obstacle_end_text::{asked_text, ended_again_text, ended_text, failed_row_text},
    obstacle_text::{
        REQUEUE_FIRST, UNKNOWN_QUEUE, UNLISTED, VOID, blocked_text, busy_text, calls_text,
        costly_text, cycle_text, dead_holder_text, fewer_slots_text, holders_text, lane_text,
        limit_text, lost_holder, lost_worker_text, more_lanes_text, more_limits_text,
        more_workers_text, newer_text, next_run_text, next_start, nothing_ready_text, origin_text,
        prerequisite_text, prerequisites_text, ready_tasks, run_text, time_text, waiting_lane_text,
        width_set_text, width_text,
    },
    state::{AttemptError, TaskState},
};

/// One thing that keeps tasks waiting.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Obstacle {
    /// The store has no data about the task.
    Forgotten,
    /// The task has ended.
    Ended {
        /// Its state.
        state: TaskState,
        /// The last entry of its error history, unless it has succeeded.
        error: Option<AttemptError>,
        /// Whether no requeue helps, because it would wait for a group that was cancelled.
        is_final: bool,
    },
    /// The task has ended because a prerequisite did. Once that one is requeued, a requeue of the
    /// task lets it wait for it again.
    RequeueFirst,
    /// The task has ended because of what no requeue can change: a task that was deleted or purged,
    /// a group that was cancelled, or a result that is gone.
    Void,
    /// The task is that of a row of a [source](crate::Source), which counts failures in its table.
    /// A row that has failed as often as `attempts` allows is not tried again.
    FailedRow {
        /// The name of the source.
        source: String,
    },
    /// A worker runs the task.
    Running(Option<WorkerId>),
    /// Somebody has cancelled the task while its handler runs. It has no further attempt.
    AskedToStop {
        /// When the cancel was requested, by Redis' clock.
        at: DateTime<Utc>,
    },
    /// The worker that ran the task has lost its lease: it has ended without a word, or does not
    /// reach Redis. The next worker that looks takes the task back.
    LostWorker {
        /// The worker.
        worker: WorkerId,
        /// When its lease was over, by Redis' clock.
        since: DateTime<Utc>,
    },
    /// Another task must succeed first.
    Prerequisite(PrerequisiteDetails),
    /// The task waits for itself, so it never starts: cancel one of these tasks, or submit one
    /// without its prerequisite.
    Cycle {
        /// The task waits for the first of these, each for the next, and the last for the task.
        path: Vec<TaskId>,
    },
    /// What its prerequisite waits for in turn, through other tasks that wait.
    Origin {
        /// The prerequisite.
        from: Prerequisite,
        /// How many tasks wait between the two. The members of a group count as one.
        through: u32,
        /// What all of them wait for.
        prerequisite: PrerequisiteDetails,
    },
    /// The id is that of a group.
    Group {
        /// The id of the group.
        id: TaskId,
        /// How far it is.
        progress: GroupProgress,
    },
    /// The group that it waits for, or that is explained, waits for a member that has failed.
    LostMember(LostMember),
    /// The task is not due.
    NotDue {
        /// When it is due.
        at: DateTime<Utc>,
    },
    /// No task of the queue was ever submitted, and no worker serves it.
    UnknownQueue,
    /// No task of the queue is ready.
    NothingReady {
        /// How many tasks are blocked.
        blocked: u64,
    },
    /// Tasks of the queue wait until other tasks have succeeded.
    Prerequisites {
        /// How many tasks wait.
        waiting: u64,
        /// What some of them wait for, at most four.
        unmet: Vec<PrerequisiteDetails>,
    },
    /// Tasks of the queue wait for others of their lane.
    WaitingLane(LaneDetails),
    /// Tasks of the queue also wait in other lanes, which [`Inspector::lanes`] lists.
    ///
    /// [`Inspector::lanes`]: crate::Inspector::lanes
    MoreLanes {
        /// In how many.
        count: u64,
    },
    /// Other limits and pauses also hold tasks of the queue back. [`Inspector::limits`] lists them.
    ///
    /// [`Inspector::limits`]: crate::Inspector::limits
    MoreLimits {
        /// How many.
        count: u64,
        /// Whether there may be more.
        or_more: bool,
    },
    /// [Gathered](crate::Call) calls of the queue wait for their run. This is the run that is due
    /// first.
    NextRun {
        /// The name of the task.
        task: String,
        /// The key that the calls have in common; empty if the task runs all calls together.
        by: String,
        /// How many calls wait.
        waiting: u64,
        /// The task that leads the run, which is about to start.
        leader: Option<TaskId>,
        /// When the run is due, if none leads it.
        due: DateTime<Utc>,
        /// For how many other runs calls wait.
        others: u64,
    },
    /// No delayed task or retry of the queue is due before this time.
    NextDue {
        /// When the first one is due.
        at: DateTime<Utc>,
    },
    /// Other tasks of its lane come first.
    Lane {
        /// The key of the lane.
        key: String,
        /// The tasks that have the lane now, at most four.
        holders: Vec<TaskId>,
        /// How many other tasks of the lane come before it.
        ahead: u64,
        /// How many tasks of the lane may run at once, as far as this task says it.
        width: NonZeroU16,
        /// The width that was set at run time, which is used instead.
        width_set: Option<NonZeroU16>,
    },
    /// A task that has the lane is dead, and keeps it, because its definition says so
    /// (`on_lane_failure = "block"`): requeue or delete it.
    DeadHolder {
        /// The task that has the lane.
        holder: TaskId,
    },
    /// The worker of a task that has the lane has lost its lease, so that task does not go on. The
    /// next worker that looks takes it back.
    LostHolder {
        /// The task that has the lane.
        holder: TaskId,
        /// The worker.
        worker: WorkerId,
        /// When its lease was over, by Redis' clock.
        since: DateTime<Utc>,
    },
    /// It runs together with others, and waits for them.
    Run {
        /// How many others wait.
        others: u64,
        /// The task that leads their run, which is about to start.
        leader: Option<TaskId>,
        /// When the run is due, if none leads it.
        due: DateTime<Utc>,
    },
    /// A limit lets no task start now, or is paused, or tasks of the queue wait for it.
    Limit(LimitDetails),
    /// A rate lets a task start now, but not one that counts as many starts as this one, or as the
    /// first ready task of the queue.
    Costly {
        /// Whose rate it is.
        gate: Gate,
        /// As how many starts the task counts.
        cost: u32,
        /// How many may start now.
        tokens: u64,
        /// The rate lets it start at this time at the latest, if no other task starts before.
        by: DateTime<Utc>,
    },
    /// Newer programs use the queue, and no worker of this release claims from it.
    NewerQueue {
        /// The version that the queue requires.
        needs: u64,
    },
    /// No worker serves the queue.
    NoWorker,
    /// The workers that serve the queue do not know the task.
    UnknownTask {
        /// The name of the task.
        task: String,
    },
    /// Operators have asked processes to use fewer slots than they have, and the rest are in use,
    /// or there is none: all workers are quiet.
    FewerSlots {
        /// The workers, at most four.
        workers: Vec<WorkerId>,
        /// How many workers use fewer slots.
        count: u64,
        /// Of how many.
        of: u64,
        /// How many slots all workers may use together.
        slots: u64,
    },
    /// The handlers of workers block all threads of their runtime, so these workers start no task:
    /// not even those that they hold already.
    Blocked {
        /// The workers, at most four.
        workers: Vec<WorkerId>,
        /// How many workers.
        count: u64,
        /// For how long the first of them has been blocked, at least.
        since: Duration,
    },
    /// All slots of the workers that could run the task are in use.
    Busy {
        /// How many slots they have.
        slots: u64,
        /// How many tasks of the queue they run.
        working: u64,
        /// How many tasks of other queues they run.
        elsewhere: u64,
    },
    /// The queue has more workers than are read.
    MoreWorkers {
        /// How many were not read.
        count: u64,
    },
    /// Other ready tasks come first.
    Behind {
        /// How many.
        ahead: u64,
        /// Whether there may be more.
        or_more: bool,
    },
    /// The task has a record and is in none of the lists of its queue, so no worker finds it.
    /// Another program has changed a key, or Redis has stopped a call half-way.
    Unlisted,
    /// The worker is not registered in the queue: it does not serve the queue, or its lease is
    /// over.
    NotRegistered,
}
impl Obstacle {
    /// Returns when it ends at the earliest, if that is known.
    pub(crate) fn ends(&self) -> Option<DateTime<Utc>> {
        match self {
            // Another call may let a run start before it is due.
            Self::NotDue { at } | Self::NextDue { at } => Some(*at),
            Self::Limit(gate) => match &gate.shut {
                Some(shut) => shut.until,
                None => gate.next,
            },
            _ => None,
        }
    }

    /// Returns the time that its text has.
    pub(crate) fn time_in_text(&self) -> Option<DateTime<Utc>> {
        match self {
            Self::Limit(gate) if gate.shut.is_none() => next_start(gate),
            _ => self.ends(),
        }
    }

    /// Whether it keeps some tasks of a queue waiting.
    pub(crate) fn is_about_tasks(&self) -> bool {
        matches!(
            self,
            Self::Prerequisites { .. }
                | Self::WaitingLane(_)
                | Self::MoreLanes { .. }
                | Self::MoreLimits { .. }
                | Self::Limit(_)
                | Self::NextRun { .. }
                | Self::NextDue { .. }
        )
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forgotten => f.write_str("nothing is known of the task"),
            Self::Ended { state, error, is_final: true } => ended_text(*state, error.as_ref(), f),
            Self::Ended { state, error, .. } => ended_again_text(*state, error.as_ref(), f),
            Self::RequeueFirst => f.write_str(REQUEUE_FIRST),
            Self::Void => f.write_str(VOID),
            Self::FailedRow { source } => failed_row_text(source, f),
            Self::Running(Some(worker)) => write!(f, "worker {worker} runs the task"),
            Self::Running(None) => f.write_str("a worker runs the task"),
            Self::AskedToStop { at } => asked_text(*at, f),
            Self::LostWorker { worker, since } => lost_worker_text(worker, "the task", *since, f),
            Self::Prerequisite(PrerequisiteDetails {
                prerequisite, group: Some(group), ..
            }) => write!(f, "it waits for the group {prerequisite}: {group}"),
            Self::Prerequisite(found) => write!(f, "it waits until {}", prerequisite_text(found)),
            Self::Cycle { path } => cycle_text(path, f),
            Self::Origin { from, through, prerequisite } => {
                origin_text(from, *through, prerequisite, f)
            }
            Self::Group { id, progress } => write!(f, "{id} is a group: {progress}"),
            Self::LostMember(lost) => lost.fmt(f),
            Self::NotDue { at } => write!(f, "it is due at {}", time_text(*at)),
            Self::UnknownQueue => f.write_str(UNKNOWN_QUEUE),
            Self::NothingReady { blocked } => nothing_ready_text(*blocked, f),
            Self::Prerequisites { waiting, unmet } => prerequisites_text(*waiting, unmet, f),
            Self::WaitingLane(LaneDetails { key, waiting, holders, width_set, .. }) => {
                waiting_lane_text(key, &width_set_text(*width_set), *waiting, f)?;
                holders_text(holders, f)
            }
            Self::MoreLanes { count } => more_lanes_text(*count, f),
            Self::MoreLimits { count, or_more } => {
                let least = if *or_more { "at least " } else { "" };
                more_limits_text(least, *count, f)
            }
            Self::NextRun { task, by, waiting, leader, due, others } => {
                let calls = calls_text(task, by, *waiting);
                next_run_text(&calls, leader.as_ref(), *due, *others, f)
            }
            Self::NextDue { at } => {
                write!(f, "the next delayed task or retry is due at {}", time_text(*at))
            }
            Self::Lane { key, holders, ahead, width, width_set } => {
                lane_text(key, &width_text(*width, *width_set), *ahead, f)?;
                holders_text(holders, f)
            }
            Self::DeadHolder { holder } => dead_holder_text(holder, f),
            Self::LostHolder { holder, worker, since } => lost_holder(worker, holder, *since, f),
            Self::Run { others, leader, due } => run_text(*others, leader.as_ref(), *due, f),
            Self::Limit(gate) => limit_text(gate, f),
            Self::Costly { gate, cost, tokens, by } => costly_text(gate, (*cost, *tokens), *by, f),
            Self::NewerQueue { needs } => newer_text(*needs, f),
            Self::NoWorker => f.write_str("no worker serves the queue"),
            Self::UnknownTask { task } => write!(f, "no worker of the queue knows task {task}"),
            Self::FewerSlots { workers, count, of, slots } => {
                fewer_slots_text(workers, (*count, *of), *slots, f)
            }
            Self::Blocked { workers, count, since } => blocked_text(workers, *count, *since, f),
            Self::Busy { slots, working, elsewhere } => busy_text(*slots, *working, *elsewhere, f),
            Self::MoreWorkers { count } => more_workers_text(*count, f),
            Self::Behind { ahead: 0, .. } => f.write_str("other ready tasks may be before it"),
            Self::Behind { ahead, or_more } => {
                let least = if *or_more { "at least " } else { "" };
                write!(f, "{least}{} before it", ready_tasks(*ahead))
            }
            Self::Unlisted => f.write_str(UNLISTED),
            Self::NotRegistered => f.write_str("the worker is not registered in the queue"),
        }
    }
}
