//! Stores a schedule: [`store_schedule`]. What is stored under its name decides when it is due.

use std::cmp::Ordering;

use crate::{
    broker::{Broker, BrokerError, NewSchedule, Refusal, StoredSchedule},
    id::QueueName,
    schedule::CheckedSchedule,
    scheduled_task::ScheduledTask,
    settle_schedule::settle_schedule,
};

/// How often a schedule is read again because somebody has changed it meanwhile.
pub(crate) const READS_MAX: usize = 16;

/// When a program stores a schedule of its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// At its start, which was at this time, in ms.
    Start(u64),
    /// Later, because the schedule is not in its queue.
    Later(u64),
}

/// What became of a schedule that was to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredAs {
    /// It is new, or has replaced another content.
    Stored,
    /// It has replaced another content of the same release.
    Replaced,
    /// It was stored already.
    Unchanged,
    /// It has left these queues.
    Moved(Vec<QueueName>),
    /// A program of this later release has stored another content.
    KeptNewer(String),
    /// A program of a later release, or one that has started later, has it in this queue.
    KeptElsewhere(QueueName),
    /// A program's code has a schedule of this name.
    IsOfCode,
    /// A schedule of this name was made at run time.
    IsMadeAtRunTime,
}

/// Stores a schedule in the queue of its task; see [`store_schedule_at`].
#[doc(hidden)]
pub async fn store_schedule(
    broker: &Broker,
    schedule: &CheckedSchedule,
) -> Result<StoredAs, BrokerError> {
    store_schedule_at(broker, schedule, Moment::Start(0)).await
}

/// Stores a schedule in the queue of its task. It leaves all other queues. If its instants are
/// those of the stored one, it is due as before. Otherwise it is due after now, and after its
/// latest instant: no change makes an instant of the past due.
#[doc(hidden)]
pub async fn store_schedule_at(
    broker: &Broker,
    schedule: &CheckedSchedule,
    moment: Moment,
) -> Result<StoredAs, BrokerError> {
    let CheckedSchedule { name, timing, release, submission } = schedule;
    let queue = submission.id().queue();
    let (record, blob) = ScheduledTask::of(submission);
    let (timing_text, release) = (timing.stored(), release.as_deref());
    let (Moment::Start(started_ms) | Moment::Later(started_ms)) = moment;
    for _ in 0..READS_MAX {
        let all = broker.find_schedules(name, Some(queue)).await?;
        let (own, others): (Vec<_>, Vec<_>) = all.iter().partition(|one| one.queue() == queue);
        let found = own.first().copied();
        let kept = others.iter().find_map(|other| keeps(other, schedule, moment));
        if let Some(kept) = kept {
            return Ok(kept);
        }
        let is_same = found.is_some_and(|found| found.is_same(&timing_text, &record, &blob));
        let stored_release = found.map(StoredSchedule::release);
        let stored_as = match (stored_release.as_ref().map(Option::as_deref), release) {
            (Some(Some(_)), None) => return Ok(StoredAs::IsOfCode),
            (Some(None), Some(_)) => return Ok(StoredAs::IsMadeAtRunTime),
            (Some(stored), own) if is_same && stored == own && others.is_empty() => {
                if found.is_some_and(StoredSchedule::is_moving) {
                    settle_schedule(broker, name, queue).await?;
                }
                return Ok(StoredAs::Unchanged);
            }
            (Some(Some(stored)), Some(own)) => match compared(stored, own) {
                Ordering::Greater => return Ok(StoredAs::KeptNewer(stored.to_owned())),
                Ordering::Equal => StoredAs::Replaced,
                Ordering::Less => StoredAs::Stored,
            },
            (None, _) | (Some(None), None) => StoredAs::Stored,
        };
        let highest = all.first().map_or(0, StoredSchedule::number_of_name);
        let new = NewSchedule {
            name,
            edition: found.map_or(0, StoredSchedule::edition),
            release: release.unwrap_or_default(),
            due_ms: match found {
                Some(found) if keeps_due(found, schedule) => found.due_ms,
                Some(found) => timing.next_ms(found.now_ms.max(found.last_ms().unwrap_or(0))),
                None => timing.next_ms(broker.now_ms().await?),
            },
            timing: &timing_text,
            record: &record,
            blob: &blob,
            number: highest + u64::from(!others.is_empty()),
            started_ms,
        };
        match broker.schedule(queue, new).await {
            Err(problem) if problem.refusal() == Some(Refusal::Stale) => {}
            Err(problem) => return Err(problem),
            Ok(()) => {
                settle_schedule(broker, name, queue).await?;
                let left: Vec<_> = others.iter().map(|other| other.queue().clone()).collect();
                return Ok(if left.is_empty() { stored_as } else { StoredAs::Moved(left) });
            }
        }
    }
    Err(BrokerError::NotDone("the schedule changes again and again".into()))
}

/// Returns why a schedule stays in another queue; `None` if it moves from there. A later release
/// keeps it, unless nobody ticks it; of two programs of one release, the one that has started last.
fn keeps(other: &StoredSchedule, schedule: &CheckedSchedule, moment: Moment) -> Option<StoredAs> {
    let (stored, own) = match (other.release(), schedule.release.as_deref()) {
        (Some(_), None) => return Some(StoredAs::IsOfCode),
        (None, Some(_)) => return Some(StoredAs::IsMadeAtRunTime),
        (None, None) => return None,
        (Some(stored), Some(own)) => (stored, own),
    };
    let queue = schedule.submission.id().queue().as_str();
    let has_started_later = match moment {
        Moment::Start(_) => false,
        Moment::Later(started_ms) => {
            (other.started_ms(), other.queue().as_str()) > (started_ms, queue)
        }
    };
    let is_kept = match compared(&stored, own) {
        Ordering::Greater => true,
        Ordering::Equal => has_started_later,
        Ordering::Less => false,
    };
    (is_kept && !other.is_orphaned()).then(|| StoredAs::KeptElsewhere(other.queue().clone()))
}

fn keeps_due(found: &StoredSchedule, schedule: &CheckedSchedule) -> bool {
    let is_same = |timing| schedule.timing.is_same_pace(&timing);
    found.timing().is_ok_and(is_same) && !found.is_paused()
}

/// Compares two releases, such as `1.10.0` and `1.9.2-beta`. A release comes after its previews.
/// As in semver, parts of a preview that are numbers compare as numbers, and come before texts.
fn compared(one: &str, other: &str) -> Ordering {
    let parts = |release: &str| {
        let release = release.split('+').next().unwrap_or_default().to_owned();
        let (numbers, preview) = match release.split_once('-') {
            Some((numbers, preview)) => (numbers.to_owned(), Some(preview.to_owned())),
            None => (release, None),
        };
        let numbers: Vec<u64> = numbers.split('.').map(|part| part.parse().unwrap_or(0)).collect();
        let preview_parts = preview.as_deref().unwrap_or_default().split('.');
        let preview_parts: Vec<_> = preview_parts.map(preview_part).collect();
        (numbers, preview.is_none(), preview_parts)
    };
    parts(one).cmp(&parts(other))
}

/// Returns whether a part of a preview is a text, its number, and its text.
fn preview_part(part: &str) -> (bool, u64, String) {
    match part.parse() {
        Ok(number) => (false, number, String::new()),
        Err(_) => (true, 0, part.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_compare_as_numbers_and_come_after_their_previews() {
        for (older, newer) in [
            ("0.9.0", "0.10.0"),
            ("1.2.3", "1.2.4"),
            ("1.2.3-rc.1", "1.2.3"),
            ("1.2.3-alpha", "1.2.3-beta"),
            ("1.9.9", "2.0.0-alpha"),
            ("1.0.0-rc.9", "1.0.0-rc.10"),
            ("1.0.0-rc", "1.0.0-rc.1"),
            ("1.0.0-2", "1.0.0-alpha"),
        ] {
            assert_eq!(compared(older, newer), Ordering::Less, "{older} {newer}");
            assert_eq!(compared(newer, older), Ordering::Greater);
        }
        assert_eq!(compared("1.2.3+a", "1.2.3+b"), Ordering::Equal);
    }
}
