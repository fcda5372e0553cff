//! What a worker has done, as metrics: [`text`].

use optimus_core::broker::Broker;
use optimus_metrics::{Exposition, names};

use crate::{shared::Shared, task_tallies::Counted, vitals};

/// Returns the metrics of this worker.
pub(crate) fn text(shared: &Shared) -> Exposition {
    let mut text = Exposition::default();
    attempts(&mut text, shared);
    slots(&mut text, shared);
    connections(&mut text, shared);
    text.family(&names::BUILD).count(&[env!("CARGO_PKG_VERSION")], 1);
    if let Some(bytes) = vitals::rss_bytes() {
        text.family(&names::MEMORY).count(&[], bytes);
    }
    if let Some(time) = vitals::cpu_time() {
        text.family(&names::CPU).value(&[], time.as_secs_f64());
    }
    text
}

fn attempts(text: &mut Exposition, shared: &Shared) {
    let all: Vec<(&str, Vec<Counted>)> = shared
        .queues
        .iter()
        .enumerate()
        .map(|(place, queue)| (queue.name.as_str(), shared.task_tallies.all(place)))
        .collect();
    let rows = || {
        all.iter().flat_map(|(queue, counted)| {
            counted.iter().map(move |(task, stats)| (*queue, *task, stats))
        })
    };
    let mut family = text.family(&names::ATTEMPTS);
    for (queue, task, stats) in rows() {
        for (outcome, count) in [
            ("success", stats.successes),
            ("retry", stats.retries),
            ("dead", stats.deaths),
            ("cancelled", stats.cancels),
            ("snoozed", stats.snoozes),
        ] {
            family.count(&[queue, task, outcome], count);
        }
    }
    let mut family = text.family(&names::ATTEMPTS_LOST);
    for (queue, task, stats) in rows() {
        family.count(&[queue, task], stats.losses);
    }
    let mut family = text.family(&names::RUN);
    for (queue, task, stats) in rows() {
        family.histogram(&[queue, task], stats.run.buckets(), stats.run.sum());
    }
    let mut family = text.family(&names::WAIT);
    for (queue, task, stats) in rows() {
        family.histogram(&[queue, task], stats.wait.buckets(), stats.wait.sum());
    }
    let counts = shared.tally.all();
    text.family(&names::ATTEMPTS_UNCOUNTED)
        .count(&["given_back"], counts.given_back)
        .count(&["stale"], counts.stale)
        .count(&["unanswered"], counts.unanswered);
    let mut family = text.family(&names::MISFITS);
    for queue in &shared.queues {
        family.count(&[queue.name.as_str()], shared.tally.misfits.of(&queue.name));
    }
}

fn slots(text: &mut Exposition, shared: &Shared) {
    let Shared { slots, config, .. } = shared;
    let (busy, idle) = (slots.busy(), slots.idle());
    let withheld = config.concurrency.saturating_sub(busy + idle);
    text.family(&names::SLOTS)
        .count(&["busy"], busy as u64)
        .count(&["idle"], idle as u64)
        .count(&["withheld"], withheld as u64);
    let mut family = text.family(&names::RUNNING);
    for (place, queue) in shared.queues.iter().enumerate() {
        family.count(&[queue.name.as_str()], slots.running(place) as u64);
    }
    text.family(&names::REPORTS_HELD).count(&[], shared.reporter.len() as u64);
    let age = shared.metrics.beats.claimer.age();
    text.family(&names::CLAIM_LOOP_AGE).value(&[], age.as_secs_f64());
}

fn connections(text: &mut Exposition, shared: &Shared) {
    let turns = &shared.metrics.beats.turns;
    text.family(&names::CLAIM_TURNS)
        .count(&["answered"], turns.answered())
        .count(&["failed"], turns.failed());
    let mut family = text.family(&names::LEASE_LEFT);
    for queue in &shared.queues {
        family.value(&[queue.name.as_str()], queue.lease_left().as_secs_f64());
    }
    let brokers: [(&str, &Broker); 2] =
        [("claims", &shared.broker), ("maintenance", &shared.maintenance)];
    let mut family = text.family(&names::CONNECTS);
    for (connection, broker) in brokers {
        family.count(&[connection], broker.connects());
    }
    let mut family = text.family(&names::BREAKS);
    for (connection, broker) in brokers {
        family.count(&[connection], broker.breaks());
    }
}
