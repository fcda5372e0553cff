//! Waits on the queues' wakeup lists for work: [`WorkListener`]. The claimer's polls find the tasks
//! whose wakeup was lost.
//!
//! A queue's wakeup list holds at most one wakeup, and the worker that pops it must send the queue
//! a claim. So a worker listens only to queues that it found empty, and only while it has idle
//! slots. The listener passes a wakeup on if the claimer of its worker sends no claim for it: all
//! slots may be busy, or handlers may block every thread of the runtime. For the same reasons, the
//! listener wakes another worker if its claimer sends no claim by the due time for which it waits.
//! It also passes a wakeup on if the claim is refused, for example because newer programs use the
//! queue, and does not listen to that queue until a claim is accepted.

use std::{pin::pin, sync::Arc, time::Duration};

use optimus_core::{
    QueueName, WorkerId,
    broker::{Broker, BrokerError, Woken},
};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::{refused_wait::RefusedWait, role::Role, served_queue::Served, shared::Shared};

const AFTER_ERROR: Duration = Duration::from_millis(500);
/// The longest wait if few workers listen. A connection that died silently is found after this
/// time. The wait is longer if each of the queues has many workers, because the other workers
/// listen, too.
const LISTEN_FOR: Duration = Duration::from_secs(10);
const MANY: usize = 16;
const LISTEN_LONGER_MAX: usize = 4;
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
const UNTIL_WOKEN: Duration = Duration::from_secs(3600);
/// A claim after a wakeup is usually answered within this time. If the claim leaves the queue
/// empty, one wait then covers all queues. Otherwise a wait for the other queues begins and is
/// interrupted later.
const CLAIM_FIRST: Duration = Duration::from_millis(2);
/// A claimer with a thread sends a claim sooner than this after a wakeup or a due time.
const TAKE_UP_WITHIN: Duration = Duration::from_millis(20);
const TAKE_UP_DUE_WITHIN: Duration = Duration::from_millis(50);
/// The shortest time between two interrupts of a wait. During this time, it is possible that no
/// worker listens to a queue that was found empty during the wait.
const INTERRUPT_EVERY: Duration = Duration::from_millis(5);
const AGAIN: Duration = Duration::ZERO;

/// The role that waits on the wakeup lists of queues that were found empty, while slots are idle.
pub(crate) struct WorkListener {
    shared: Arc<Shared>,
    /// A separate connection, because the waits of the listener block it.
    broker: Broker,
    stop: CancellationToken,
    /// The earliest time at which a wait may be interrupted next.
    interrupt_at: Instant,
    popped: Vec<Popped>,
    refused: RefusedWait,
}

/// A wakeup that was popped and not passed on yet.
struct Popped {
    queue: usize,
    /// The queue's number of hints, including this one.
    hints: u64,
    /// When the wakeup is passed on if no claim was sent.
    due: Instant,
}

impl WorkListener {
    pub(crate) fn new(shared: Arc<Shared>, stop: CancellationToken) -> Self {
        let broker = shared.broker.blocking("work listener");
        let (interrupt_at, popped) = (Instant::now(), Vec::new());
        let refused = RefusedWait::new("can't wait for work with BLPOP; this worker polls instead");
        Self { shared, broker, stop, interrupt_at, popped, refused }
    }

    fn ends(&self) -> bool {
        self.stop.is_cancelled() || self.shared.shutdown.is_quiet()
    }

    /// Returns the queues to listen to.
    fn empty_queues(&self) -> Vec<usize> {
        let queues = self.shared.queues.iter().enumerate();
        let is_empty = |queue: &Served| !queue.may_have_work() && !queue.is_refused();
        queues.filter(|(_, queue)| is_empty(queue)).map(|(at, _)| at).collect()
    }

    /// Waits for a wakeup. If a queue is found empty during the wait, the worker must wait for that
    /// queue, too. A blocking command can't be dropped without losing a wakeup that it may have
    /// popped, so the wait is interrupted.
    async fn wait(&mut self, listened: &[usize]) -> Result<Option<Woken>, BrokerError> {
        let shared = self.shared.clone();
        let home = &shared.queues[0];
        let worker = home.worker();
        let waiter = (&home.name, &worker);
        let names: Vec<QueueName> =
            listened.iter().map(|at| shared.queues[*at].name.clone()).collect();
        let broker = self.broker.within(CONNECT_WITHIN);
        let listen_for = listen_for(listened.iter().map(|at| shared.queues[*at].workers()));
        let mut waiting = pin!(broker.wait_for_work(&names, waiter, listen_for));
        loop {
            let ends = self.ends();
            let must_return = ends || self.should_listen_to_others(listened);
            let overdue = self.next_overdue();
            tokio::select! {
                biased;
                answer = &mut waiting => return answer,
                interrupted = interrupt(&shared, waiter, self.interrupt_at), if must_return => {
                    let rest = if interrupted { INTERRUPT_EVERY } else { AFTER_ERROR };
                    self.interrupt_at = Instant::now() + rest;
                    if interrupted {
                        return waiting.await;
                    }
                }
                () = shared.wakeups.work_listener.woken(), if !must_return => {}
                () = shared.shutdown.quieted(), if !ends => {}
                () = self.stop.cancelled(), if !ends => {}
                () = sleep_until(overdue.unwrap_or(self.interrupt_at)), if overdue.is_some() => {}
            }
            self.pass_on_overdue().await;
        }
    }

    /// Returns whether an empty queue is not listened to while a slot is idle for its work, or one
    /// is listened to whose claims are refused.
    fn should_listen_to_others(&self, listened: &[usize]) -> bool {
        if listened.iter().any(|at| self.shared.queues[*at].is_refused()) {
            return true;
        }
        let is_missing = |at: &usize| listened.binary_search(at).is_err();
        if !self.empty_queues().iter().any(is_missing) {
            return false;
        }
        if self.shared.slots.idle() == 0 {
            self.shared.slots.await_idle();
            return false;
        }
        true
    }

    /// Processes a wakeup of a queue.
    async fn take_in(&mut self, name: &QueueName) {
        let queues = &self.shared.queues;
        let Some(queue) = queues.place(name) else { return };
        if queues[queue].is_refused() {
            drop(self.shared.maintenance.wake(name).await);
            return;
        }
        let hints = queues[queue].hint();
        let due = Instant::now() + TAKE_UP_WITHIN;
        self.popped.push(Popped { queue, hints, due });
        if self.ends() || self.shared.slots.idle() == 0 || self.shared.quarantine.any() {
            self.pass_on(|_| true).await;
        }
    }

    /// Passes on the wakeups for which no claim was sent. This is the last act of the role.
    pub(crate) async fn leave(&mut self) {
        self.pass_on(|_| true).await;
    }

    /// Passes on the overdue wakeups, because another worker may have a slot and a thread for them,
    /// and those of queues whose claims are refused.
    async fn pass_on_overdue(&mut self) {
        let (shared, now) = (self.shared.clone(), Instant::now());
        let is_due = |popped: &Popped| {
            let queue = &shared.queues[popped.queue];
            queue.is_refused() || popped.due <= now && !queue.was_asked(popped.hints)
        };
        self.pass_on(is_due).await;
        for queue in &shared.queues {
            if due_overdue(queue).is_some_and(|at| at <= now) {
                queue.set_due(None);
                drop(shared.maintenance.wake(&queue.name).await);
            }
        }
    }

    /// Passes on the matching wakeups. If a wakeup is lost on the way, a poll finds its task.
    async fn pass_on(&mut self, is_due: impl Fn(&Popped) -> bool) {
        let shared = &self.shared;
        self.popped.retain(|popped| !shared.queues[popped.queue].was_answered(popped.hints));
        for popped in self.popped.extract_if(.., |popped| is_due(popped)) {
            drop(shared.maintenance.wake(&shared.queues[popped.queue].name).await);
        }
    }

    /// Adds a hint to each of these queues.
    fn hint_all(&self, queues: &[usize]) {
        for at in queues {
            self.shared.queues[*at].hint();
        }
    }

    /// Returns when another worker is woken, unless the claimer sends a claim for the wakeup or the
    /// due time before.
    fn next_overdue(&self) -> Option<Instant> {
        let queues = &self.shared.queues;
        let waiting =
            self.popped.iter().filter(|popped| !queues[popped.queue].was_asked(popped.hints));
        waiting.map(|popped| popped.due).chain(queues.iter().filter_map(due_overdue)).min()
    }

    /// Returns how long it takes until another worker is woken.
    fn rest(&self) -> Duration {
        self.next_overdue().map_or(UNTIL_WOKEN, |due| due.saturating_duration_since(Instant::now()))
    }
}

/// Returns when another worker is woken for a due time of this queue.
fn due_overdue(queue: &Served) -> Option<Instant> {
    queue.due_at().map(|at| at + TAKE_UP_DUE_WITHIN)
}

/// Returns how long to listen. The time is longer if even the queue with the fewest workers has
/// many.
fn listen_for(workers: impl Iterator<Item = usize>) -> Duration {
    let times = (workers.min().unwrap_or(1) / MANY).clamp(1, LISTEN_LONGER_MAX);
    LISTEN_FOR * u32::try_from(times).unwrap_or(1)
}

/// Interrupts the wait, but not before this time. Returns `false` if Redis did not accept the call.
async fn interrupt(shared: &Shared, waiter: (&QueueName, &WorkerId), not_before: Instant) -> bool {
    sleep_until(not_before).await;
    shared.maintenance.interrupt(waiter.0, waiter.1).await.is_ok()
}

impl Role for WorkListener {
    async fn tick(&mut self) -> Duration {
        if self.ends() {
            self.leave().await;
            self.pass_on_overdue().await;
            return self.rest();
        }
        self.pass_on_overdue().await;
        let empty = self.empty_queues();
        if empty.is_empty() {
            return self.rest();
        }
        if self.shared.slots.idle() == 0 {
            // Another queue may fill each slot again at once, so the claimer would wake no one.
            self.shared.slots.await_idle();
            return self.rest();
        }
        let answer = self.wait(&empty).await;
        self.refused.note(&self.shared.log, &answer);
        match answer {
            Ok(Some(Woken::Work(queue))) => {
                self.take_in(&queue).await;
                CLAIM_FIRST
            }
            Ok(Some(Woken::Schedules(queue))) => {
                if let Some(place) = self.shared.queues.place(&queue) {
                    self.shared.queues[place].tick_heard(Some(Duration::ZERO));
                }
                self.take_in(&queue).await;
                CLAIM_FIRST
            }
            Ok(Some(Woken::Interrupted) | None) => AGAIN,
            Err(problem) => {
                // A key of another type must not stop the work of the worker's other queues.
                if !problem.is_transient() {
                    self.hint_all(&empty);
                }
                // No event may end this rest early, because the claims that follow a rejected wait
                // would end it at once.
                tokio::time::sleep(AFTER_ERROR).await;
                AGAIN
            }
        }
    }
}

#[cfg(test)]
#[path = "work_listener_tests.rs"]
mod tests;
