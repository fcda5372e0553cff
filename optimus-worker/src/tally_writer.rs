//! Adds what the worker has counted to the statistics of its queues: [`TallyWriter`].

use std::{collections::VecDeque, sync::Arc, time::Duration};

use optimus_core::{
    WorkerId,
    broker::{Broker, BrokerError, Refusal, Reply},
    interval, log_event,
};

use crate::{role::Role, served_queue::Served, shared::Shared, task_tallies::Counted};

/// The workers of a queue together add their counts once in this time.
const AVERAGE: Duration = Duration::from_secs(10);
/// Each worker adds its counts in this time at the latest.
const LONGEST: Duration = Duration::from_secs(60);
/// The most tasks of a call, so that a call takes Redis well below a ms.
const TASKS_A_CALL: usize = 16;
/// The most calls for a queue in a turn.
const CALLS_MAX: usize = 8;
/// How long the worker tries to add its last counts when it ends.
const LAST_WITHIN: Duration = Duration::from_millis(500);

/// The role that adds the counts. A worker that is killed loses those since its last turn.
pub(crate) struct TallyWriter {
    shared: Arc<Shared>,
    broker: Broker,
    /// The calls of each queue that Redis has not answered.
    queues: Vec<Unsent>,
}

#[derive(Default)]
struct Unsent {
    last_number: u64,
    calls: VecDeque<Call>,
}

/// A call. A repeat has the same number, so Redis counts it once.
struct Call {
    number: u64,
    counted: Vec<Counted>,
    /// The id under which the call was sent.
    sent_as: Option<WorkerId>,
    /// Whether Redis may have counted it. Then it is only sent again under the same id.
    is_unknown: bool,
}

impl TallyWriter {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let queues = shared.queues.iter().map(|_| Unsent::default()).collect();
        let broker = shared.maintenance.clone();
        Self { shared, broker, queues }
    }

    /// Adds the last counts of a worker that ends.
    pub(crate) async fn leave(&mut self) {
        self.broker = self.broker.within(LAST_WITHIN);
        let adding = async {
            // A queue whose call had no answer adds its later counts by the second turn.
            self.add_all().await;
            self.add_all().await;
        };
        if tokio::time::timeout(LAST_WITHIN, adding).await.is_err() {
            let text = "could not add the last counts to the statistics in time";
            log_event!(self.shared.log, DEBUG, "{text}");
        }
    }

    /// Adds all counts, one call for each queue in a write. A queue whose call fails waits for the
    /// next turn.
    async fn add_all(&mut self) {
        for (place, unsent) in self.queues.iter_mut().enumerate() {
            // What can't be added now is added to what is counted later.
            if unsent.calls.is_empty() {
                unsent.take(self.shared.task_tallies.take(place));
            }
        }
        let mut has_failed = vec![false; self.queues.len()];
        for _ in 0..CALLS_MAX {
            let mut places = Vec::new();
            let mut calls = Vec::new();
            let open = self.queues.iter_mut().enumerate().filter(|(place, _)| !has_failed[*place]);
            for (place, unsent) in open {
                let Some(call) = unsent.calls.front_mut() else { continue };
                let queue = &self.shared.queues[place];
                let worker = call.sent_as.get_or_insert_with(|| queue.worker());
                let counted = call.counted.iter().map(|(task, stats)| (*task, stats));
                calls.push(self.broker.tally_call(&queue.name, worker, call.number, counted));
                places.push(place);
            }
            if calls.is_empty() {
                return;
            }
            let answers = self.broker.run_all(calls).await;
            for (place, answer) in places.into_iter().zip(answers) {
                has_failed[place] = answer.is_err();
                self.queues[place].take_in(&self.shared, &self.shared.queues[place], answer);
            }
        }
    }
}

impl Unsent {
    fn take(&mut self, mut counted: Vec<Counted>) {
        while !counted.is_empty() {
            let rest = counted.split_off(counted.len().min(TASKS_A_CALL));
            self.last_number += 1;
            self.calls.push_back(Call {
                number: self.last_number,
                counted,
                sent_as: None,
                is_unknown: false,
            });
            counted = rest;
        }
    }

    fn take_in(&mut self, shared: &Shared, queue: &Served, answer: Result<Reply, BrokerError>) {
        let Some(call) = self.calls.front_mut() else { return };
        match answer {
            Ok(_) => drop(self.calls.pop_front()),
            Err(BrokerError::Unknown(_)) => call.is_unknown = true,
            Err(problem) if problem.refusal() == Some(Refusal::Lapsed) && call.is_unknown => {
                // Redis may have counted this under the id that the worker has lost.
                let (name, tasks) = (queue.name.clone(), call.counted.len());
                let text = "dropped counts of the statistics, because the lease is lost and Redis \
                            may have them";
                log_event!(shared.log, DEBUG, queue = %name, tasks, "{text}");
                self.calls.pop_front();
            }
            // Redis has not counted it, so it may be sent under another id.
            Err(_) if !call.is_unknown => call.sent_as = None,
            Err(_) => {}
        }
    }
}

impl Role for TallyWriter {
    async fn tick(&mut self) -> Duration {
        self.add_all().await;
        interval(AVERAGE, self.shared.queues.peers(), fastrand::f64()).min(LONGEST)
    }
}
