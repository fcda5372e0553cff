//! One read of all queues, as metrics: [`write()`].

use std::time::Duration;

use optimus_core::{QueueSample, Sample};
use optimus_metrics::{Exposition, names};

/// Writes the metrics.
pub(crate) fn write(sample: &Sample, text: &mut Exposition) {
    let read = sample.queues.len() + sample.unreadable.len();
    text.family(&names::QUEUES).count(&[], read as u64 + sample.left_out);
    text.family(&names::QUEUES_LEFT_OUT).count(&[], sample.left_out);
    let mut family = text.family(&names::QUEUE_UNREADABLE);
    for QueueSample { seen, .. } in &sample.queues {
        family.count(&[seen.queue.as_str()], 0);
    }
    for (queue, _) in &sample.unreadable {
        family.count(&[queue.as_str()], 1);
    }
    write_tasks(sample, text);
    write_ended(sample, text);
    write_numbers(sample, text);
    text.family(&names::PROCESSES).count(&[], sample.processes);
    text.family(&names::PROCESS_SLOTS)
        .count(&["busy"], sample.slots_busy)
        .count(&["allowed"], sample.slots_allowed);
    text.family(&names::SAMPLE_TIME).value(&[], sample.took.as_secs_f64());
}

fn write_tasks(sample: &Sample, text: &mut Exposition) {
    let mut family = text.family(&names::QUEUE_TASKS);
    for QueueSample { seen, .. } in &sample.queues {
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
    for QueueSample { seen, .. } in &sample.queues {
        let (queue, counts) = (seen.queue.as_str(), &seen.counts);
        family
            .count(&[queue, "dead"], counts.dead_bytes)
            .count(&[queue, "cancelled"], counts.cancelled_bytes);
    }
}

fn write_ended(sample: &Sample, text: &mut Exposition) {
    let mut family = text.family(&names::QUEUE_ENDED);
    for QueueSample { seen, .. } in &sample.queues {
        let (queue, totals) = (seen.queue.as_str(), &seen.totals);
        family
            .count(&[queue, "success"], totals.successes)
            .count(&[queue, "retry"], totals.retries)
            .count(&[queue, "dead"], totals.deaths)
            .count(&[queue, "cancelled"], totals.cancels);
    }
    let mut family = text.family(&names::QUEUE_LOST);
    for QueueSample { seen, .. } in &sample.queues {
        family.count(&[seen.queue.as_str()], seen.totals.losses);
    }
}

fn write_numbers(sample: &Sample, text: &mut Exposition) {
    let seconds = |time: Option<Duration>| time.unwrap_or_default().as_secs_f64();
    let mut family = text.family(&names::QUEUE_OLDEST);
    for QueueSample { seen, .. } in &sample.queues {
        family.value(&[seen.queue.as_str()], seconds(seen.oldest));
    }
    let mut family = text.family(&names::QUEUE_DUE);
    for QueueSample { seen, .. } in &sample.queues {
        family.count(&[seen.queue.as_str()], seen.due);
    }
    let mut family = text.family(&names::QUEUE_PAUSED);
    for QueueSample { seen, .. } in &sample.queues {
        family.count(&[seen.queue.as_str()], u64::from(seen.counts.paused));
    }
    let mut family = text.family(&names::QUEUE_SCHEDULE_LAG);
    for QueueSample { seen, .. } in &sample.queues {
        family.value(&[seen.queue.as_str()], seconds(seen.schedule_lag));
    }
    let mut family = text.family(&names::QUEUE_SLOTS);
    for QueueSample { seen, slots, .. } in &sample.queues {
        family.count(&[seen.queue.as_str()], *slots);
    }
    let mut family = text.family(&names::QUEUE_WANT_SLOTS);
    for QueueSample { seen, want_slots, .. } in &sample.queues {
        family.count(&[seen.queue.as_str()], *want_slots);
    }
}
