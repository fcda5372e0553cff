//! One run: steps applied to the store and to the reference, compared after each.

use std::fmt::{Display, Write as _};

use optimus_core::broker::Broker;

use crate::{
    actors::Actors,
    answer::Answer,
    bench::{Bench, START},
    call::{Call, LEDGER_IDLE_MS},
    names::Names,
    reached_cases::Reach,
    reference::Queue,
    send,
    side::Side,
    step::Step,
};

/// Two queues of one store, with their references.
pub(crate) struct Run<'a> {
    pub(crate) sides: [Side<'a>; 2],
    /// The connection that may wait for messages.
    pub(crate) listener: &'a Broker,
    pub(crate) reach: Reach,
    pub(crate) now: u64,
    sent: Vec<Sent>,
    transcript: Option<String>,
}

/// A call that was made.
#[derive(Clone)]
struct Sent {
    side: usize,
    call: Call,
    at: u64,
}

impl<'a> Run<'a> {
    /// Makes a run on two empty queues, with a connection that may wait.
    pub(crate) fn new(benches: &'a [Bench; 2], listener: &'a Broker) -> Self {
        let sides = [&benches[0], &benches[1]].map(|bench| Side {
            bench,
            reference: Queue::named(&bench.queue),
            actors: Actors::new(bench.queue.clone()),
            has_wakeup: false,
        });
        Self {
            sides,
            listener,
            now: START,
            sent: Vec::new(),
            transcript: None,
            reach: Reach::default(),
        }
    }

    /// Makes the run record each step.
    pub(crate) fn recording(self) -> Self {
        Self { transcript: Some(String::new()), ..self }
    }

    /// Returns all steps, one line each, with short names for the tasks.
    pub(crate) fn transcript(&self) -> String {
        self.named(self.transcript.as_deref().unwrap_or_default())
    }

    /// Returns the cases that the run has reached.
    pub(crate) fn into_reach(self) -> Reach {
        self.reach
    }

    /// Returns a text with short names for the tasks.
    pub(crate) fn named(&self, text: &str) -> String {
        Names::of(self.sides.iter().flat_map(|side| &side.actors.tasks)).put_into(text)
    }

    /// Applies the steps one by one, until the store differs from the reference.
    pub(crate) async fn go(&mut self, steps: &[Step]) -> Result<(), String> {
        for (at, step) in steps.iter().enumerate() {
            self.step(at, step).await.map_err(|what| format!("at step {at}, {what}"))?;
        }
        self.drain(steps.len()).await.map_err(|what| format!("at the end, {what}"))?;
        for side in &self.sides {
            let wrong = side.bench.fsck().await;
            if !wrong.is_empty() {
                return Err(format!("at the end, fsck finds:\n  {}", wrong.join("\n  ")));
            }
        }
        Ok(())
    }

    async fn step(&mut self, at: usize, step: &Step) -> Result<(), String> {
        match *step {
            Step::Clock { ms } => {
                self.now = self.now.saturating_add_signed(ms).max(START);
                Ok(())
            }
            Step::Outlive { queue, worker, ms, reap } => {
                self.outlive(at, (queue, worker), ms, reap).await
            }
            Step::FailAll { queue, worker, rounds } => {
                self.fail_all(at, (queue, worker), rounds).await
            }
            Step::Abandon { queue } => self.abandon(at, queue).await,
            Step::Fill { full } => {
                self.fill(full).await;
                Ok(())
            }
            Step::Again => match self.sent.last().cloned() {
                Some(sent) => self.send_again(at, sent).await,
                None => Ok(()),
            },
            Step::Replay { sent } => {
                match self.sent.get(usize::from(sent) % self.sent.len().max(1)).cloned() {
                    Some(sent) => self.send_again(at, sent).await,
                    None => Ok(()),
                }
            }
            Step::ReadCompletions { queue, client } => {
                self.read_completions(at, queue, client).await
            }
            Step::AnswerWakeup { queue, pass_on } => self.answer_wakeup(at, queue, pass_on).await,
            Step::ReadStop { queue } => self.read_stop(at, queue).await,
            Step::Submit { queue, .. }
            | Step::Claim { queue, .. }
            | Step::ClaimAgain { queue, .. }
            | Step::Complete { queue, .. }
            | Step::Fail { queue, .. }
            | Step::Release { queue, .. }
            | Step::Register { queue, .. }
            | Step::Renew { queue, .. }
            | Step::Reap { queue, .. }
            | Step::Leave { queue, .. }
            | Step::Cancel { queue, .. }
            | Step::Requeue { queue, .. }
            | Step::Pause { queue, .. }
            | Step::Resize { queue, .. }
            | Step::Delete { queue, .. }
            | Step::Purge { queue, .. }
            | Step::Retire { queue, .. }
            | Step::Await { queue, .. }
            | Step::Inspect { queue, .. }
            | Step::Relay { queue }
            | Step::Reask { queue }
            | Step::Read { queue } => {
                let side = &mut self.sides[usize::from(queue)];
                let Some(call) = side.actors.call(self.now, step, &side.reference) else {
                    return Ok(());
                };
                self.send_new(at, queue, call).await
            }
        }
    }

    /// Sends a new call.
    pub(crate) async fn send_new(
        &mut self,
        at: usize,
        queue: u8,
        call: Call,
    ) -> Result<(), String> {
        let sent = Sent { side: usize::from(queue), call, at: self.now };
        self.sent.push(sent.clone());
        self.send(at, sent, false).await
    }

    /// Sends an earlier call again, unchanged. A client gives up on a submit long before its ledger
    /// is purged, and stores no given id again after its task has succeeded.
    async fn send_again(&mut self, at: usize, sent: Sent) -> Result<(), String> {
        if let Call::Submit(submit) = &sent.call {
            let given_up = self.now.abs_diff(sent.at) > LEDGER_IDLE_MS / 2;
            let reference = &self.sides[sent.side].reference;
            if given_up || reference.would_store_a_success(submit) {
                return Ok(());
            }
        }
        self.send(at, sent, true).await
    }

    /// Applies a call to both sides and compares everything.
    async fn send(&mut self, at: usize, sent: Sent, again: bool) -> Result<(), String> {
        let Sent { side, call, .. } = sent;
        self.record(at, side, &call);
        let (now, side) = (self.now, &mut self.sides[side]);
        let mut answer = send::send(side.bench, now, &call).await?;
        if let (Call::Claim { worker, seq, .. }, Answer::Granted(granted)) = (&call, &mut answer) {
            let last = side.reference.workers.get(worker).and_then(|worker| worker.last_claim);
            if last.is_some_and(|last| last.seq == *seq) {
                // A repeated claim returns its tasks in any order.
                granted.grants.sort();
                self.reach.count("claim is answered again");
            }
        }
        self.reach.count_call(&call, &answer, again);
        if let Some(transcript) = &mut self.transcript {
            writeln!(transcript, "      → {answer}").expect("a String grows");
        }
        let dump = side.bench.dump().await;
        side.compare(now, &call, &answer, &dump)?;
        side.actors.learn(&call, &answer);
        Ok(())
    }

    pub(crate) fn record(&mut self, at: usize, side: usize, what: &impl Display) {
        let (elapsed, queue) = (self.now - START, self.sides[side].bench.queue.as_str());
        if let Some(transcript) = &mut self.transcript {
            writeln!(transcript, "{at:4}  +{elapsed:<8} ms  {queue:3}  {what}")
                .expect("a String grows");
        }
    }
}
