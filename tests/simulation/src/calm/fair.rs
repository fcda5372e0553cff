//! Checks that starts are shared by weight while all queues have work ([`check_weights`]), or are
//! in strict order ([`check_strict`]).

use super::trial::LASTS_MS;
use super::trial_record::{Happened, Member, Record};

/// How long claims of an earlier queue may take. After this time, a later queue must wait.
const STRICT_AFTER_NS: u64 = 200_000_000;

/// A task that begins within 20 ms after the last queue has work may have been claimed before that.
/// When it has ended, its slot belongs to the other queues.
const HELD_BEFORE_NS: u64 = (20 + LASTS_MS.end) * 1_000_000;

/// Returns the problems of workers that share their starts, one sentence for each worker.
pub(super) fn check_weights(record: &Record) -> Vec<String> {
    check(record, check_shares)
}

/// Returns the problems of workers with a strict order, one sentence for each worker.
pub(super) fn check_strict(record: &Record) -> Vec<String> {
    check(record, check_order)
}

fn check(record: &Record, check: fn(&Record, usize, &Member) -> Option<String>) -> Vec<String> {
    let several = |worker: &Member| served(record, worker).len() > 1;
    let checked = record.workers.iter().enumerate().filter(|(_, worker)| several(worker));
    checked.filter_map(|(at, worker)| check(record, at, worker)).collect()
}

fn served(record: &Record, worker: &Member) -> Vec<usize> {
    (0..record.weights.len()).filter(|queue| worker.serves(*queue)).collect()
}

/// Returns the deviation that one call can cause, because a call carries up to 128 tasks of one
/// queue.
fn slack(slots: usize) -> usize {
    slots.min(128) + 4
}

/// Returns the number of starts that is enough to check the shares of this many queues.
pub(super) fn enough(slots: usize, queues: usize) -> usize {
    4 * queues * slack(slots)
}

/// The tasks of each queue that a worker began while all its queues had work.
struct Window<'a> {
    record: &'a Record,
    worker: &'a Member,
    served: Vec<usize>,
    /// The number of starts that a check needs.
    enough: usize,
    begun: Vec<usize>,
}

impl Window<'_> {
    fn total(&self) -> usize {
        self.begun.iter().sum()
    }

    /// Returns the first queue whose share is wrong by more than a tenth plus the tasks that one
    /// call carries.
    fn wrong(&self) -> Option<String> {
        let total = self.total();
        if total < self.enough {
            return None;
        }
        let weights: usize = self.served.iter().map(|at| self.record.weights[*at] as usize).sum();
        let slack = slack(self.worker.setup.concurrency);
        self.served.iter().find_map(|queue| {
            let (begun, weight) = (self.begun[*queue], self.record.weights[*queue] as usize);
            let share = total * weight / weights;
            (begun.abs_diff(share) > share / 10 + slack).then(|| {
                let (process, slots) = (self.worker.process, self.worker.setup.concurrency);
                let all: Vec<(u32, usize)> = (self.served.iter())
                    .map(|at| (self.record.weights[*at], self.begun[*at]))
                    .collect();
                format!(
                    "worker {process} of {slots} slots began {begun} of {total} from queue \
                     {queue}, whose share is {share}; weights and starts: {all:?}"
                )
            })
        })
    }

    fn clear(&mut self) {
        self.begun.fill(0);
    }
}

/// Checks all starts while all the worker's queues had work, as a whole and in pieces.
fn check_shares(record: &Record, at: usize, worker: &Member) -> Option<String> {
    let served = served(record, worker);
    let enough = enough(worker.setup.concurrency, served.len());
    let mut waiting = vec![0_i64; record.weights.len()];
    let window = || {
        let begun = vec![0; record.weights.len()];
        Window { record, worker, served: served.clone(), enough, begun }
    };
    let (mut piece, mut whole) = (window(), window());
    let mut counts_from = u64::MAX;
    for step in &record.steps {
        match step.what {
            Happened::Waits { queue } => waiting[queue] += 1,
            Happened::Begins { queue, worker } => {
                waiting[queue] -= 1;
                if worker == at && step.at >= counts_from {
                    piece.begun[queue] += 1;
                    whole.begun[queue] += 1;
                }
            }
            Happened::Ends { .. } => {}
        }
        let all_have_work = served.iter().all(|queue| waiting[*queue] >= record.under_way_max());
        let wrong = if !all_have_work {
            counts_from = u64::MAX;
            let wrong = whole.wrong();
            whole.clear();
            piece.clear();
            wrong
        } else if piece.total() >= enough {
            let wrong = piece.wrong();
            piece.clear();
            wrong
        } else {
            counts_from = counts_from.min(step.at + HELD_BEFORE_NS);
            None
        };
        if wrong.is_some() {
            return wrong;
        }
    }
    whole.wrong()
}

/// Checks that no task of a queue begins while an earlier queue has had enough work for some time.
fn check_order(record: &Record, at: usize, worker: &Member) -> Option<String> {
    let mut waiting = vec![0_i64; record.weights.len()];
    let mut plenty_since = vec![u64::MAX; record.weights.len()];
    for step in &record.steps {
        let (queue, by) = match step.what {
            Happened::Waits { queue } => (queue, 1),
            Happened::Begins { queue, .. } => (queue, -1),
            Happened::Ends { .. } => continue,
        };
        if by < 0 && matches!(step.what, Happened::Begins { worker, .. } if worker == at) {
            let first = (0..queue).find(|first| {
                let since = plenty_since[*first].saturating_add(STRICT_AFTER_NS);
                worker.serves(*first) && since < step.at
            });
            if let Some(first) = first {
                let process = worker.process;
                let (slots, since) = (worker.setup.concurrency, step.at - plenty_since[first]);
                return Some(format!(
                    "worker {process} of {slots} slots began from queue {queue} {} ms after queue \
                     {first} had work for all",
                    since / 1_000_000
                ));
            }
        }
        waiting[queue] += by;
        if waiting[queue] < record.under_way_max() {
            plenty_since[queue] = u64::MAX;
        } else {
            plenty_since[queue] = plenty_since[queue].min(step.at);
        }
    }
    None
}
