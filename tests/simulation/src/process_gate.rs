//! The connection of one process to the store: [`ProcessGate`].

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use optimus_embedded::Connection;
use optimus_embedded::simulation::Gate;
use optimus_testkit::history::What;
use redis::{Cmd, Pipeline, RedisError, RedisFuture, RedisResult, Value};
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::exchange_fault::{Fault, Refusal, Silence};
use crate::network::{Network, Passage, is_script};

/// The time after which a reply is given up while no byte arrives, as in `broker/pulse.rs`.
const SILENCE_MAX: Duration = Duration::from_secs(8);

/// Applies the fault plan to the exchanges of a process.
pub struct ProcessGate {
    network: Arc<Network>,
    process: u32,
}

/// The commands to send, and their connection.
struct Request {
    number: u64,
    behind: Connection,
    commands: Vec<Cmd>,
    blocks: bool,
}

/// When it is dropped, records that a process was cut off from the store.
struct Hindrance<'a> {
    gate: &'a ProcessGate,
    since: u64,
}

impl Drop for Hindrance<'_> {
    fn drop(&mut self) {
        let of = Some(self.gate.process);
        self.gate.network.journal.write(0, What::Outage { since: self.since, of });
    }
}

impl ProcessGate {
    /// Returns the gate of the process with this number. The gate of number 0 is always open.
    pub fn new(network: Arc<Network>, process: u32) -> Self {
        Self { network, process }
    }

    async fn exchange(&self, mut request: Request) -> RedisResult<Vec<Value>> {
        let passage = self.network.depart(self.process, request.behind.id(), &request.commands);
        request.number = passage.number;
        let (death, reset) = (passage.death.clone(), passage.reset.clone());
        tokio::select! {
            biased;
            () = death.cancelled() => pending().await,
            () = reset.cancelled() => Err(broken()),
            answers = self.travel(request, passage) => answers,
        }
    }

    async fn travel(&self, request: Request, passage: Passage) -> RedisResult<Vec<Value>> {
        let Some(fault) = passage.fault else { return self.deliver(request, &passage).await };
        let _hindrance = Hindrance { gate: self, since: self.network.journal.now_ns() };
        let answers = self.suffer(fault, request, &passage).await;
        if passage.beats && has_failed(&answers) {
            self.network.journal.write(0, What::Missed { worker: self.process });
        }
        answers
    }

    /// Performs an exchange that has a fault.
    async fn suffer(
        &self,
        fault: Fault,
        request: Request,
        passage: &Passage,
    ) -> RedisResult<Vec<Value>> {
        let patience = (!request.blocks).then_some(SILENCE_MAX);
        match fault {
            Fault::RequestLost(silence) => lost(silence, patience).await,
            Fault::ReplyLost(silence) => {
                let answers = self.deliver(request, passage).await?;
                if self.network.are_faults_over() {
                    return Ok(answers);
                }
                lost(silence, patience).await
            }
            Fault::Torn { arrive } => {
                let commands = request.commands.into_iter().take(arrive).collect();
                self.deliver(Request { commands, ..request }, passage).await?;
                Err(broken())
            }
            Fault::Doubled => self.twice(&request).await,
            Fault::Delayed(by) => {
                sleep(by).await;
                self.deliver(request, passage).await
            }
            Fault::Late(by) => {
                self.send_late(request, passage, by);
                Err(broken())
            }
            Fault::CallFails { script, nth, refusal } => {
                // The failing call takes as long as without the fault. Otherwise the script meets
                // another state than in the run that was observed.
                let (there, back) = passage.latency.unwrap_or_default();
                sleep(there).await;
                let answers = self.with_failing_call(&request, script, (nth, refusal)).await;
                sleep(back).await;
                answers
            }
            Fault::DiesBefore => self.die().await,
            Fault::DiesAfter => {
                let answers = self.deliver(request, passage).await?;
                if self.network.are_faults_over() {
                    return Ok(answers);
                }
                self.die().await
            }
            Fault::RolledBack { calls } => {
                self.network.roll_back(calls);
                Err(broken())
            }
        }
    }

    /// Performs some commands of a batch.
    async fn perform(&self, request: &Request, commands: &[Cmd]) -> RedisResult<Vec<Value>> {
        self.network.perform((self.process, request.number), &request.behind, commands).await
    }

    /// Sends an exchange to the store and returns the replies. A sent command arrives even if the
    /// caller no longer waits for its reply.
    async fn deliver(&self, request: Request, passage: &Passage) -> RedisResult<Vec<Value>> {
        let Some((there, back)) = passage.latency else {
            return self.perform(&request, &request.commands).await;
        };
        if request.blocks {
            sleep(there).await;
            return self.perform(&request, &request.commands).await;
        }
        let (network, process, reset) = (self.network.clone(), self.process, passage.reset.clone());
        let (sender, receiver) = oneshot::channel();
        tokio::spawn(async move {
            sleep(there).await;
            if reset.is_cancelled() {
                return;
            }
            let answers = network
                .perform((process, request.number), &request.behind, &request.commands)
                .await;
            sleep(back).await;
            drop(sender.send(answers));
        });
        receiver.await.unwrap_or_else(|_| Err(broken()))
    }

    async fn with_failing_call(
        &self,
        request: &Request,
        mut script: usize,
        (nth, refusal): (usize, Refusal),
    ) -> RedisResult<Vec<Value>> {
        let mut answers = Vec::new();
        for command in &request.commands {
            let fails = is_script(command) && script == 0;
            if fails {
                self.network.probe.arm(nth, refusal);
            }
            let one = std::slice::from_ref(command);
            answers.extend(self.perform(request, one).await?);
            if fails {
                self.network.probe.disarm();
            }
            script = script.wrapping_sub(usize::from(is_script(command)));
        }
        Ok(answers)
    }

    async fn twice(&self, request: &Request) -> RedisResult<Vec<Value>> {
        let mut answers = Vec::new();
        for command in &request.commands {
            let one = std::slice::from_ref(command);
            if is_script(command) {
                self.perform(request, one).await?;
            }
            answers.extend(self.perform(request, one).await?);
        }
        Ok(answers)
    }

    fn send_late(&self, request: Request, passage: &Passage, by: Duration) {
        let (network, process, reset) = (self.network.clone(), self.process, passage.reset.clone());
        network.count_late(1);
        tokio::spawn(async move {
            sleep(by).await;
            if !reset.is_cancelled() && !request.blocks {
                drop(
                    network
                        .perform((process, request.number), &request.behind, &request.commands)
                        .await,
                );
            }
            network.count_late(-1);
        });
    }

    async fn die<T>(&self) -> T {
        self.network.kill(self.process);
        pending().await
    }
}

impl Gate for ProcessGate {
    fn carry<'a>(
        &'a self,
        behind: Connection,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        let commands: Vec<Cmd> = pipeline.cmd_iter().cloned().collect();
        let blocks = commands.iter().any(|command| {
            matches!(command.args_iter().next(), Some(redis::Arg::Simple(b"BLPOP")))
        });
        Box::pin(async move {
            let answers = self.exchange(Request { number: 0, behind, commands, blocks }).await?;
            Ok(answers.into_iter().skip(offset).take(count).collect())
        })
    }
}

/// Returns the error that a client reports for a lost reply. A blocking command has no timeout, so
/// its client has no limit to its patience.
async fn lost<T>(silence: Silence, patience: Option<Duration>) -> RedisResult<T> {
    match (silence, patience) {
        (Silence::Broken, _) => Err(broken()),
        (Silence::Kept, None) => pending().await,
        (Silence::Kept, Some(patience)) => {
            sleep(patience).await;
            Err(RedisError::from(io::Error::from(io::ErrorKind::TimedOut)))
        }
    }
}

/// Returns whether the caller receives an error for any of its commands.
fn has_failed(answers: &RedisResult<Vec<Value>>) -> bool {
    match answers {
        Ok(answers) => answers.iter().any(|answer| matches!(answer, Value::ServerError(_))),
        Err(_) => true,
    }
}

fn broken() -> RedisError {
    RedisError::from(io::Error::from(io::ErrorKind::BrokenPipe))
}
