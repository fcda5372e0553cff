//! Tasks that this worker can't run yet, because it does not know their name or their record is
//! newer. Usually a deploy is under way, so these tasks wait and use no attempt.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use optimus_core::QueueName;
use tokio::time::Instant;

/// How often the log says that tasks can't be run for one reason.
const SAID_EVERY: Duration = Duration::from_secs(60);
/// How many reasons are remembered. They have names that clients have sent.
const REASONS_MAX: usize = 64;
/// A reason is forgotten if the log has not said it for so long.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3_600);
const FIRST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(60);

/// Returns how long a task waits after it was a misfit for the `n`th time (from 1). The wait starts
/// at 5 s and doubles up to 60 s.
pub(crate) fn wait(n: u32) -> Duration {
    FIRST.saturating_mul(1 << n.saturating_sub(1).min(10)).min(LONGEST)
}

/// Returns whether the waits of `n` misfits have used up the grace.
pub(crate) fn is_over(n: u32, grace: Duration) -> bool {
    let ramp: Duration = (1..=n.min(5)).map(wait).sum();
    ramp + LONGEST.saturating_mul(n.saturating_sub(5)) >= grace
}

/// What this worker has given back because it can't run it.
#[derive(Debug, Default)]
pub(crate) struct Misfits(Mutex<Given>);

#[derive(Debug, Default)]
struct Given {
    by_queue: HashMap<QueueName, u64>,
    by_reason: HashMap<(QueueName, String), Unsaid>,
}

/// What the log has not said of a reason.
#[derive(Debug)]
struct Unsaid {
    since: Instant,
    times: u64,
}

impl Misfits {
    /// Counts a task of a queue that is given back. Returns what the log must say, at first and
    /// each minute: how often that was since the last time, and why.
    pub(crate) fn note(&self, queue: &QueueName, why: &str) -> Option<(u64, String)> {
        let mut given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *given.by_queue.entry(queue.clone()).or_default() += 1;
        let (mut reason, mut text) = ((queue.clone(), why.to_owned()), why.to_owned());
        if !given.by_reason.contains_key(&reason) {
            given.by_reason.retain(|_, unsaid| unsaid.since.elapsed() < FORGOTTEN_AFTER);
            if given.by_reason.len() >= REASONS_MAX {
                reason.1.clear();
                text = format!("several, such as: {why}");
            }
        }
        let Some(unsaid) = given.by_reason.get_mut(&reason) else {
            given.by_reason.insert(reason, Unsaid { since: Instant::now(), times: 0 });
            return Some((1, text));
        };
        unsaid.times += 1;
        (unsaid.since.elapsed() >= SAID_EVERY).then(|| {
            unsaid.since = Instant::now();
            (std::mem::take(&mut unsaid.times), text)
        })
    }

    /// Returns how many tasks of a queue were given back since the start.
    #[cfg(any(feature = "metrics", test))]
    pub(crate) fn of(&self, queue: &QueueName) -> u64 {
        let given = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        given.by_queue.get(queue).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_log_says_a_reason_at_first_and_each_minute_with_how_often_it_was_since_then() {
        let (misfits, queue) = (Misfits::default(), QueueName::new("default").unwrap());
        let said = |times, why: &str| Some((times, why.to_owned()));
        assert_eq!(misfits.note(&queue, "no task a"), said(1, "no task a"));
        assert_eq!(misfits.note(&queue, "no task b"), said(1, "no task b"));
        for _ in 0..5 {
            assert_eq!(misfits.note(&queue, "no task a"), None);
        }
        tokio::time::advance(SAID_EVERY).await;
        assert_eq!(misfits.note(&queue, "no task a"), said(6, "no task a"));
        assert_eq!(misfits.note(&queue, "no task a"), None);
        assert_eq!(misfits.of(&queue), 9);
    }

    #[tokio::test(start_paused = true)]
    async fn thousands_of_reasons_are_remembered_as_few() {
        let (misfits, queue) = (Misfits::default(), QueueName::new("default").unwrap());
        let said = (0..10_000).filter_map(|n| misfits.note(&queue, &format!("no task {n}")));
        let said: Vec<_> = said.collect();
        assert_eq!(said.len(), REASONS_MAX + 1);
        assert_eq!(said[REASONS_MAX].1, "several, such as: no task 64");
        assert_eq!(misfits.of(&queue), 10_000);
        tokio::time::advance(FORGOTTEN_AFTER).await;
        assert_eq!(misfits.note(&queue, "no task 70"), Some((1, "no task 70".to_owned())));
    }

    #[test]
    fn a_misfit_waits_5_s_doubling_to_60() {
        let waits: Vec<u64> = (1..=6).map(|n| wait(n).as_secs()).collect();
        assert_eq!(waits, [5, 10, 20, 40, 60, 60]);
    }

    #[test]
    fn a_misfit_is_marked_dead_once_its_waits_add_up_to_the_grace() {
        let hour = Duration::from_secs(3600);
        assert!(!is_over(0, hour));
        let waited = |n| (1..=n).map(wait).sum::<Duration>();
        for n in 1..200 {
            assert_eq!(is_over(n, hour), waited(n) >= hour, "{n}");
        }
    }
}
