//! The queues that reject heartbeats or claims, and when that is logged: [`Rejections`].

use std::time::Duration;

use optimus_core::{broker::BrokerError, log::Log, log_event};
use tokio::time::Instant;

use crate::served_queue::Served;

/// How often rejections are logged. Each call is sent again much sooner.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// What was logged of the calls of one kind that Redis rejected.
#[derive(Debug)]
pub(crate) struct Rejections {
    /// What is rejected.
    calls: &'static str,
    /// The queues whose last call was rejected, by their position.
    queues: Vec<usize>,
    logged_at: Option<Instant>,
}

/// What is to be logged.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    /// So many queues reject their calls.
    Rejected(usize),
    /// The last of them accepts it again.
    Accepted,
}

impl Rejections {
    pub(crate) fn of(calls: &'static str) -> Self {
        Self { calls, queues: Vec::new(), logged_at: None }
    }

    /// Processes the answer to the call of the queue at that position. However many queues reject
    /// theirs, one event is logged at first, one each minute, and one at the end.
    pub(crate) fn answered(
        &mut self,
        log: &Log,
        (at, queue): (usize, &Served),
        answer: Result<(), &BrokerError>,
    ) {
        let calls = self.calls;
        match (self.note(at, answer), answer) {
            (Some(Change::Rejected(queues)), Err(problem)) => {
                let (queue, problem) = (queue.name.clone(), problem.clone());
                let text = "they are sent again until it takes them";
                log_event!(
                    log,
                    ERROR,
                    %queue,
                    queues,
                    error = %problem,
                    "Redis rejects {calls}; {text}"
                );
            }
            (Some(Change::Accepted), _) => {
                log_event!(log, INFO, "Redis accepts {calls} of all queues again");
            }
            _ => {}
        }
    }

    fn note(&mut self, at: usize, answer: Result<(), &BrokerError>) -> Option<Change> {
        let known = self.queues.iter().position(|other| *other == at);
        match answer {
            Ok(()) => {
                self.queues.swap_remove(known?);
                let is_over = self.queues.is_empty() && self.logged_at.take().is_some();
                is_over.then_some(Change::Accepted)
            }
            // The outage is logged by the connection.
            Err(problem) if problem.is_transient() => None,
            Err(_) => {
                if known.is_none() {
                    self.queues.push(at);
                }
                if self.logged_at.is_some_and(|logged_at| logged_at.elapsed() < LOG_EVERY) {
                    return None;
                }
                self.logged_at = Some(Instant::now());
                Some(Change::Rejected(self.queues.len()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn rejections_are_logged_at_first_then_each_minute_and_at_their_end() {
        let rejection = BrokerError::Rejected(String::new());
        let (mut beats, rejected) = (Rejections::of("heartbeats"), Err(&rejection));
        assert_eq!(beats.note(0, Ok(())), None);
        assert_eq!(beats.note(0, rejected), Some(Change::Rejected(1)));
        for _ in 0..60 * 4 {
            advance(Duration::from_millis(249)).await;
            for at in 0..200 {
                assert_eq!(beats.note(at, rejected), None);
            }
        }
        advance(Duration::from_secs(1)).await;
        assert_eq!(beats.note(7, rejected), Some(Change::Rejected(200)));
        assert_eq!(beats.note(7, Err(&BrokerError::Unknown(String::new()))), None);
        for at in 1..200 {
            assert_eq!(beats.note(at, Ok(())), None);
        }
        assert_eq!(beats.note(0, Ok(())), Some(Change::Accepted));
        assert_eq!(beats.note(1, rejected), Some(Change::Rejected(1)));
    }
}
