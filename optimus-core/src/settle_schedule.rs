//! Keeps each schedule in one queue: [`settle_schedule`].
//!
//! The queues of a namespace are apart in Redis, so no script sees two of them. A schedule that is
//! new in a queue is marked as moving, and has no instants. The caller that has stored it looks at
//! all queues after that. Of two that store one name at the same time, at least one sees the other;
//! all agree which one keeps the name, by number and queue; it is `home` here. The others stop
//! first, give it what they have, and are removed; then it is settled. Each step names the edition
//! that it is about. If a program ends in between, the worker that finds the schedule due goes on.

use crate::{
    broker::{Broker, BrokerError, Refusal, Reschedule, StoredSchedule, Taken},
    id::QueueName,
    store_schedule::READS_MAX,
};

/// How many instants a history has at most.
const TICKS_MAX: usize = 100;

/// Ends the move of a schedule, if it moves: one queue keeps it, with its pause, its latest instant
/// and its history. Returns that queue; `None` if there is no schedule of this name. `own` is a
/// queue that may not be announced yet.
#[doc(hidden)]
pub async fn settle_schedule(
    broker: &Broker,
    name: &str,
    own: &QueueName,
) -> Result<Option<QueueName>, BrokerError> {
    for _ in 0..READS_MAX {
        let found = broker.find_schedules(name, Some(own)).await?;
        let Some((home, others)) = found.split_first() else { return Ok(None) };
        let answer = if others.is_empty() && !home.is_moving() {
            Ok(true)
        } else if others.is_empty() {
            settle(broker, name, home, home.edition()).await.map(|()| true)
        } else if found.iter().all(StoredSchedule::is_moving) {
            gather(broker, name, home, others).await.map(|()| true)
        } else {
            stop(broker, name, &found).await.map(|()| false)
        };
        match answer {
            Ok(true) => return Ok(Some(home.queue().clone())),
            Ok(false) => {}
            Err(problem) if problem.refusal() == Some(Refusal::Stale) => {}
            Err(problem) => return Err(problem),
        }
    }
    Err(BrokerError::NotDone(format!("the schedule {name:?} moves again and again")))
}

async fn settle(
    broker: &Broker,
    name: &str,
    home: &StoredSchedule,
    edition: u64,
) -> Result<(), BrokerError> {
    broker.reschedule(home.queue(), (name, edition), Reschedule::Settle).await
}

/// Marks all as moving. After that, what they have changes no more.
async fn stop(broker: &Broker, name: &str, found: &[StoredSchedule]) -> Result<(), BrokerError> {
    for one in found.iter().filter(|one| !one.is_moving()) {
        broker.reschedule(one.queue(), (name, one.edition()), Reschedule::Move).await?;
    }
    Ok(())
}

/// Gives the one that stays what the others have, removes those, and settles it.
async fn gather(
    broker: &Broker,
    name: &str,
    home: &StoredSchedule,
    others: &[StoredSchedule],
) -> Result<(), BrokerError> {
    let mut history = broker.schedule_history(home.queue(), name).await?;
    for other in others {
        let entries = broker.schedule_history(other.queue(), name).await?;
        history.extend(entries.iter().map(|entry| entry_of(entry, other.queue())));
    }
    let taken = Taken { history: latest_first(history), ..taken(home, others) };
    let edition = home.edition();
    broker.reschedule(home.queue(), (name, edition), Reschedule::Take(&taken)).await?;
    for other in others {
        broker.reschedule(other.queue(), (name, other.edition()), Reschedule::Remove).await?;
    }
    settle(broker, name, home, edition + 1).await
}

/// Decides what the one that stays has after the move, without the history. If the instants stay
/// the same, what was overdue stays so.
fn taken(home: &StoredSchedule, others: &[StoredSchedule]) -> Taken {
    let all = || others.iter().chain([home]);
    let last_ms = all().filter_map(StoredSchedule::last_ms).max();
    let mut paused = [home].into_iter().chain(others).map(StoredSchedule::paused);
    let paused = paused.find(|paused| !paused.is_empty()).unwrap_or_default();
    let before = others.iter().max_by_key(|other| (other.last_ms(), other.number_of_name()));
    let same = |one: &StoredSchedule| match (one.timing(), home.timing()) {
        (Ok(one), Ok(own)) => one.is_same_pace(&own),
        _ => false,
    };
    let due_ms = before.filter(|before| same(before)).map_or(home.due_ms, |before| before.due_ms);
    // No instant comes twice, whatever the clocks of the queues show.
    let after = |last_ms| match home.timing() {
        Ok(timing) => timing.next_ms(last_ms),
        // A worker that can read it decides.
        Err(_) => Some(last_ms + 1),
    };
    let due_ms = match (due_ms, last_ms) {
        (Some(due_ms), Some(last_ms)) if due_ms <= last_ms => after(last_ms),
        (due_ms, _) => due_ms,
    };
    Taken {
        due_ms: due_ms.filter(|_| paused.is_empty()),
        made_ms: all().map(StoredSchedule::made_ms).min().unwrap_or_default(),
        history: Vec::new(),
        last_ms,
        paused,
    }
}

/// Returns an entry of a history of this queue for the history in another one.
fn entry_of(entry: &str, queue: &QueueName) -> String {
    let what = entry.rsplit(' ').next().unwrap_or_default();
    let has_id = !["overlap", "missed"].contains(&what) && !what.contains('@');
    if has_id { format!("{entry}@{queue}") } else { entry.to_owned() }
}

/// Sorts entries by when they were written, and removes those that are there twice.
fn latest_first(mut entries: Vec<String>) -> Vec<String> {
    let written = |entry: &String| -> u64 {
        entry.split(' ').nth(1).and_then(|ms| ms.parse().ok()).unwrap_or_default()
    };
    entries.sort_by(|one, other| (written(other), other).cmp(&(written(one), one)));
    entries.dedup();
    entries.truncate(TICKS_MAX);
    entries
}
