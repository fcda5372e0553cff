//! One read of all queues, as metrics: [`Sample`].

use std::time::Duration;

use optimus_core::{Error, QueueName, QueueOverview};
use optimus_metrics::{Exposition, names};

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    /// The queues that are shown.
    pub(crate) queues: Vec<QueueSample>,
    /// Those that can't be read, and why.
    pub(crate) unreadable: Vec<(QueueName, Error)>,
    pub(crate) left_out: u64,
    /// Whether these are all queues of the namespace.
    pub(crate) has_all: bool,
    pub(crate) processes: u64,
    pub(crate) slots_busy: u64,
    pub(crate) slots_allowed: u64,
    pub(crate) took: Duration,
}

/// One queue.
#[derive(Debug)]
pub(crate) struct QueueSample {
    pub(crate) seen: QueueOverview,
    /// The slots of the processes that serve it.
    pub(crate) slots: u64,
    pub(crate) want_slots: u64,
}

impl Sample {
    /// Writes the metrics.
    pub(crate) fn write(&self, text: &mut Exposition) {
        let read = self.queues.len() + self.unreadable.len();
        text.family(&names::QUEUES).count(&[], read as u64 + self.left_out);
        text.family(&names::QUEUES_LEFT_OUT).count(&[], self.left_out);
        let mut family = text.family(&names::QUEUE_UNREADABLE);
        for QueueSample { seen, .. } in &self.queues {
            family.count(&[seen.queue.as_str()], 0);
        }
        for (queue, _) in &self.unreadable {
            family.count(&[queue.as_str()], 1);
        }
        self.write_tasks(text);
        self.write_ended(text);
        self.write_numbers(text);
        text.family(&names::PROCESSES).count(&[], self.processes);
        text.family(&names::PROCESS_SLOTS)
            .count(&["busy"], self.slots_busy)
            .count(&["allowed"], self.slots_allowed);
        text.family(&names::SAMPLE_TIME).value(&[], self.took.as_secs_f64());
    }

    fn write_tasks(&self, text: &mut Exposition) {
        let mut family = text.family(&names::QUEUE_TASKS);
        for QueueSample { seen, .. } in &self.queues {
            let (queue, counts) = (seen.queue.as_str(), &seen.counts);
            family
                .count(&[queue, "ready"], counts.ready)
                .count(&[queue, "delayed"], counts.delayed)
                .count(&[queue, "blocked"], counts.blocked)
                .count(&[queue, "retry"], counts.retry)
                .count(&[queue, "working"], counts.working)
                .count(&[queue, "dead"], counts.dead)
                .count(&[queue, "cancelled"], counts.cancelled);
        }
        let mut family = text.family(&names::QUEUE_BYTES);
        for QueueSample { seen, .. } in &self.queues {
            let (queue, counts) = (seen.queue.as_str(), &seen.counts);
            family
                .count(&[queue, "dead"], counts.dead_bytes)
                .count(&[queue, "cancelled"], counts.cancelled_bytes);
        }
    }

    fn write_ended(&self, text: &mut Exposition) {
        let mut family = text.family(&names::QUEUE_ENDED);
        for QueueSample { seen, .. } in &self.queues {
            let (queue, totals) = (seen.queue.as_str(), &seen.totals);
            family
                .count(&[queue, "success"], totals.successes)
                .count(&[queue, "retry"], totals.retries)
                .count(&[queue, "dead"], totals.deaths)
                .count(&[queue, "cancelled"], totals.cancels);
        }
        let mut family = text.family(&names::QUEUE_LOST);
        for QueueSample { seen, .. } in &self.queues {
            family.count(&[seen.queue.as_str()], seen.totals.losses);
        }
    }

    fn write_numbers(&self, text: &mut Exposition) {
        let seconds = |time: Option<Duration>| time.unwrap_or_default().as_secs_f64();
        let mut family = text.family(&names::QUEUE_OLDEST);
        for QueueSample { seen, .. } in &self.queues {
            family.value(&[seen.queue.as_str()], seconds(seen.oldest));
        }
        let mut family = text.family(&names::QUEUE_PAUSED);
        for QueueSample { seen, .. } in &self.queues {
            family.count(&[seen.queue.as_str()], u64::from(seen.counts.paused));
        }
        let mut family = text.family(&names::QUEUE_SCHEDULE_LAG);
        for QueueSample { seen, .. } in &self.queues {
            family.value(&[seen.queue.as_str()], seconds(seen.schedule_lag));
        }
        let mut family = text.family(&names::QUEUE_SLOTS);
        for QueueSample { seen, slots, .. } in &self.queues {
            family.count(&[seen.queue.as_str()], *slots);
        }
        let mut family = text.family(&names::QUEUE_WANT_SLOTS);
        for QueueSample { seen, want_slots, .. } in &self.queues {
            family.count(&[seen.queue.as_str()], *want_slots);
        }
    }
}
