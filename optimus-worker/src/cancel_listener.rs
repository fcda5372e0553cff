//! Hears at once when a running task is cancelled; the heartbeat would tell it later.

use std::{sync::Arc, time::Duration};

use optimus_core::{
    QueueName, WorkerId,
    broker::{Broker, BrokerError},
    tell,
};

use crate::{attempts::Stop, executor, role::Role, shared::Shared};

/// Some middleboxes close connections over which nothing goes for a minute.
const BLOCK_FOR: Duration = Duration::from_secs(40);
const AFTER_ERROR: Duration = Duration::from_secs(1);
const AGAIN: Duration = Duration::ZERO;

/// Waits on this worker's own wakeup lists in all queues at once, since its id may differ from
/// queue to queue. Apart from the wait for work: that ends at each ring, and Redis would have to
/// enter and remove these lists with it each time.
pub(crate) struct CancelListener {
    shared: Arc<Shared>,
    broker: Broker,
    /// It was said that Redis refuses the wait.
    is_refused: bool,
}

impl CancelListener {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let broker = shared.broker.blocking("cancel listener");
        Self { shared, broker, is_refused: false }
    }

    /// Says once that Redis refuses the wait. That it is away, the connection says.
    fn note_problem(&mut self, problem: Option<&BrokerError>) {
        let refused = problem.filter(|problem| !problem.is_transient());
        if let (Some(problem), false) = (refused, self.is_refused) {
            let problem = problem.clone();
            let text = "can't wait for cancels with BLPOP; this worker learns of them from its \
                        heartbeats";
            tell!(self.shared.log, WARN, error = %problem, "{text}");
        }
        self.is_refused = refused.is_some();
    }
}

impl Role for CancelListener {
    async fn tick(&mut self) -> Duration {
        let queues = self.shared.queues.iter();
        let standings: Vec<(QueueName, WorkerId)> =
            queues.map(|queue| (queue.name.clone(), queue.worker())).collect();
        let heard = self.broker.wait_for_stop(&standings, BLOCK_FOR).await;
        self.note_problem(heard.as_ref().err());
        match heard {
            Ok(asked) => {
                // It may tell of an earlier attempt, which has ended.
                if let Some(lease) = asked {
                    if let Some(attempt) = self.shared.attempts.of(&lease) {
                        attempt.stop(Stop::Cancelled);
                    }
                    executor::let_go(&self.shared, |held| *held == lease);
                }
                AGAIN
            }
            Err(_) => AFTER_ERROR,
        }
    }
}
