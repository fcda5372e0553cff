//! What operators watch of all queues at once: [`QueueOverview`].

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::{
    Error,
    broker::{BrokerError, Counts, KnownKeys, Overdue, QueueSeen, Totals},
    id::QueueName,
    inspect::Inspector,
    limit::Limit,
    platform::instant,
    stats::TaskStats,
};

/// What operators watch of a queue.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct QueueOverview {
    /// The queue.
    pub queue: QueueName,
    /// How many tasks are in each state. A queue that a task has paused for a while, by
    /// [`Retry::pause_queue`](crate::Retry::pause_queue), counts as paused.
    pub counts: Counts,
    /// What ended so far.
    pub totals: Totals,
    /// How many delayed tasks, retries and runs of gathered tasks are due, and are not counted as
    /// ready, because no worker has claimed since then. Tasks that wait for a limit that has opened
    /// count as one.
    pub due: u64,
    /// How long the oldest of the first tasks that could run waits: since the first one without a
    /// priority is ready, since the submit of the first 100 with one, and since the first task of
    /// `due` is due. One that a worker has given back, or that was lost with its worker, counts
    /// since its submit. `None` if no task could run.
    pub oldest: Option<Duration>,
    /// The limit of the whole queue, if an operator has set one.
    pub limit: Option<Limit>,
    /// How many tasks this limit lets start at once now, if it has a rate.
    pub tokens: Option<u64>,
    /// The time from which on `oldest` counts. Unlike `oldest`, it does not depend on the moment of
    /// the read.
    pub oldest_since: Option<DateTime<Utc>>,
    /// How late the schedule of the queue is that is most overdue; `None` if none is. A schedule
    /// that was removed from the code does not count, a minute after it was due, while a worker
    /// serves the queue: see [`is_orphaned`](crate::ScheduleDetails::is_orphaned).
    pub schedule_lag: Option<Duration>,
    /// What ended in the present hour and in the one before, as workers have counted.
    pub recent: TaskStats,
    /// Why the queue can't be read, such as a key that another program has written. Then all
    /// numbers are 0.
    pub problem: Option<Error>,
}

impl QueueOverview {
    fn of(queue: &QueueName, seen: &QueueSeen, overdue: Overdue) -> Self {
        let since = |at_ms: u64| Duration::from_millis(seen.now_ms.saturating_sub(at_ms));
        let first_ready_ms = seen.first_ready_ms.filter(|_| seen.counts.ready > 0);
        let oldest_ms = first_ready_ms.into_iter().chain(overdue.since_ms).min();
        Self {
            queue: queue.clone(),
            due: overdue.tasks,
            limit: overdue.limit,
            tokens: overdue.tokens,
            oldest: oldest_ms.map(since),
            oldest_since: oldest_ms.map(instant),
            schedule_lag: seen.next_schedule_ms.map(since).filter(|lag| !lag.is_zero()),
            recent: seen.stats.total(),
            counts: Counts { paused: seen.counts.paused || overdue.is_shut, ..seen.counts },
            totals: seen.totals,
            problem: None,
        }
    }

    fn unreadable(queue: &QueueName, problem: BrokerError) -> Self {
        Self {
            queue: queue.clone(),
            counts: Counts::default(),
            totals: Totals::default(),
            due: 0,
            limit: None,
            tokens: None,
            oldest: None,
            oldest_since: None,
            schedule_lag: None,
            recent: TaskStats::default(),
            problem: Some(problem.into()),
        }
    }
}

impl Inspector {
    /// Reads what operators watch of these queues: up to 16 commands a queue, two of one without
    /// tasks, one for each worker of a queue, eight for one in which tasks are due that no worker
    /// has claimed, and three for a queue with limits; 50 queues in a write. The numbers of one
    /// queue are of almost the same moment: a task that moves meanwhile may count twice;
    /// [`counts`](Self::counts) has one moment. A queue that can't be read has a
    /// [`problem`](QueueOverview::problem), and the others are read.
    ///
    /// ```
    /// # async fn doc(client: &optimus_core::Client) -> Result<(), optimus_core::Error> {
    /// let inspector = client.inspector();
    /// for seen in inspector.overview(&inspector.queues().await?).await? {
    ///     println!("{}: {} ready, for {:?}", seen.queue, seen.counts.ready, seen.oldest);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::is_unavailable`].
    pub async fn overview(&self, queues: &[QueueName]) -> Result<Vec<QueueOverview>, Error> {
        self.overview_again(queues, &mut KnownKeys::default()).await
    }

    /// Reads as [`overview`](Self::overview), with fewer commands, from the second time on.
    pub(crate) async fn overview_again(
        &self,
        queues: &[QueueName],
        known: &mut KnownKeys,
    ) -> Result<Vec<QueueOverview>, Error> {
        let seen = self.broker.overview(queues, known).await?;
        let readable = queues.iter().zip(&seen);
        let readable = readable.filter_map(|(queue, seen)| Some((queue, seen.as_ref().ok()?)));
        let overdue = self.broker.overdue(&readable.collect::<Vec<_>>()).await?;
        let mut overdue = overdue.into_iter();
        let of_queue = |(queue, seen): (&QueueName, Result<QueueSeen, _>)| {
            let read = seen.and_then(|seen| {
                let overdue = overdue.next().expect("an answer for each queue")?;
                Ok(QueueOverview::of(queue, &seen, overdue))
            });
            read.unwrap_or_else(|problem| QueueOverview::unreadable(queue, problem))
        };
        Ok(queues.iter().zip(seen).map(of_queue).collect())
    }
}
