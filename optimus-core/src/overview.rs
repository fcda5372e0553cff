//! What operators watch of all queues at once: [`QueueOverview`].

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::{
    Error,
    broker::{BrokerError, Counts, QueueSeen, Totals},
    id::QueueName,
    inspect::Inspector,
    platform::instant,
    stats::TaskStats,
};

/// What operators watch of a queue.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct QueueOverview {
    /// The queue.
    pub queue: QueueName,
    /// How many tasks are in each state.
    pub counts: Counts,
    /// What ended so far.
    pub totals: Totals,
    /// The time since the submit of the oldest of the first ready tasks: the first one without a
    /// priority, and the first 100 with one. `None` if no task is ready.
    pub oldest: Option<Duration>,
    /// When that task was submitted, by the clock of its client. Unlike `oldest`, it does not
    /// depend on the moment of the read.
    pub oldest_submitted: Option<DateTime<Utc>>,
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
    fn of(queue: &QueueName, seen: QueueSeen) -> Self {
        let since = |at_ms: u64| Duration::from_millis(seen.now_ms.saturating_sub(at_ms));
        let first_ready_ms = seen.first_ready_ms.filter(|_| seen.counts.ready > 0);
        Self {
            queue: queue.clone(),
            oldest: first_ready_ms.map(since),
            oldest_submitted: first_ready_ms.map(instant),
            schedule_lag: seen.next_schedule_ms.map(since).filter(|lag| !lag.is_zero()),
            recent: seen.stats.total(),
            counts: seen.counts,
            totals: seen.totals,
            problem: None,
        }
    }

    fn unreadable(queue: &QueueName, problem: BrokerError) -> Self {
        Self {
            queue: queue.clone(),
            counts: Counts::default(),
            totals: Totals::default(),
            oldest: None,
            oldest_submitted: None,
            schedule_lag: None,
            recent: TaskStats::default(),
            problem: Some(problem.into()),
        }
    }
}

impl Inspector {
    /// Reads what operators watch of these queues: 15 commands a queue and one for each worker of a
    /// queue, 50 queues in a write. The numbers of one queue are of almost the same moment: a task
    /// that moves meanwhile may count twice; [`counts`](Self::counts) has one moment. A queue that
    /// can't be read has a [`problem`](QueueOverview::problem), and the others are read.
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
        let seen = self.broker.overview(queues).await?;
        let of_queue = |(queue, seen): (&QueueName, Result<_, _>)| match seen {
            Ok(seen) => QueueOverview::of(queue, seen),
            Err(problem) => QueueOverview::unreadable(queue, problem),
        };
        Ok(queues.iter().zip(seen).map(of_queue).collect())
    }
}
