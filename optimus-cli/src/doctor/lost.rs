//! Checks whether processes were lost lately: killed, or cut off from Redis.

use chrono::{DateTime, Utc};
use optimus_core::{ProcessDetails, RunningTask};

use super::{Finding, Level, processes::place};
use crate::{
    advice::advice,
    output::{clean, text},
};

/// How many tasks of the last process are named.
const NAMED_MAX: usize = 3;

/// From so many on, lost processes are a warning even if others have replaced them. One may be a
/// machine that was taken away. Processes are listed for at most 10 min after their last word, and
/// two within that time have a reason, such as a task that needs too much memory.
const LOST_MIN: usize = 2;

/// Tells how many processes were lost, and what the last of them ran.
pub(super) fn check(processes: &[ProcessDetails], now: DateTime<Utc>) -> Option<Finding> {
    let lost: Vec<_> = processes.iter().filter(|process| process.is_lost).collect();
    let latest = lost.iter().max_by_key(|process| process.seen)?;
    let what = match lost.len() {
        1 => "1 process was lost lately (it has died, or does not reach Redis)".to_owned(),
        count => format!(
            "{} processes were lost lately (they have died, or do not reach Redis), the last one \
             of them",
            text::number(count as u64)
        ),
    };
    let is_replaced = lost.iter().all(|process| is_replaced(process, processes));
    let replaced = match (lost.len(), is_replaced) {
        (1, true) => ", and another one has started since then",
        (_, true) => ", and others have started since then",
        (_, false) => "",
    };
    let text = format!(
        "{what}: {}, which was heard from {} and ran {}{replaced}; {} shows more, and `optimus \
         process list` has those that were lost in the last minutes",
        place(latest),
        text::relative(latest.seen, now),
        ran(latest),
        advice("process show", [&latest.id])
    );
    let is_bad = lost.len() >= LOST_MIN || !is_replaced;
    let level = if is_bad { Level::Warning } else { Level::Note };
    Some(Finding::new(level, "lost", text))
}

/// Returns whether a process has started since a lost one was last heard from, for its queues.
fn is_replaced(lost: &ProcessDetails, processes: &[ProcessDetails]) -> bool {
    let mut live = processes.iter().filter(|process| !process.is_lost);
    live.any(|process| {
        let about = &process.about;
        about.started > lost.seen
            && lost.about.queues.iter().all(|queue| about.queues.contains(queue))
    })
}

/// Names the tasks that a process ran when it was last heard from. It may have begun others since.
fn ran(process: &ProcessDetails) -> String {
    let text =
        |task: &RunningTask| format!("{} ({})", clean::line(&task.id), clean::line(&task.task));
    let running = &process.doing.running;
    if running.is_empty() {
        return "no task that it had told of".to_owned();
    }
    let mut names: Vec<String> = running.iter().take(NAMED_MAX).map(text).collect();
    let more = process.doing.busy.max(running.len()).saturating_sub(NAMED_MAX);
    if more > 0 {
        names.push(format!("and {} more", text::number(more as u64)));
    }
    names.join(", ")
}
