//! Carries the effects of a queue's tasks to other queues: what asks for prerequisites there, and
//! what tells them that prerequisites have ended.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use optimus_core::{
    QueueName,
    broker::{Broker, BrokerError},
    interval, log_event,
};
use tokio::time::Instant;

use crate::{role::Role, served_queue::Served, shared::Shared};

/// The workers of a queue together look for effects in this time, for any number of workers. A
/// worker whose report has caused an effect carries it at once.
const AVERAGE: Duration = Duration::from_secs(15);
/// The same for a queue in which the last look has found effects, or tasks that ask again or give
/// up.
const AVERAGE_USED: Duration = Duration::from_secs(5);
/// The longest rest, since the number of workers changes.
const REST_MAX: Duration = Duration::from_secs(60);
/// A look includes the queues whose time comes this soon.
const TOGETHER: Duration = Duration::from_millis(500);
/// The most turns for one queue, before other queues have theirs.
const TURNS_MAX: usize = 16;

/// The role that relays effects. The scripts make every step safe to repeat, so several workers can
/// relay the effects of one queue.
pub(crate) struct Relay {
    shared: Arc<Shared>,
    broker: Broker,
    /// The last look at each queue.
    looks: Vec<Look>,
    unreachable: Unreachable,
}

/// The last look at a queue.
#[derive(Debug, Clone, Copy)]
struct Look {
    /// `None` if there was none.
    at: Option<Instant>,
    /// A number in \[0, 1): the place of the next look in its time span.
    chance: f64,
    /// Whether it has found something.
    has_found: bool,
}

/// The queues to which no effect can be carried, by the queue of the effects, so that an outage is
/// logged once.
#[derive(Default)]
pub(crate) struct Unreachable(BTreeMap<QueueName, BTreeSet<QueueName>>);

impl Unreachable {
    /// Notes where effects of a queue could not be carried in a turn. Returns those of these queues
    /// that could be reached before.
    fn note(
        &mut self,
        source: &QueueName,
        failed: Vec<(QueueName, BrokerError)>,
    ) -> Vec<(QueueName, BrokerError)> {
        let before = self.0.remove(source).unwrap_or_default();
        if !failed.is_empty() {
            let now = failed.iter().map(|(target, _)| target.clone()).collect();
            self.0.insert(source.clone(), now);
        }
        failed.into_iter().filter(|(target, _)| !before.contains(target)).collect()
    }
}

impl Relay {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let broker = shared.maintenance.clone();
        let never = |_| Look { at: None, chance: fastrand::f64(), has_found: false };
        let looks = shared.queues.iter().map(never).collect();
        Self { shared, broker, looks, unreachable: Unreachable::default() }
    }

    /// Relays what the last reports of this worker have caused.
    pub(crate) async fn leave(&mut self) {
        let shared = self.shared.clone();
        for queue in shared.queues.iter().filter(|queue| queue.take_posted()) {
            self.relay(&queue.name).await;
        }
    }

    /// Returns how long it is until the next look at the queue. A worker that starts looks at once,
    /// because the worker before it may have died with effects to carry.
    fn until_look(&self, place: usize, queue: &Served) -> Duration {
        let Look { at: Some(at), chance, has_found } = self.looks[place] else {
            return Duration::ZERO;
        };
        let average = if has_found { AVERAGE_USED } else { AVERAGE };
        interval(average, queue.workers(), chance).saturating_sub(at.elapsed())
    }

    /// Returns the queues that have effects, of those whose time has come.
    async fn found(&mut self) -> Vec<QueueName> {
        let shared = self.shared.clone();
        let due = shared.queues.iter().enumerate();
        let due = due.filter(|(place, queue)| self.until_look(*place, queue) <= TOGETHER);
        let (places, names): (Vec<usize>, Vec<QueueName>) =
            due.map(|(place, queue)| (place, queue.name.clone())).unzip();
        if places.is_empty() {
            return names;
        }
        let have = self.broker.outboxes(&names).await.unwrap_or_else(|problem| {
            let text = "could not look for effects on other queues";
            log_event!(shared.log, DEBUG, error = %problem, "{text}");
            vec![false; names.len()]
        });
        let mut found = Vec::new();
        for ((place, name), has_found) in places.into_iter().zip(names).zip(have) {
            let (at, chance) = (Some(Instant::now()), fastrand::f64());
            self.looks[place] = Look { at, chance, has_found };
            found.extend(has_found.then_some(name));
        }
        found
    }

    /// Relays the effects of one queue; returns whether there is more to do.
    async fn relay(&mut self, queue: &QueueName) -> bool {
        let shared = self.shared.clone();
        relay(&shared, &self.broker, queue, &mut self.unreachable).await
    }

    fn rest(&self) -> Duration {
        let queues = self.shared.queues.iter().enumerate();
        queues.map(|(place, queue)| self.until_look(place, queue)).fold(REST_MAX, Duration::min)
    }
}

/// Relays the effects of one queue in a limited number of turns; returns whether there is more to
/// do.
pub(crate) async fn relay(
    shared: &Shared,
    broker: &Broker,
    queue: &QueueName,
    unreachable: &mut Unreachable,
) -> bool {
    for _ in 0..TURNS_MAX {
        let turn = broker.relay(queue).await;
        let (more, failed) = match turn {
            Ok(turn) => (turn.more, turn.failed),
            Err(problem) => (false, vec![(queue.clone(), problem)]),
        };
        for (target, problem) in unreachable.note(queue, failed) {
            let queue = queue.clone();
            if problem.is_transient() {
                let text = "could not relay effects of a queue; they stay in its outbox";
                log_event!(shared.log, DEBUG, %queue, %target, error = %problem, "{text}");
            } else {
                let text = "Redis refuses the effects of a queue on another one; they stay in its \
                            outbox, and tasks that wait for them stay blocked";
                log_event!(shared.log, ERROR, %queue, %target, error = %problem, "{text}");
            }
        }
        if !more || shared.shutdown.roles().is_cancelled() {
            return false;
        }
    }
    true
}

impl Role for Relay {
    async fn tick(&mut self) -> Duration {
        let shared = self.shared.clone();
        let posted = shared.queues.iter().filter(|queue| queue.take_posted());
        let mut names: BTreeSet<QueueName> = posted.map(|queue| queue.name.clone()).collect();
        names.extend(self.found().await);
        for name in names {
            if self.relay(&name).await
                && let Some(place) = shared.queues.place(&name)
            {
                shared.queues[place].effects_posted();
            }
        }
        self.rest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_worker::idle_worker;

    fn name(queue: &str) -> QueueName {
        QueueName::new(queue).unwrap()
    }

    #[test]
    fn a_queue_that_stays_unreachable_is_reported_once_for_each_outage() {
        let mut unreachable = Unreachable::default();
        let mut note = |source: &str, targets: &[&str]| {
            let problem = || BrokerError::Unknown("it broke".into());
            let failed = targets.iter().map(|target| (name(target), problem())).collect();
            unreachable.note(&name(source), failed).len()
        };
        assert_eq!(note("a", &["b", "c"]), 2);
        assert_eq!(note("a", &["b", "c"]), 0);
        assert_eq!(note("d", &["b"]), 1, "of another queue");
        assert_eq!(note("a", &["c"]), 0);
        assert_eq!(note("a", &["b", "c"]), 1, "it was reached meanwhile");
        assert_eq!(note("a", &[]), 0);
        assert_eq!(note("a", &["b"]), 1);
        assert_eq!(note("a", &[]) + note("d", &[]), 0);
        assert!(unreachable.0.is_empty(), "queues that are reached are forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn the_workers_of_a_queue_share_the_looks() {
        let (_client, shared) = idle_worker("relay-shares").await;
        let mut relay = Relay::new(shared.clone());
        let rest = relay.tick().await;
        assert!(rest >= AVERAGE / 2 && rest < AVERAGE * 3 / 2, "{rest:?}");
        shared.queues[0].set_workers(1_000);
        assert_eq!(relay.rest(), REST_MAX);
        assert!(relay.until_look(0, &shared.queues[0]) >= AVERAGE * 500);
        shared.queues[0].set_workers(1);
        assert!(relay.rest() <= rest, "the others have left");
        relay.looks[0].has_found = true;
        assert!(relay.rest() < AVERAGE_USED * 3 / 2);
    }
}
