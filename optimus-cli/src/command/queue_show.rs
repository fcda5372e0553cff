//! `optimus queue show`: one queue.

use std::slice;

use chrono::{DateTime, Utc};
use futures_util::try_join;
use optimus_core::{Explanation, Gate, Obstacle, PAGE_MAX, QueueName, Shut, TaskState, Totals};
use serde_json::json;

use crate::{
    failure::{Exit, Failure},
    output::text,
    pause::Pause,
    session::Session,
    unknown::Unknown,
};

/// Prints a queue with what keeps its tasks waiting.
pub(crate) async fn show(session: &Session<'_>, queue: &QueueName) -> Result<Exit, Failure> {
    let inspector = session.inspector();
    let gate = session.client.gate(queue, Gate::Queue);
    let (now, counts, totals, workers, waits, limit) = try_join!(
        inspector.now(),
        inspector.counts(queue),
        inspector.totals(queue),
        inspector.workers(queue),
        inspector.explain_queue(queue),
        gate.get(),
    )?;
    session.known_if_empty(&workers, slice::from_ref(queue)).await?;
    // One that has died stays registered until another worker takes its tasks back.
    let workers: Vec<_> = workers.into_iter().filter(|worker| worker.lease_until > now).collect();
    let delayed = if counts.delayed > 0 && !workers.is_empty() {
        inspector.list(queue, TaskState::Delayed, None, PAGE_MAX).await?.rows
    } else {
        Vec::new()
    };
    let unknown = Unknown::of(&workers, delayed.iter());
    let slots: usize = workers.iter().map(|worker| worker.description.concurrency).sum();
    let shut = limit.and_then(|limit| limit.shut);
    let served = served_by(workers.len(), slots, &waits);
    let object = json!({
        "queue": queue,
        "ready": counts.ready,
        "working": counts.working,
        "blocked": counts.blocked,
        "delayed": counts.delayed,
        "retry": counts.retry,
        "dead": counts.dead,
        "dead_bytes": counts.dead_bytes,
        "cancelled": counts.cancelled,
        "cancelled_bytes": counts.cancelled_bytes,
        "recent_successes": counts.recent_successes,
        "removed": counts.purged,
        "totals": totals,
        "workers": workers.len(),
        "slots": slots,
        "paused": counts.paused,
        "pause": shut.as_ref().map(Pause::of),
        "unknown": unknown,
        "waits_for": waits.obstacles.iter().map(ToString::to_string).collect::<Vec<_>>(),
    });
    let number = |count: u64| Some(text::number(count));
    let with_size =
        |count: u64, bytes: u64| Some(format!("{} ({})", text::number(count), text::size(bytes)));
    let paused = shut.as_ref().map(|shut| pause_text(shut, now));
    let fields = [
        ("queue", Some(queue.to_string())),
        ("paused", paused.or_else(|| counts.paused.then(|| "yes".to_owned()))),
        ("served by", Some(served)),
        ("ready", number(counts.ready)),
        ("working", number(counts.working)),
        ("blocked", number(counts.blocked)),
        ("delayed", number(counts.delayed)),
        ("retry", number(counts.retry)),
        ("dead", with_size(counts.dead, counts.dead_bytes)),
        ("cancelled", with_size(counts.cancelled, counts.cancelled_bytes)),
        ("successes", Some(format!("{} kept", text::number(counts.recent_successes)))),
        ("removed", Some(format!("{} without success", text::number(counts.purged)))),
        ("so far", Some(so_far(totals))),
        ("waits for", Some(waits.to_string())),
        ("no worker for", unknown.map(|unknown| unknown.to_string())),
    ];
    session.out.fields(&object, &fields)?;
    Ok(Exit::Done)
}

/// Says how many workers there are, and how many tasks they may run at once.
fn served_by(workers: usize, slots: usize, waits: &Explanation) -> String {
    if workers == 0 {
        return "no worker".to_owned();
    }
    let usable = waits.obstacles.iter().find_map(|obstacle| match obstacle {
        Obstacle::FewerSlots { slots, .. } => Some(*slots),
        _ => None,
    });
    let only = usable.map_or_else(String::new, |usable| format!("{usable} of "));
    let workers = text::count(workers as u64, "worker");
    format!("{workers} with {only}{}", text::count(slots as u64, "slot"))
}

/// Says who has paused the queue, and since when. The name of the field says that it is paused.
fn pause_text(shut: &Shut, now: DateTime<Utc>) -> String {
    let (shut, since) = (shut.to_string(), text::instant(shut.since, now));
    format!("{}, since {since}", shut.trim_start_matches("paused "))
}

/// Says how many attempts and tasks have ended in which way since the queue was first used.
fn so_far(totals: Totals) -> String {
    let Totals { successes, retries, losses, deaths, cancels } = totals;
    let counts = [
        (successes, "succeeded"),
        (retries, "retried"),
        (losses, "lost"),
        (deaths, "died"),
        (cancels, "cancelled"),
    ];
    counts.map(|(count, word)| format!("{} {word}", text::number(count))).join(" · ")
}
