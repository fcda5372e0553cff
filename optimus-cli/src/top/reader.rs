//! Reads Redis again and again: [`Reader`].

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use optimus_core::{Client, Dying, Error, Failures, QueueName, Sample, Sampler};
use tokio::sync::watch;

use super::{
    rates::Rates,
    seen::{FailureLine, ProcessLine, QueueLine, Seen},
    view::Page,
};
use crate::{output::secrets::Secrets, session::Session};

/// How many queues are read. Of more, those that are first by name are.
const QUEUES_MAX: usize = 2_000;
/// The causes of deaths are read in so many queues.
const DYING_MAX: usize = 20;
/// A wait is at least so many times as long as the read before it.
const WAIT_TIMES: u32 = 4;
/// The sampler also says how many slots would end a backlog in this time.
const TARGET: Duration = Duration::from_secs(60);

/// Reads queues and processes, and causes of deaths while they are wanted.
pub(super) struct Reader {
    client: Client,
    sampler: Sampler,
    failures: Failures,
    rates: Rates,
    every: Duration,
    secrets: Secrets,
}

impl Reader {
    pub(super) fn new(session: &Session<'_>, queues: Vec<QueueName>, every: Duration) -> Self {
        let (client, secrets) = (&session.client, session.out.secrets());
        Self {
            sampler: Sampler::new(client.inspector(), queues, QUEUES_MAX, TARGET),
            client: client.clone(),
            failures: Failures::default(),
            rates: Rates::default(),
            every,
            secrets,
        }
    }

    /// Reads all once.
    pub(super) async fn read(&mut self, page: Page) -> Result<Seen, Error> {
        let sample = self.sampler.sample().await?;
        let inspector = self.client.inspector();
        let now = inspector.now().await?;
        let failures = if page == Page::Failures {
            let (found, _) = self.failures.read(&inspector, Dying::of(&sample), DYING_MAX).await?;
            let secrets = self.secrets;
            let rows = found.iter().flat_map(|(queue, found)| {
                found.rows.iter().map(move |row| FailureLine::of(queue, row, secrets))
            });
            Some(rows.collect())
        } else {
            None
        };
        let mut seen = Seen { now, failures, ..self.seen(&sample) };
        seen.redact(self.secrets);
        Ok(seen)
    }

    fn seen(&mut self, sample: &Sample) -> Seen {
        let at = Instant::now();
        self.rates.retain(&sample.queues);
        let mut queues = Vec::with_capacity(sample.queues.len());
        for queue in &sample.queues {
            let rate = self.rates.note(&queue.seen.queue, at, queue.seen.totals.successes);
            queues.push(QueueLine::of(queue, rate));
        }
        queues.extend(sample.unreadable.iter().map(|(queue, problem)| QueueLine {
            queue: queue.to_string(),
            problem: Some(problem.to_string()),
            ..QueueLine::default()
        }));
        Seen {
            namespace: self.client.broker().namespace().to_owned(),
            now: chrono::DateTime::UNIX_EPOCH,
            at,
            queues,
            left_out: sample.left_out,
            processes: sample.process_rows.iter().map(ProcessLine::from).collect(),
            process_count: sample.processes,
            slots_busy: sample.slots_busy,
            slots_allowed: sample.slots_allowed,
            failures: None,
            problem: None,
        }
    }

    /// Reads until nobody wants it any more.
    pub(super) async fn run(
        mut self,
        mut shown: watch::Receiver<Page>,
        seen: watch::Sender<Arc<Seen>>,
    ) {
        let mut took = Duration::ZERO;
        loop {
            tokio::select! {
                () = tokio::time::sleep(self.every.max(took * WAIT_TIMES)) => {}
                changed = shown.changed() => if changed.is_err() {
                    return;
                },
            }
            let begun = Instant::now();
            let page = *shown.borrow_and_update();
            let read = self.read(page).await;
            took = begun.elapsed();
            let last = seen.borrow().clone();
            let now = read.unwrap_or_else(|problem| {
                // An outage takes long, and is no work for Redis.
                took = Duration::ZERO;
                Seen { problem: Some(problem.to_string()), ..Seen::clone(&last) }
            });
            let failures = now.failures.clone().or_else(|| last.failures.clone());
            if seen.send(Arc::new(Seen { failures, ..now })).is_err() {
                return;
            }
        }
    }
}
