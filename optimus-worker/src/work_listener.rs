//! Waits for work to come to an idle worker, on the queues' wakeup lists. That one was lost is
//! found by the looks of the claimer.
//!
//! A queue's wakeup list is a list that holds one token at most, and whoever pops it owes the queue
//! a claim. So a worker listens only to queues that it found empty, only while it has idle slots,
//! and passes a token on that its claimer does not take up: its slots may be full by then, or its
//! handlers may keep every thread of its runtime. For the same reasons it rings for others when its
//! claimer does not look at a queue by the due time that it waits for.

use std::{pin::pin, sync::Arc, time::Duration};

use optimus_core::{
    QueueName, WorkerId,
    broker::{Broker, BrokerError, Woken},
    tell,
};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::{queues::Served, role::Role, shared::Shared};

const AFTER_ERROR: Duration = Duration::from_millis(500);
/// A connection that died without a word is found to be dead after so long; later where each of
/// the queues has many workers, who look at it, too.
const LISTEN_FOR: Duration = Duration::from_secs(10);
const MANY: usize = 16;
const LISTEN_LONGER_MAX: usize = 4;
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
const UNTIL_WOKEN: Duration = Duration::from_secs(3600);
/// So soon a claim that a ring brought about is answered. If it leaves the queue empty, one wait
/// serves for all queues; else there is one for the others, which is made to return later.
const CLAIM_FIRST: Duration = Duration::from_millis(2);
/// A claimer that runs sends a claim sooner than this after a ring, and after a due time.
const TAKE_UP_WITHIN: Duration = Duration::from_millis(20);
const TAKE_UP_DUE_WITHIN: Duration = Duration::from_millis(50);
/// A wait is made to return no more often, so a queue that was found empty meanwhile is not
/// listened to for as long.
const INTERRUPT_EVERY: Duration = Duration::from_millis(5);
const AGAIN: Duration = Duration::ZERO;

/// Waits on the wakeup lists of the queues that were found empty, while there are idle slots.
pub(crate) struct WorkListener {
    shared: Arc<Shared>,
    /// Its waits block it.
    broker: Broker,
    stop: CancellationToken,
    /// The next time that a wait may be made to return.
    interrupt_at: Instant,
    rings: Vec<Ring>,
    /// It was said that Redis refuses the wait.
    is_refused: bool,
}

/// A token that was popped, and not passed on yet.
struct Ring {
    queue: usize,
    /// Of the queue, with this one.
    hints: u64,
    due: Instant,
}

impl WorkListener {
    pub(crate) fn new(shared: Arc<Shared>, stop: CancellationToken) -> Self {
        let broker = shared.broker.blocking("work listener");
        let (interrupt_at, rings) = (Instant::now(), Vec::new());
        Self { shared, broker, stop, interrupt_at, rings, is_refused: false }
    }

    fn ends(&self) -> bool {
        self.stop.is_cancelled() || self.shared.shutdown.is_quiet()
    }

    fn empty_queues(&self) -> Vec<usize> {
        let queues = self.shared.queues.iter().enumerate();
        queues.filter(|(_, queue)| !queue.may_have_work()).map(|(at, _)| at).collect()
    }

    /// Until a bell rings. A queue that is found empty meanwhile is waited for, too: a blocking
    /// command can't be given up without losing what it may have popped, so it is made to return.
    async fn wait(&mut self, listened: &[usize]) -> Result<Option<Woken>, BrokerError> {
        let shared = self.shared.clone();
        let home = &shared.queues[0];
        let worker = home.worker();
        let waiter = (&home.name, &worker);
        let names: Vec<QueueName> =
            listened.iter().map(|at| shared.queues[*at].name.clone()).collect();
        let broker = self.broker.within(CONNECT_WITHIN);
        let listen_for = listen_for(listened.iter().map(|at| shared.queues[*at].workers()));
        let mut rung = pin!(broker.wait_for_work(&names, waiter, listen_for));
        loop {
            let ends = self.ends();
            let must_return = ends || self.should_hear_more(listened);
            let overdue = self.next_overdue();
            tokio::select! {
                biased;
                answer = &mut rung => return answer,
                interrupted = interrupt(&shared, waiter, self.interrupt_at), if must_return => {
                    let rest = if interrupted { INTERRUPT_EVERY } else { AFTER_ERROR };
                    self.interrupt_at = Instant::now() + rest;
                    if interrupted {
                        return rung.await;
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

    /// Whether a queue is empty that is not listened to, and there is a slot for what may come.
    fn should_hear_more(&self, listened: &[usize]) -> bool {
        let unheard = |at: &usize| listened.binary_search(at).is_err();
        if !self.empty_queues().iter().any(unheard) {
            return false;
        }
        if self.shared.slots.idle() == 0 {
            self.shared.slots.await_idle();
            return false;
        }
        true
    }

    /// Takes in that a queue rang.
    async fn answer(&mut self, name: &QueueName) {
        let queues = &self.shared.queues;
        let Some(queue) = queues.place(name) else { return };
        let hints = queues[queue].hint();
        let due = Instant::now() + TAKE_UP_WITHIN;
        self.rings.push(Ring { queue, hints, due });
        if self.ends() || self.shared.slots.idle() == 0 || self.shared.quarantine.any() {
            self.pass_on(|_| true).await;
        }
    }

    /// The last act: what it popped, and no claim has answered, is for somebody else.
    pub(crate) async fn leave(&mut self) {
        self.pass_on(|_| true).await;
    }

    /// Somebody else may have a slot and a thread for it.
    async fn pass_on_overdue(&mut self) {
        let (shared, now) = (self.shared.clone(), Instant::now());
        let was_asked = |ring: &Ring| shared.queues[ring.queue].was_asked(ring.hints);
        self.pass_on(|ring| ring.due <= now && !was_asked(ring)).await;
        for queue in &shared.queues {
            if due_overdue(queue).is_some_and(|at| at <= now) {
                queue.set_due(None);
                drop(shared.maintenance.ring(&queue.name).await);
            }
        }
    }

    /// A token that is lost on the way costs the next worker its poll.
    async fn pass_on(&mut self, is_due: impl Fn(&Ring) -> bool) {
        let shared = &self.shared;
        self.rings.retain(|ring| !shared.queues[ring.queue].was_answered(ring.hints));
        for ring in self.rings.extract_if(.., |ring| is_due(ring)) {
            drop(shared.maintenance.ring(&shared.queues[ring.queue].name).await);
        }
    }

    /// All of them may have work.
    fn hint_all(&self, queues: &[usize]) {
        for at in queues {
            self.shared.queues[*at].hint();
        }
    }

    /// Says once that Redis refuses the wait. That it is away, the connection says.
    fn note_problem(&mut self, problem: Option<&BrokerError>) {
        let refused = problem.filter(|problem| !problem.is_transient());
        if let (Some(problem), false) = (refused, self.is_refused) {
            let problem = problem.clone();
            let text = "can't wait for work with BLPOP; this worker polls instead";
            tell!(self.shared.log, WARN, error = %problem, "{text}");
        }
        self.is_refused = refused.is_some();
    }

    /// When others are to be rung, unless a claim has followed the ring or the due time by then.
    fn next_overdue(&self) -> Option<Instant> {
        let queues = &self.shared.queues;
        let waiting = self.rings.iter().filter(|ring| !queues[ring.queue].was_asked(ring.hints));
        let rings = waiting.map(|ring| ring.due);
        rings.chain(queues.iter().filter_map(due_overdue)).min()
    }

    /// Until others are to be rung.
    fn rest(&self) -> Duration {
        self.next_overdue().map_or(UNTIL_WOKEN, |due| due.saturating_duration_since(Instant::now()))
    }
}

/// When others are to be rung for a due time of this queue.
fn due_overdue(queue: &Served) -> Option<Instant> {
    queue.due_at().map(|at| at + TAKE_UP_DUE_WITHIN)
}

/// As long as the queue that has the fewest workers bears.
fn listen_for(workers: impl Iterator<Item = usize>) -> Duration {
    let times = (workers.min().unwrap_or(1) / MANY).clamp(1, LISTEN_LONGER_MAX);
    LISTEN_FOR * u32::try_from(times).unwrap_or(1)
}

/// Has the wait return as soon as it may; `false` if Redis did not take that.
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
            // Another queue may fill each slot anew and leave the claimer nothing to tell.
            self.shared.slots.await_idle();
            return self.rest();
        }
        let heard = self.wait(&empty).await;
        self.note_problem(heard.as_ref().err());
        match heard {
            Ok(Some(Woken::Work(queue))) => {
                self.answer(&queue).await;
                CLAIM_FIRST
            }
            Ok(Some(Woken::Interrupted) | None) => AGAIN,
            Err(problem) => {
                // One foreign key must not make the worker deaf for its other queues.
                if !problem.is_transient() {
                    self.hint_all(&empty);
                }
                // Nothing may cut this short: the claims that follow would.
                tokio::time::sleep(AFTER_ERROR).await;
                AGAIN
            }
        }
    }
}

#[cfg(test)]
#[path = "work_listener_tests.rs"]
mod tests;
