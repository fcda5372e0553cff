//! The parts of an obstacle's text that depend on what was found.

use std::{fmt, num::NonZeroU16, time::Duration};

use chrono::{DateTime, SecondsFormat, Utc};

use crate::{
    after::Prerequisite,
    gate::Gate,
    id::{TaskId, WorkerId},
    inspect::PrerequisiteDetails,
    limit::LimitDetails,
    state::TaskState,
};

/// What to do with a task that has ended because a prerequisite did.
pub(crate) const REQUEUE_FIRST: &str = "requeue the task that it waited for, and then this task";

/// What may be wrong with a queue of which nothing is stored.
pub(crate) const UNKNOWN_QUEUE: &str = "no task was ever submitted to this queue, and no worker \
    serves it; is its name misspelt?";

/// What to do with a task that no worker finds.
pub(crate) const UNLISTED: &str = "it is in none of the lists of its queue, so no worker finds it: \
    another program has changed a key, or Redis has stopped a call half-way, because its user \
    lacks a permission; `optimus doctor --deep` says what mends it";

/// What to do with a task that no requeue can help.
pub(crate) const VOID: &str = "no requeue helps: it waited for a task that was deleted or purged, \
    a group that was cancelled, or a result that is gone, possibly through other tasks; submit it, \
    or the flow, again";

/// Prints a time as the log does, such as `2026-11-22T18:00:00Z`.
pub(crate) fn time_text(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// Prints how many tasks of a lane may run at once, if somebody has set it at run time.
pub(crate) fn width_set_text(width_set: Option<NonZeroU16>) -> String {
    width_set.map_or_else(String::new, |width| format!(" (width {width}, set at run time)"))
}

/// Prints how many tasks of a lane may run at once.
pub(crate) fn width_text(width: NonZeroU16, width_set: Option<NonZeroU16>) -> String {
    match width_set {
        Some(_) => width_set_text(width_set),
        None => format!(" (width {width})"),
    }
}

/// Prints for which run a call waits, with how many others.
pub(crate) fn run_text(
    others: u64,
    leader: Option<&TaskId>,
    due: DateTime<Utc>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    write!(f, "it waits with {} for ", other_tasks(others))?;
    their_run_text(leader, due, f)
}

/// Prints how many calls of a task wait, and the key that they have in common.
pub(crate) fn calls_text(task: &str, by: &str, waiting: u64) -> String {
    let (calls, wait) = if waiting == 1 { ("call", "waits") } else { ("calls", "wait") };
    let key = if by.is_empty() { String::new() } else { format!(" with the key {by:?}") };
    format!("{waiting} {calls} of task {task}{key} {wait}")
}

/// Prints the run for which these calls wait, and for how many other runs calls wait.
pub(crate) fn next_run_text(
    calls: &str,
    leader: Option<&TaskId>,
    due: DateTime<Utc>,
    others: u64,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    write!(f, "{calls} for ")?;
    their_run_text(leader, due, f)?;
    match others {
        0 => Ok(()),
        1 => f.write_str("; others wait for 1 later run"),
        _ => write!(f, "; others wait for {others} later runs"),
    }
}

/// Prints a run by the task that leads it, or by when it is due.
fn their_run_text(
    leader: Option<&TaskId>,
    due: DateTime<Utc>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    match leader {
        Some(leader) => write!(f, "the run that {leader} leads"),
        None => write!(f, "their run, which is due at {}", time_text(due)),
    }
}

/// Prints a number of tasks and what they do.
pub(crate) fn tasks(count: u64, one: &str, many: &str) -> String {
    match count {
        0 => format!("no task {one}"),
        1 => format!("1 task {one}"),
        _ => format!("{count} tasks {many}"),
    }
}

/// Prints that no task is ready, and how many are blocked.
pub(crate) fn nothing_ready_text(blocked: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match blocked {
        0 => f.write_str("no task is ready"),
        _ => write!(f, "no task is ready; {} blocked", tasks(blocked, "is", "are")),
    }
}

/// Prints a number of other tasks.
pub(crate) fn other_tasks(count: u64) -> String {
    match count {
        0 => "no other task".into(),
        1 => "1 other task".into(),
        _ => format!("{count} other tasks"),
    }
}

/// Prints a number of ready tasks, and the verb.
pub(crate) fn ready_tasks(count: u64) -> String {
    if count == 1 { "1 ready task is".into() } else { format!("{count} ready tasks are") }
}

/// Prints a prerequisite and its state.
pub(crate) fn prerequisite_text(found: &PrerequisiteDetails) -> String {
    let PrerequisiteDetails { prerequisite, state, group, .. } = found;
    if let Some(group) = group {
        return format!("the group {prerequisite} has ended: {group}");
    }
    let state = match state {
        TaskState::Forgotten => "which was not submitted, or is no longer known".to_owned(),
        TaskState::Dead | TaskState::Cancelled => format!("which is {state}: requeue it"),
        state => format!("which is {state}"),
    };
    format!("{prerequisite} has succeeded, {state}")
}

/// Prints what a prerequisite waits for, through how many tasks.
pub(crate) fn origin_text(
    from: &Prerequisite,
    through: u32,
    found: &PrerequisiteDetails,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let text = prerequisite_text(found);
    match through {
        0 | 1 => write!(f, "{from} waits until {text}"),
        _ => {
            let others = other_tasks(u64::from(through - 1));
            write!(f, "{from} waits, through {others}, until {text}")
        }
    }
}

/// Prints how many tasks wait for prerequisites, and for which.
pub(crate) fn prerequisites_text(
    waiting: u64,
    unmet: &[PrerequisiteDetails],
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    write!(f, "{} for prerequisites", tasks(waiting, "waits", "wait"))?;
    let mut join = ":";
    for found in unmet {
        write!(f, "{join} until {}", prerequisite_text(found))?;
        join = ";";
    }
    Ok(())
}

/// Prints the way on which a task waits for itself.
pub(crate) fn cycle_text(path: &[TaskId], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let path: Vec<String> = path.iter().map(ToString::to_string).collect();
    let path = path.join(", which waits for ");
    write!(f, "it waits for itself: it waits for {path}, which waits for it; cancel one")
}

/// Prints how many tasks of a lane are before a task.
pub(crate) fn lane_text(
    key: &str,
    width: &str,
    ahead: u64,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    write!(f, "lane {key}{width}: {} before it; ", tasks(ahead, "waits", "wait"))
}

/// Prints how many tasks wait in a lane.
pub(crate) fn waiting_lane_text(
    key: &str,
    width: &str,
    waiting: u64,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    write!(f, "lane {key}{width}: {}; ", tasks(waiting, "waits", "wait"))
}

/// Prints who holds a lane.
pub(crate) fn holders_text(holders: &[TaskId], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if holders.is_empty() {
        return f.write_str("no task holds the lane, which is about to change");
    }
    let ids: Vec<String> = holders.iter().map(TaskId::to_string).collect();
    write!(f, "the lane is held by {}", ids.join(", "))
}

/// Prints that a dead task has a lane.
pub(crate) fn dead_holder_text(holder: &TaskId, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "task {holder} is dead and keeps the lane: requeue it, or delete it to go on")
}

/// Prints a limit, and why it is shut.
pub(crate) fn limit_text(gate: &LimitDetails, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{}: ", gate.gate)?;
    if let Some(shut) = &gate.shut {
        write!(f, "{shut}")?;
        return match gate.waiting {
            0 => Ok(()),
            waiting => write!(f, "; {}", tasks(waiting, "waits", "wait")),
        };
    }
    if let Some(rate) = gate.limit.rate_limit() {
        write!(f, "{rate}, {} may start now", gate.tokens.unwrap_or(0))?;
        if let Some(next) = next_start(gate) {
            write!(f, ", the next at {}", time_text(next))?;
        }
        f.write_str("; ")?;
    }
    if let Some(most) = gate.limit.max_working_limit() {
        write!(f, "{} of {most} run; ", gate.working)?;
    }
    f.write_str(&tasks(gate.waiting, "waits", "wait"))
}

/// Prints that a task counts as more starts than a rate has left.
pub(crate) fn costly_text(
    gate: &Gate,
    (cost, tokens): (u32, u64),
    by: DateTime<Utc>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let starts = if tokens == 1 { "1 start is".into() } else { format!("{tokens} starts are") };
    write!(f, "{gate}: the task counts as {cost} starts, and {starts} left now; it may start by ")?;
    f.write_str(&time_text(by))
}

/// Returns when a rate next lets a task start, if none may start now.
pub(crate) fn next_start(gate: &LimitDetails) -> Option<DateTime<Utc>> {
    gate.next.filter(|_| gate.shut.is_none() && gate.tokens == Some(0))
}

/// Prints in how many other lanes tasks wait.
pub(crate) fn more_lanes_text(count: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (lanes, them) = if count == 1 { ("lane", "it") } else { ("lanes", "them") };
    write!(f, "tasks wait in {count} more {lanes}: `optimus lane list` lists {them}")
}

/// Prints how many other limits and pauses hold tasks back.
pub(crate) fn more_limits_text(least: &str, count: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (limits, hold, them) = match count {
        1 => ("limit or pause", "holds", "it"),
        _ => ("limits and pauses", "hold", "them"),
    };
    write!(f, "{least}{count} more {limits} {hold} tasks back: ")?;
    write!(f, "`optimus limit list` lists {them}")
}

/// Prints how many workers of a queue were not read.
pub(crate) fn more_workers_text(count: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (workers, were) = if count == 1 { ("worker", "was") } else { ("workers", "were") };
    write!(f, "{count} more {workers} of the queue {were} not read, so this may be wrong for them")
}

/// Prints the names of workers, of which there are so many.
fn names_text(workers: &[WorkerId], count: u64) -> String {
    let names: Vec<&str> = workers.iter().map(WorkerId::as_str).collect();
    let more = match count - names.len() as u64 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    names.join(", ") + &more
}

/// Prints which workers start no task because their handlers block them.
pub(crate) fn blocked_text(
    workers: &[WorkerId],
    count: u64,
    since: Duration,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let (names, seconds) = (names_text(workers, count), since.as_secs());
    let workers = if count == 1 { "worker" } else { "workers" };
    write!(
        f,
        "handlers have blocked all threads of {workers} {names} for {seconds} s, so no task "
    )?;
    f.write_str("starts there: let these handlers await, or make them plain `fn`s")
}

/// Prints which workers use fewer slots than they have.
pub(crate) fn fewer_slots_text(
    workers: &[WorkerId],
    (count, of): (u64, u64),
    slots: u64,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let names = names_text(workers, count);
    match (of, slots) {
        (1, 0) => write!(f, "worker {names} is quiet, so it claims nothing")?,
        (_, 0) => write!(f, "all {of} workers are quiet, so they claim nothing: {names}")?,
        (1, _) => write!(f, "worker {names} may use only {slots} of its slots")?,
        _ => write!(f, "{count} of {of} workers may use only some of their slots: {names}")?,
    }
    f.write_str(
        "; `optimus audit list` says who has asked for it, `optimus process resume` with the id \
         that `optimus process list` shows ends it",
    )
}

/// Prints that newer programs use a queue.
pub(crate) fn newer_text(needs: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "newer programs use the queue: it needs version {needs} of the scripts, which ")?;
    f.write_str("workers of this release do not know, so they claim nothing; deploy the newer ")?;
    f.write_str("release again")
}

/// Prints how many tasks use all slots: of the queue, and of other queues.
pub(crate) fn busy_text(
    slots: u64,
    working: u64,
    elsewhere: u64,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let slots = if slots == 1 { "1 slot".into() } else { format!("{slots} slots") };
    let (one, many) = match working {
        0 if elsewhere > 0 => ("of another queue runs", "of other queues run"),
        _ => ("runs", "run"),
    };
    let running = tasks(working + elsewhere, one, many);
    write!(f, "all slots are in use: {running} in {slots}")?;
    match (working, elsewhere) {
        (0, _) | (_, 0) => Ok(()),
        (_, 1) => f.write_str(", 1 of them of another queue"),
        _ => write!(f, ", {elsewhere} of them of other queues"),
    }
}

/// Prints that the worker of a task that has a lane has lost its lease.
pub(crate) fn lost_holder(
    worker: &WorkerId,
    holder: &TaskId,
    since: DateTime<Utc>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    lost_worker_text(worker, &format!("task {holder} of the lane"), since, f)
}

/// Prints that the worker of a task has lost its lease.
pub(crate) fn lost_worker_text(
    worker: &WorkerId,
    task: &str,
    since: DateTime<Utc>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let since = time_text(since);
    write!(f, "worker {worker}, which ran {task}, is gone: its lease was over at {since}; ")?;
    f.write_str("the next worker that looks takes the task back")
}
