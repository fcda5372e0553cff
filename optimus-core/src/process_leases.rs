//! Finds the processes whose leases are over. When one was last heard from does not tell it: an
//! idle process says rarely what it does.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use chrono::{DateTime, Utc};

use crate::{
    Error,
    broker::Broker,
    id::QueueName,
    inspect::WorkerDescription,
    process_page::{ProcessAbout, ProcessDetails},
};

/// The leases in so many queues of a process are looked at: first those of its tasks, as the lease
/// of an idle worker may be long.
const QUEUES_MAX: usize = 4;
/// At most so many workers are read that may be a process under another id.
const RENAMED_MAX: usize = 256;
/// A process without a queue has no lease. An idle one is heard from within 4 min.
const SILENT_FOR: Duration = Duration::from_secs(300);

type Live = BTreeMap<QueueName, BTreeSet<String>>;

/// Marks the processes whose leases are over.
pub(crate) async fn mark_lost(broker: &Broker, rows: &mut [ProcessDetails]) -> Result<(), Error> {
    let of_each: Vec<Vec<QueueName>> = rows.iter().map(queues_of).collect();
    let live = broker.live_workers(&of_each.iter().flatten().cloned().collect()).await?;
    let renamed = renamed(broker, rows, &of_each, &live).await?;
    let mut now = None;
    for (row, queues) in rows.iter_mut().zip(&of_each) {
        // A queue that can't be read says nothing.
        let read: Vec<_> =
            queues.iter().filter_map(|queue| Some((queue, live.get(queue)?))).collect();
        let is_live = |(queue, ids): &(&QueueName, &BTreeSet<String>)| {
            let is_known = |(of, about): &(&QueueName, WorkerDescription)| {
                of == queue && is_same(&row.about, about)
            };
            ids.contains(row.id.as_str()) || renamed.iter().any(is_known)
        };
        row.is_lost = if read.is_empty() {
            let now: DateTime<Utc> = match now {
                Some(now) => now,
                None => *now.insert(crate::platform::instant(broker.now_ms().await?)),
            };
            (now - row.seen).to_std().is_ok_and(|silent| silent > SILENT_FOR)
        } else {
            !read.iter().all(is_live)
        };
    }
    Ok(())
}

/// Returns the queues whose leases tell whether a process is there.
fn queues_of(row: &ProcessDetails) -> Vec<QueueName> {
    let running = row.doing.running.iter().filter_map(|task| Some(task.id.split_once('/')?.0));
    let all = running.chain(row.about.queues.iter().map(String::as_str));
    let mut queues = Vec::new();
    for queue in all.filter_map(|queue| QueueName::new(queue).ok()) {
        if queues.len() == QUEUES_MAX {
            break;
        }
        if !queues.contains(&queue) {
            queues.push(queue);
        }
    }
    queues
}

/// Reads the workers that may be one of these processes: a worker that has lost a lease goes on
/// under a new id, which begins like the one before.
async fn renamed<'a>(
    broker: &Broker,
    rows: &[ProcessDetails],
    of_each: &'a [Vec<QueueName>],
    live: &Live,
) -> Result<Vec<(&'a QueueName, WorkerDescription)>, Error> {
    let (mut queues, mut workers) = (Vec::new(), Vec::new());
    for (row, of_row) in rows.iter().zip(of_each) {
        let begins = row.id.as_str().rsplit_once('-').map_or("", |(begins, _)| begins);
        for queue in of_row {
            let ids = live.get(queue).into_iter().filter(|ids| !ids.contains(row.id.as_str()));
            let alike = |id: &&String| {
                let is_listed = || rows.iter().any(|other| other.id.as_str() == id.as_str());
                id.rsplit_once('-').is_some_and(|(of_id, _)| of_id == begins) && !is_listed()
            };
            for id in ids.flatten().filter(alike).take(RENAMED_MAX - workers.len()) {
                queues.push(queue);
                workers.push((queue.clone(), id.clone()));
            }
        }
    }
    if workers.is_empty() {
        return Ok(Vec::new());
    }
    let told = broker.worker_descriptions(&workers).await?;
    let read = told.iter().map(|told| serde_json::from_str(told).unwrap_or_default());
    Ok(queues.into_iter().zip(read).collect())
}

/// Returns whether a worker is that of a process.
pub(crate) fn is_same(process: &ProcessAbout, worker: &WorkerDescription) -> bool {
    (process.pid, process.started) == (worker.pid, worker.started) && process.host == worker.host
}

#[cfg(test)]
#[path = "process_leases_tests.rs"]
mod tests;
