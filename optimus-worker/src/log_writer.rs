//! Adds what handlers say to the logs of their tasks: [`LogWriter`].

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use optimus_core::{
    AttemptLog, LogDesk, QueueName,
    broker::{ANNOTATED_MAX, Broker, BrokerError, SaidLines},
    log_event,
};
use tokio::time::{Instant, timeout};

use crate::{role::Role, shared::Shared};

/// The least time between two turns.
const EVERY: Duration = Duration::from_secs(1);
/// How long the role rests if nothing was said. The first line wakes it.
const ASLEEP: Duration = Duration::from_secs(3_600);
/// The most bytes of lines in a call, so that it keeps Redis for a short time.
const CALL_BYTES_MAX: usize = 64 << 10;
/// The most bytes of lines in a turn. Other attempts wait, and drop their earliest lines.
const TURN_BYTES_MAX: usize = 512 << 10;
/// How long the worker tries to add the last lines when it ends.
const LAST_WITHIN: Duration = Duration::from_millis(500);

/// The role that adds the lines. A worker that is killed loses those since its last turn.
pub(crate) struct LogWriter {
    shared: Arc<Shared>,
    broker: Broker,
    next: Instant,
}

/// One call, and the attempts whose lines it has.
#[derive(Default)]
struct Batch {
    logs: Vec<Arc<AttemptLog>>,
    said: Vec<SaidLines>,
    bytes: usize,
}

impl LogWriter {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        // Long lines on a slow link delay no heartbeat.
        let broker = shared.maintenance.separate("log writer");
        Self { shared, broker, next: Instant::now() }
    }

    /// Adds the last lines of a worker that ends.
    pub(crate) async fn leave(&mut self) {
        self.broker = self.broker.within(LAST_WITHIN);
        let all = async { while !self.shared.log_desk.is_empty() && self.send().await {} };
        if timeout(LAST_WITHIN, all).await.is_err() {
            log_event!(self.shared.log, DEBUG, "could not add the last log lines in time");
        }
    }

    /// Sends the lines of the attempts that have waited longest, all calls in one write. Returns
    /// whether Redis has them.
    async fn send(&self) -> bool {
        let batches = batches(&self.shared.log_desk);
        let calls = batches.iter();
        let calls = calls.map(|(queue, batch)| self.broker.annotate_call(queue, &batch.said));
        let answers = self.broker.run_all(calls.collect()).await;
        let mut has_worked = true;
        for ((queue, batch), answer) in batches.into_iter().zip(answers) {
            let answer = answer.map(drop);
            has_worked &= answer.is_ok();
            self.take_in(&queue, &batch, answer);
        }
        has_worked
    }

    fn take_in(&self, queue: &QueueName, batch: &Batch, answer: Result<(), BrokerError>) {
        // Redis adds lines that are sent again only once.
        let is_over = matches!(answer, Ok(()) | Err(BrokerError::Rejected(_)));
        for (log, said) in batch.logs.iter().zip(&batch.said) {
            if is_over {
                self.shared.log_desk.sent(log, said.last);
            } else {
                self.shared.log_desk.again(log);
            }
        }
        if let Err(problem) = answer {
            let (queue, tasks) = (queue.clone(), batch.logs.len());
            let text = if is_over { "dropped log lines of tasks" } else { "log lines must wait" };
            log_event!(self.shared.log, DEBUG, %queue, tasks, error = %problem, "{text}");
        }
    }
}

/// Takes the lines of a turn, as calls.
fn batches(desk: &LogDesk) -> Vec<(QueueName, Batch)> {
    let (mut open, mut full) = (BTreeMap::<QueueName, Batch>::new(), Vec::new());
    let mut bytes = 0;
    while bytes < TURN_BYTES_MAX
        && let Some(log) = desk.take()
    {
        let said = log.unsent();
        if said.count == 0 {
            continue;
        }
        bytes += said.text.len();
        let queue = said.id.queue().clone();
        let batch = open.entry(queue.clone()).or_default();
        batch.bytes += said.text.len();
        batch.logs.push(log);
        batch.said.push(said);
        if batch.said.len() == ANNOTATED_MAX || batch.bytes >= CALL_BYTES_MAX {
            full.extend(open.remove_entry(&queue));
        }
    }
    full.extend(open);
    full
}

impl Role for LogWriter {
    async fn tick(&mut self) -> Duration {
        let (desk, sleeper) = (&self.shared.log_desk, &self.shared.wakeups.log_writer);
        let rest = self.next.saturating_duration_since(Instant::now());
        if !rest.is_zero() {
            return rest;
        }
        if sleeper.fall_asleep(|| desk.is_empty()) {
            return ASLEEP;
        }
        self.send().await;
        self.next = Instant::now() + EVERY;
        EVERY
    }
}

#[cfg(test)]
#[path = "log_writer_tests.rs"]
mod tests;
