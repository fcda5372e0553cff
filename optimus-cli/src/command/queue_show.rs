//! `optimus queue show`: one queue.

use std::slice;

use futures_util::try_join;
use optimus_core::{Gate, QueueName, Shut, Totals};
use serde_json::json;

use crate::{
    failure::{Exit, Failure},
    output::text,
    session::Session,
};

/// Prints a queue with what keeps its tasks waiting.
pub(crate) async fn show(session: &Session<'_>, queue: &QueueName) -> Result<Exit, Failure> {
    let inspector = session.inspector();
    let gate = session.client.gate(queue, Gate::Queue);
    let (counts, totals, workers, waits, limit) = try_join!(
        inspector.counts(queue),
        inspector.totals(queue),
        inspector.workers(queue),
        inspector.explain_queue(queue),
        gate.get(),
    )?;
    session.known_if_empty(&workers, slice::from_ref(queue)).await?;
    let slots: usize = workers.iter().map(|worker| worker.description.concurrency).sum();
    let shut = limit.and_then(|limit| limit.shut);
    let served = match workers.len() as u64 {
        0 => "no worker".to_owned(),
        count => {
            format!("{} with {}", text::count(count, "worker"), text::count(slots as u64, "slot"))
        }
    };
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
        "paused_by": shut.as_ref().map(|shut| &shut.by),
        "paused_because": shut.as_ref().map(|shut| &shut.why),
        "waits_for": waits.obstacles.iter().map(ToString::to_string).collect::<Vec<_>>(),
    });
    let number = |count: u64| Some(text::number(count));
    let with_size =
        |count: u64, bytes: u64| Some(format!("{} ({})", text::number(count), text::size(bytes)));
    let paused = shut.as_ref().map(Shut::to_string);
    let fields = [
        ("queue", Some(queue.to_string())),
        ("paused", paused.or_else(|| counts.paused.then(|| "paused".to_owned()))),
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
    ];
    session.out.fields(&object, &fields)?;
    Ok(Exit::Done)
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
