//! Checks that no slot is idle while there is a task that its worker could run: [`check`].

use super::trial_record::{Happened, Member, Record};

/// How long a worker may leave slots idle while there is work. This is a tenth of the poll
/// interval, so the check finds a worker that receives work only by its poll.
pub(super) const IDLE_NS_MAX: u64 = 500_000_000;

/// Returns the problems, one sentence for each worker.
pub(super) fn check(record: &Record) -> Vec<String> {
    let mut waiting = vec![0_i64; record.weights.len()];
    let mut busy = vec![0_usize; record.workers.len()];
    let mut idle_since: Vec<Option<u64>> = vec![None; record.workers.len()];
    let mut longest = vec![(0, String::new()); record.workers.len()];
    let mut steps = record.steps.iter().peekable();
    while let Some(step) = steps.next() {
        match step.what {
            Happened::Waits { queue } => waiting[queue] += 1,
            Happened::Begins { queue, worker } => {
                waiting[queue] -= 1;
                busy[worker] += 1;
            }
            Happened::Ends { worker } => busy[worker] -= 1,
        }
        // Events at the same instant are one change.
        if steps.peek().is_some_and(|next| next.at == step.at) {
            continue;
        }
        for (at, worker) in record.workers.iter().enumerate() {
            let idle = worker.setup.concurrency.saturating_sub(busy[at]);
            let work =
                (0..waiting.len()).find(|queue| worker.serves(*queue) && waiting[*queue] > 0);
            let Some(queue) = work.filter(|_| idle >= noticeable(worker)) else {
                idle_since[at] = None;
                continue;
            };
            let since = *idle_since[at].get_or_insert(step.at);
            let until = steps.peek().map_or(step.at, |next| next.at);
            if until - since > longest[at].0 {
                let text = format!(
                    "{idle} of {} slots idle while queue {queue} had work",
                    worker.setup.concurrency
                );
                longest[at] = (until - since, text);
            }
        }
    }
    let texts = record.workers.iter().zip(longest).filter(|(_, (ns, _))| *ns > IDLE_NS_MAX);
    texts
        .map(|(worker, (ns, text))| {
            format!("worker {} left {text} for {} ms", worker.process, ns / 1_000_000)
        })
        .collect()
}

/// Returns the number of idle slots that counts. A few slots are always between two tasks.
fn noticeable(worker: &Member) -> usize {
    (worker.setup.concurrency / 4).max(1)
}
