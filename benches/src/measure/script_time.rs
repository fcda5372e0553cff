//! Measures the longest time for which one call keeps Redis busy, with a million ready tasks and a
//! hundred thousand whose lease is over.

use std::time::Duration;

use anyhow::ensure;
use optimus_core::broker::{
    BATCH_MAX, Batch, Broker, Claimed, Endpoint, Failure, FailureOutcome, Give, Keep, LEDGER_SLOTS,
    Release,
};
use optimus_core::{QueueName, Submission, TaskId, WorkerId};
use optimus_testkit::RedisServer;
use redis::Connection;

use super::{Measurement, plain};
use crate::bench::{Bench, progress};
use crate::field::Sample;
use crate::row::{Row, params};

pub(super) const SCRIPT_TIME: Measurement = Measurement {
    name: "script_time",
    about: "how long a call keeps Redis busy with 1,000,000 ready and 100,000 lapsed tasks",
    run: script_time,
};

const LEASE: Duration = Duration::from_secs(10);
const CALL_TASKS: usize = 1_000;
/// The number of calls of each verb.
const CALLS: usize = 200;
/// The claims that stay open for the heartbeat to renew, as of a worker with 1,024 slots.
const OPEN: usize = 8;
/// The number of workers of a queue. Some of them hold one task each.
const WORKERS: usize = 1_000;

fn script_time(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let server = RedisServer::builder().tcp().start();
        let (ready, lapsed) = (bench.scale.tasks(1_000_000), bench.scale.tasks(100_000));
        let mut scene = Scene::new(&server)?;
        let shown = params([("ready", ready.into()), ("lapsed", lapsed.into())]);
        progress(SCRIPT_TIME.name, &shown, "filling");
        scene.fill(usize::try_from(lapsed)?, usize::try_from(ready)?).await?;
        let mut rows = Vec::new();
        for verb in VERBS {
            scene.slowlog(&["CONFIG", "SET", "slowlog-log-slower-than", "0"])?;
            scene.slowlog(&["SLOWLOG", "RESET"])?;
            scene.call(verb).await?;
            let us = scene.slowlog(&["SLOWLOG", "GET", "100000"])?;
            let shown = params([("of", (*verb).into()), ("ready", ready.into())]);
            rows.push(Row::of_runs(SCRIPT_TIME.name, shown, &[Sample::new().with_latencies(us)]));
        }
        Ok(rows)
    })
}

/// The verbs, in an order in which each call finds the state that it needs.
const VERBS: &[&str] = &[
    "submit 1",
    "submit 1000",
    "reap",
    "claim",
    "complete",
    "fail",
    "release",
    "renew",
    "cancel",
    "requeue",
    "inspect",
    "await",
    "purge",
    "cancel 128 held",
];

struct Scene {
    broker: Broker,
    admin: Connection,
    queue: QueueName,
    worker: WorkerId,
    now_ms: u64,
    number: u64,
    ids: Vec<TaskId>,
    claims: Vec<Claimed>,
}

impl Scene {
    fn new(server: &RedisServer) -> anyhow::Result<Self> {
        let endpoint = Endpoint::parse(&server.url())?;
        let mut admin = redis::Client::open(server.url())?.get_connection()?;
        let cap = ["CONFIG", "SET", "slowlog-max-len", "100000"];
        command(&cap).query::<()>(&mut admin)?;
        let now_ms = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
        Ok(Self {
            broker: Broker::new(endpoint, "bench", "bench"),
            admin,
            queue: plain::queue()?,
            worker: WorkerId::from_stored("live"),
            now_ms: u64::try_from(now_ms.as_millis())?,
            number: 0,
            ids: Vec::new(),
            claims: Vec::new(),
        })
    }

    /// Returns the broker with a separate clock, so that leases end without a wait.
    fn broker(&self) -> Broker {
        self.broker.at(self.now_ms)
    }

    async fn fill(&mut self, lapsed: usize, ready: usize) -> anyhow::Result<()> {
        self.submit(lapsed, CALL_TASKS).await?;
        for number in 0..lapsed.div_ceil(BATCH_MAX) {
            let worker = WorkerId::from_stored(&format!("gone-{number}"));
            self.broker().register(&self.queue, &worker, LEASE, "{}").await?;
            self.broker().claim(&self.queue, &worker, 1, BATCH_MAX).await?;
        }
        self.submit(ready, CALL_TASKS).await?;
        // Until those leases end, these heartbeats prove that there is no outage.
        self.broker().register(&self.queue, &self.worker, LEASE, "{}").await?;
        for _ in 0..8 {
            self.now_ms += u64::try_from(LEASE.as_millis())? / 4;
            self.broker().renew(&self.queue, &self.worker, LEASE).await?;
        }
        Ok(())
    }

    async fn submit(&mut self, tasks: usize, batch: usize) -> anyhow::Result<()> {
        for _ in 0..tasks / batch {
            let tasks: Vec<Submission> =
                (0..batch).map(|_| plain::submission()).collect::<Result<_, _>>()?;
            self.number += 1;
            let (queue, number) = (&self.queue, self.number);
            let batch = Batch {
                queue,
                client: "client",
                number,
                since: number.saturating_sub(LEDGER_SLOTS),
                keep: number == 1,
                tasks: &tasks,
            };
            self.broker().submit(&batch).await?;
            self.ids = tasks.iter().map(|task| task.id().clone()).collect();
        }
        Ok(())
    }

    async fn call(&mut self, verb: &str) -> anyhow::Result<()> {
        let (broker, queue, worker) = (self.broker(), self.queue.clone(), self.worker.clone());
        match verb {
            "submit 1" => return self.submit(CALLS, 1).await,
            "submit 1000" => return self.submit(CALLS * CALL_TASKS, CALL_TASKS).await,
            "cancel 128 held" => return self.cancel_held().await,
            _ => {}
        }
        for at in 0..CALLS {
            match verb {
                "reap" => {
                    let reaped = broker.reap(&queue, &worker, LEASE, BATCH_MAX).await?;
                    ensure!(at > 0 || reaped.tasks > 0, "nothing to reap");
                    // A quick run has tasks for some of the calls only.
                    if reaped.tasks == 0 {
                        break;
                    }
                }
                "claim" => {
                    let seq = at as u64 + 1;
                    self.claims.push(broker.claim(&queue, &worker, seq, BATCH_MAX).await?);
                }
                "renew" => drop(broker.renew(&queue, &worker, LEASE).await?),
                "complete" | "fail" | "release" => {
                    let Some(claim) = self.claims.pop() else { continue };
                    self.report(verb, &claim).await?;
                    // Each of the three verbs gets a third of the tasks.
                    if at + 1 >= (CALLS - OPEN) / 3 {
                        break;
                    }
                }
                "cancel" => drop(broker.cancel(&self.ids[at]).await?),
                "requeue" => drop(broker.requeue(&self.ids[at]).await?),
                "inspect" => drop(broker.inspect(&self.ids[at]).await?),
                "await" => drop(broker.wait_for_end(&self.ids[at], "client", None).await?),
                "purge" => {
                    let age = Duration::from_secs(86_400);
                    let keep = Keep { tasks: 0, recent: Duration::ZERO, bytes: 0, age };
                    broker.purge(&queue, keep, age).await?;
                }
                _ => unreachable!("{verb}"),
            }
        }
        Ok(())
    }

    /// Repeatedly requests the stop of tasks, each of which another worker holds, while most
    /// workers are idle. It uses a separate queue, in which no lease is over. Only the scripts are
    /// slow enough for the log: an entry for each of their commands would be a fifth of the time.
    async fn cancel_held(&mut self) -> anyhow::Result<()> {
        let queue = QueueName::new("held")?;
        let held = std::mem::replace(&mut self.queue, queue.clone());
        let (broker, mut ids) = (self.broker(), Vec::new());
        let worker = |number: usize| WorkerId::from_stored(&format!("holds-{number:03}"));
        for number in 0..WORKERS {
            broker.register(&queue, &worker(number), LEASE, "{}").await?;
        }
        for number in 0..WORKERS {
            broker.renew(&queue, &worker(number), LEASE).await?;
        }
        self.submit(BATCH_MAX, BATCH_MAX).await?;
        // Not the first ones of any order.
        for number in (0..WORKERS).rev().step_by(WORKERS / BATCH_MAX).take(BATCH_MAX) {
            let claimed = broker.claim(&queue, &worker(number), 1, 1).await?;
            ids.extend(claimed.grants.into_iter().map(|grant| grant.id));
        }
        ensure!(ids.len() == BATCH_MAX, "{} tasks are held", ids.len());
        self.slowlog(&["CONFIG", "SET", "slowlog-log-slower-than", "100"])?;
        self.slowlog(&["SLOWLOG", "RESET"])?;
        let ids: Vec<&TaskId> = ids.iter().collect();
        for _ in 0..CALLS {
            broker.cancel_all(&queue, &ids).await?;
        }
        self.queue = held;
        Ok(())
    }

    async fn report(&self, verb: &str, claim: &Claimed) -> anyhow::Result<()> {
        let (broker, queue, worker) = (self.broker(), &self.queue, &self.worker);
        let leases = plain::leases(claim, worker);
        let call = match verb {
            "complete" => {
                let done: Vec<_> =
                    leases.map(|lease| plain::completion(lease, claim.now_ms)).collect();
                broker.complete_call(queue, worker, &done)
            }
            "fail" => {
                let (outcome, error) = (FailureOutcome::Dead, r#"{"reason":"failed"}"#.to_owned());
                let failure = |lease| Failure { lease, outcome, shut: None, error: error.clone() };
                broker.fail_call(queue, worker, &leases.map(failure).collect::<Vec<_>>())
            }
            _ => {
                let release = |lease| Release { lease, give: Give::Head };
                broker.release_call(queue, worker, &leases.map(release).collect::<Vec<_>>())
            }
        };
        ensure!(broker.report(call).await?.stale.is_empty(), "a report was refused");
        Ok(())
    }

    /// Sends a command to the slow log. Returns the times of the script calls in its reply, in µs.
    fn slowlog(&mut self, words: &[&str]) -> anyhow::Result<Vec<f64>> {
        let answer = command(words).query(&mut self.admin)?;
        let redis::Value::Array(entries) = answer else { return Ok(Vec::new()) };
        Ok(entries.iter().filter_map(script_us).collect())
    }
}

/// Returns the time in an entry, which has the form `[id, when, us, [command, …], …]`.
fn script_us(entry: &redis::Value) -> Option<f64> {
    let redis::Value::Array(fields) = entry else { return None };
    let (redis::Value::Int(us), redis::Value::Array(words)) = (fields.get(2)?, fields.get(3)?)
    else {
        return None;
    };
    matches!(words.first()?, redis::Value::BulkString(name) if name.as_slice() == b"EVALSHA")
        .then_some(*us as f64)
}

fn command(words: &[&str]) -> redis::Cmd {
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]);
    command
}
