//! A program that submits tasks, waits for some of them, and operates on others: [`User`].

mod cancel;
mod chains;
mod delete;
mod explains;
mod gates;
mod gathers;
mod groups;
mod pause;
mod requeue;
mod shaped;
mod wait;
mod widths;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use optimus_core::{Call, Client, Due, Error, Submit, TaskHandle, TaskId};
use optimus_testkit::history::What;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::hostile::{Hostile, Place};
use crate::load::{FlowsKnown, Load};
use crate::network::Network;
use crate::queues::Queues;
use crate::tasks::{Kind, Mute, Poison, Rare, Work};

/// Biz ids that tasks share.
const BIZ_IDS: u64 = 4;
/// The size of a payload that is stored separately from its record.
const LARGE: usize = 20 * 1024;
const PAUSE_MS: u64 = 300;
/// The range of numbers of one user's tasks.
pub const NUMBERS: u64 = 1_000_000;

/// The state that users share.
#[derive(Default)]
pub struct Shared {
    /// The tasks that a user may operate on.
    known: Mutex<Vec<(u64, TaskId)>>,
    /// The waits for results: the process, the task and the wait.
    waits: Mutex<Vec<(u32, u64, JoinHandle<()>)>>,
    flows: FlowsKnown,
}

impl Shared {
    fn known(&self) -> MutexGuard<'_, Vec<(u64, TaskId)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the waits that have begun.
    pub fn take_waits(&self) -> Vec<(u32, u64, JoinHandle<()>)> {
        std::mem::take(&mut self.waits.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One user, in its own process.
pub struct User {
    /// The connection of the user.
    pub client: Client,
    /// The process of the user.
    pub process: u32,
    /// The network between the user and the store.
    pub network: Arc<Network>,
    /// The state that the user shares with others.
    pub shared: Arc<Shared>,
    /// The queues to which the user submits.
    pub queues: Queues,
    /// The random numbers that decide what the user does.
    pub random: fastrand::Rng,
    /// The number of the user's next task.
    pub next: u64,
    /// The number of tasks that kill their workers and that the user may still submit.
    pub poisons: u32,
    /// What the user submits.
    pub load: Load,
}

impl User {
    /// Performs this many acts, one after the other.
    pub async fn run(mut self, acts: u32) {
        for _ in 0..acts {
            self.act().await;
            if self.random.bool() {
                sleep(Duration::from_millis(self.random.u64(..PAUSE_MS))).await;
            }
        }
    }

    pub(crate) fn write(&self, what: What) {
        if self.network.is_alive(self.process) {
            self.network.journal.write(self.process, what);
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    async fn act(&mut self) {
        if self.load == Load::Flows && self.random.u8(..3) > 0 {
            return self.act_in_flows().await;
        }
        match self.random.u8(..42) {
            0..22 => self.submit_one().await,
            22..26 => self.submit_batch().await,
            26..29 => self.cancel().await,
            29..33 => self.requeue().await,
            33 => self.pause().await,
            34 => self.submit_rare().await,
            36 => self.submit_hostile().await,
            40.. => self.submit_mute().await,
            35 if self.poisons > 0 => self.submit_poison().await,
            _ => self.inspect().await,
        }
    }

    async fn act_in_flows(&mut self) {
        match self.random.u8(..30) {
            0..10 => self.submit_shaped().await,
            10..13 => self.keep_promise().await,
            13..15 => self.submit_chain().await,
            15..18 => self.submit_group().await,
            18 => self.add_members().await,
            19 => self.cancel_group().await,
            20..22 => self.delete_some().await,
            22 => self.borrow_permit().await,
            23 => self.operate_gate().await,
            24..27 => self.submit_gathered().await,
            27 => self.set_width().await,
            _ => self.explain().await,
        }
    }

    fn kind(&mut self) -> Kind {
        match self.random.u8(..32) {
            0..12 => Kind::Lasts(0),
            12..17 => Kind::Lasts(self.random.u64(1..50)),
            17..20 => Kind::Lasts(self.random.u64(300..3_000)),
            20..23 => Kind::Fails(self.random.u32(1..3)),
            23 => Kind::Panics,
            24 => Kind::Hangs,
            25 => Kind::Snoozes,
            26 => Kind::RetriesAfter,
            27 => Kind::Fatal,
            28 => Kind::GivesUp,
            _ => Kind::Fails(100),
        }
    }

    /// Returns a call with random options, including its biz id and its delay.
    fn call(&mut self, number: u64) -> (Call<Work>, Option<u64>, u64) {
        let kind = self.kind();
        let padding = if self.random.u8(..40) == 0 { "x".repeat(LARGE) } else { String::new() };
        let at = self.queues.pick(&mut self.random);
        let mut call = Call::new(Work { number, kind, padding }).queue(at.as_str());
        if kind == Kind::Hangs {
            call = call.timeout(Duration::from_millis(400)).max_retry(1);
        }
        if kind == Kind::Fails(100) {
            call = call.max_retry(1);
        }
        let (mut biz, mut delay_ms) = (None, 0);
        if self.random.u8(..6) == 0 {
            let id = self.random.u64(..BIZ_IDS);
            let taken = self.queues.position(at.as_str()).unwrap_or(0) as u64 * BIZ_IDS + id;
            (call, biz) = (call.biz_id(format!("b{id}")), Some(taken));
            if self.random.bool() {
                call = call.biz_window(Duration::from_millis(500));
            }
        }
        if self.random.u8(..5) == 0 {
            delay_ms = self.random.u64(1..2_500);
            call = call.due(Due::In(Duration::from_millis(delay_ms)));
        }
        if self.random.u8(..6) == 0 {
            call = call.priority(self.random.i8(-3..4));
        }
        if self.random.u8(..8) == 0 {
            call = call.expires_in(Duration::from_secs(3_600));
        }
        (call, biz, delay_ms)
    }

    pub(crate) fn invoke(&self, task: u64, biz: Option<u64>, delay_ms: u64) {
        self.write(What::Invoke { task, biz, delay_ms });
    }

    /// Records the outcome of a submit.
    pub(crate) fn answered<T>(&self, task: u64, answer: &Result<TaskHandle<T>, Error>) {
        self.write(match answer {
            Ok(handle) if handle.is_duplicate() => {
                What::Duplicate { task, owner: handle.id().to_string() }
            }
            Ok(handle) => {
                self.shared.known().push((task, handle.id().clone()));
                What::Acked { task, id: handle.id().to_string() }
            }
            Err(problem) if problem.is_unknown_outcome() => What::Unknown { task },
            Err(_) => What::Refused { task },
        });
    }

    async fn submit_one(&mut self) {
        let number = self.number();
        let (call, biz, delay_ms) = self.call(number);
        let handle = self.submit(number, call, biz, delay_ms).await;
        if let Some(handle) = handle.filter(|_| self.random.u8(..3) == 0) {
            self.await_result(number, handle);
        }
    }

    /// Submits a task. Returns none if it was not submitted, or if the outcome is unknown.
    pub(crate) async fn submit<C: Submit>(
        &self,
        number: u64,
        call: C,
        biz: Option<u64>,
        delay_ms: u64,
    ) -> Option<TaskHandle<C::Output>> {
        self.invoke(number, biz, delay_ms);
        let answer = self.client.submit(call).await;
        self.answered(number, &answer);
        answer.ok().filter(|handle| !handle.is_duplicate())
    }

    /// Submits calls together. Returns the answer for each call.
    pub(crate) async fn submit_all(
        &self,
        calls: Vec<Call<Work>>,
    ) -> Vec<Result<TaskHandle<u64>, Error>> {
        match self.client.submit_all(calls).await {
            Ok(handles) => handles.into_iter().map(Ok).collect(),
            Err(problem) => problem.answers,
        }
    }

    async fn submit_batch(&mut self) {
        let mut calls = Vec::new();
        let mut numbers = Vec::new();
        for _ in 0..self.random.usize(2..16) {
            let number = self.number();
            let (call, biz, delay_ms) = self.call(number);
            self.invoke(number, biz, delay_ms);
            numbers.push(number);
            calls.push(call);
        }
        let answers = self.submit_all(calls).await;
        for (number, answer) in numbers.into_iter().zip(&answers) {
            self.answered(number, answer);
        }
    }

    async fn submit_plain(&mut self, number: u64, call: impl Submit) {
        drop(self.submit(number, call, None, 0).await);
        // The user does not operate on this task.
        self.shared.known().retain(|(known, _)| *known != number);
    }

    async fn submit_rare(&mut self) {
        let number = self.number();
        let queue = self.queues.pick(&mut self.random).to_string();
        self.submit_plain(number, Call::new(Rare { number }).queue(queue)).await;
    }

    /// Submits a task whose success leaves no result, and waits for it later.
    async fn submit_mute(&mut self) {
        let number = self.number();
        let queue = self.queues.pick(&mut self.random).to_string();
        let call = Call::new(Mute { number }).queue(queue);
        let handle = self.submit(number, call, None, 0).await;
        self.shared.known().retain(|(known, _)| *known != number);
        if let Some(handle) = handle {
            let late = Duration::from_millis(self.random.u64(..8_000));
            self.await_success(number, handle, late);
        }
    }

    async fn submit_hostile(&mut self) {
        let number = self.number();
        let queue = self.queues.pick(&mut self.random).to_string();
        let place = Place::ALL[self.random.usize(..Place::ALL.len())];
        self.submit_plain(number, Hostile::new(number, place).queue(queue)).await;
    }

    async fn submit_poison(&mut self) {
        self.poisons -= 1;
        let number = self.number();
        let queue = self.queues.pick(&mut self.random).to_string();
        self.submit_plain(number, Call::new(Poison { number }).queue(queue)).await;
    }

    fn some_task(&mut self) -> Option<(u64, TaskId)> {
        let known = self.shared.known();
        // Often draws one of the last tasks, which has not ended yet.
        let from = if self.random.bool() { known.len().saturating_sub(8) } else { 0 };
        (!known.is_empty()).then(|| known[self.random.usize(from..known.len())].clone())
    }

    async fn cancel(&mut self) {
        if let Some((task, id)) = self.some_task() {
            self.cancel_task(task, &id).await;
        }
    }

    async fn delete_some(&mut self) {
        if let Some(task) = self.some_task() {
            self.delete_tasks(&[task]).await;
        }
    }

    /// Returns whether the answer shows that nothing was done, because the store was not available.
    fn refused(&self, task: u64, problem: &Error) {
        if problem.is_unavailable() {
            self.write(What::Undone { task });
        }
    }

    async fn inspect(&mut self) {
        let inspector = self.client.inspector();
        if let Some((_, id)) = self.some_task() {
            drop(inspector.get(&id).await);
        }
        let queue = self.queues.pick(&mut self.random);
        drop(inspector.counts(queue).await);
        drop(inspector.workers(queue).await);
    }
}
