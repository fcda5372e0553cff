//! Stores a schedule: [`store_schedule`]. What is stored under its name decides when it is due.

use std::cmp::Ordering;

use crate::{
    broker::{Broker, BrokerError, NewSchedule, Refusal, StoredSchedule},
    schedule::CheckedSchedule,
    scheduled_task::ScheduledTask,
};

/// How often a schedule is read again because somebody has changed it meanwhile.
pub(crate) const READS_MAX: usize = 16;

/// What became of a schedule that was to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredAs {
    /// It is new, or has replaced another content.
    Stored,
    /// It has replaced another content of the same release.
    Replaced,
    /// It was stored already.
    Unchanged,
    /// A program of this later release has stored another content.
    KeptNewer(String),
    /// A program's code has a schedule of this name.
    IsOfCode,
    /// A schedule of this name was made at run time.
    IsMadeAtRunTime,
}

/// Stores a schedule in the queue of its task. If its instants are those of the stored one, it is
/// due as before. Otherwise it is due after now, and after its latest instant: no change makes an
/// instant of the past due.
#[doc(hidden)]
pub async fn store_schedule(
    broker: &Broker,
    schedule: &CheckedSchedule,
) -> Result<StoredAs, BrokerError> {
    let CheckedSchedule { name, timing, release, submission } = schedule;
    let queue = submission.id().queue();
    let (record, blob) = ScheduledTask::of(submission);
    let (timing_text, release) = (timing.stored(), release.as_deref());
    for _ in 0..READS_MAX {
        let found = broker.find_schedule(queue, name).await?;
        let is_same =
            found.as_ref().is_some_and(|found| found.is_same(&timing_text, &record, &blob));
        let stored_release = found.as_ref().map(StoredSchedule::release);
        let stored_as = match (stored_release.as_ref().map(Option::as_deref), release) {
            (Some(Some(_)), None) => return Ok(StoredAs::IsOfCode),
            (Some(None), Some(_)) => return Ok(StoredAs::IsMadeAtRunTime),
            (Some(stored), own) if is_same && stored == own => return Ok(StoredAs::Unchanged),
            (Some(Some(stored)), Some(own)) => match compared(stored, own) {
                Ordering::Greater => return Ok(StoredAs::KeptNewer(stored.to_owned())),
                Ordering::Equal => StoredAs::Replaced,
                Ordering::Less => StoredAs::Stored,
            },
            (None, _) | (Some(None), None) => StoredAs::Stored,
        };
        let new = NewSchedule {
            name,
            edition: found.as_ref().map_or(0, StoredSchedule::edition),
            release: release.unwrap_or_default(),
            due_ms: match &found {
                Some(found) if keeps_due(found, schedule) => found.due_ms,
                Some(found) => timing.next_ms(found.now_ms.max(found.last_ms().unwrap_or(0))),
                None => timing.next_ms(broker.now_ms().await?),
            },
            timing: &timing_text,
            record: &record,
            blob: &blob,
        };
        match broker.schedule(queue, new).await {
            Err(problem) if problem.refusal() == Some(Refusal::Stale) => {}
            answer => return answer.map(|()| stored_as),
        }
    }
    Err(BrokerError::NotDone("the schedule changes again and again".into()))
}

fn keeps_due(found: &StoredSchedule, schedule: &CheckedSchedule) -> bool {
    let is_same = |timing| schedule.timing.is_same_pace(&timing);
    found.timing().is_ok_and(is_same) && !found.is_paused()
}

/// Returns whether the first release is later than the second.
#[doc(hidden)]
pub fn is_later_release(one: &str, other: &str) -> bool {
    compared(one, other) == Ordering::Greater
}

/// Compares two releases, such as `1.10.0` and `1.9.2-beta`. A release comes after its previews.
fn compared(one: &str, other: &str) -> Ordering {
    let parts = |release: &str| {
        let release = release.split('+').next().unwrap_or_default().to_owned();
        let (numbers, preview) = match release.split_once('-') {
            Some((numbers, preview)) => (numbers.to_owned(), Some(preview.to_owned())),
            None => (release, None),
        };
        let numbers: Vec<u64> = numbers.split('.').map(|part| part.parse().unwrap_or(0)).collect();
        (numbers, preview.is_none(), preview)
    };
    parts(one).cmp(&parts(other))
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
        ] {
            assert_eq!(compared(older, newer), Ordering::Less, "{older} {newer}");
            assert_eq!(compared(newer, older), Ordering::Greater);
        }
        assert_eq!(compared("1.2.3+a", "1.2.3+b"), Ordering::Equal);
    }
}
