//! A store with something of every kind, and a call of each script in every situation in which its
//! writes differ.

use std::{collections::HashMap, time::Duration};

use chrono::DateTime;
use optimus_core::{
    Due, Lease, OnLost, ShutScope, Submission, TaskId, TaskState, WorkerId,
    broker::{Batch, BrokerError, FailureOutcome, Give, Keep, LEDGER_SLOTS, Shutting, StoredBy},
};

use crate::{
    acts::{Grants, LEASE, done, done_biz, failed, given, keep, ms},
    after::remembered,
    bench::{Bench, START},
    gathers::{gathered, three_of},
    jobs::{job, job_of, ready},
    lanes::{blocking, done_in, lane},
    limits::one_in_10_s,
    world_fleet::attend,
    world_operations::is_operation,
};

/// The time at which all situations take place, in ms.
pub(crate) const NOW: u64 = 60_000;
/// After this time an act is no longer kept.
const YEARS_MS: u64 = 100_000_000_000;
pub(crate) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The tasks and workers, with the names of [`World::build`].
pub(crate) struct World {
    pub(crate) tasks: HashMap<&'static str, TaskId>,
    pub(crate) busy: WorkerId,
    pub(crate) idle: WorkerId,
    pub(crate) held: Vec<Lease>,
}

impl World {
    /// Fills the store.
    pub(crate) async fn build(bench: &Bench) -> Self {
        let busy = bench.worker_for(0, "busy", ms(600_000)).await;
        let idle = bench.worker_for(0, "idle", ms(600_000)).await;
        let mut world = Self { tasks: HashMap::new(), busy, idle, held: Vec::new() };
        world.lose_some(bench).await;
        world.end_some(bench).await;
        world.hold_some(bench).await;
        world.add_some(bench).await;
        world.wait_some(bench).await;
        world.group_some(bench).await;
        world.await_all(bench).await;
        world.tally_some(bench).await;
        world.log_some(bench).await;
        attend(bench, 59_500, &world.busy).await.expect("nothing refuses it");
        world.operate_some(bench).await;
        bench.at(59_000).audit(&bench.queue, START + 59_000, "0 i{}").await.expect("it is a line");
        let renewed = bench.at(59_000).renew(&bench.queue, &world.busy, ms(600_000)).await;
        renewed.expect("the busy worker is alive");
        world
    }

    pub(crate) fn id(&self, name: &str) -> &TaskId {
        &self.tasks[name]
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.tasks.keys().copied()
    }

    pub(crate) async fn submit(
        &mut self,
        bench: &Bench,
        at: u64,
        tasks: Vec<(&'static str, Submission)>,
    ) {
        self.tasks.extend(tasks.iter().map(|(name, task)| (*name, task.id().clone())));
        let number = bench.next_number();
        let tasks: Vec<Submission> = tasks.into_iter().map(|(_, task)| task).collect();
        let batch = Batch {
            queue: &bench.queue,
            client: "c1",
            number,
            since: number.saturating_sub(LEDGER_SLOTS),
            keep: true,
            tasks: &tasks,
        };
        bench.at(at).submit(&batch).await.expect("this submit is not refused");
    }

    /// Loses a worker with three tasks. Its lease is over at `NOW`.
    async fn lose_some(&mut self, bench: &Bench) {
        let lost = bench.worker(0, "lost").await;
        let tasks = vec![
            ("lost", ready(job())),
            ("lost cancelled", ready(job().biz_id("lost cancelled"))),
            ("lost dead", ready(job().on_lost(OnLost::Dead))),
            ("lost of lane", ready(job().on_lost(OnLost::Dead)).in_lane(lane("lost", 1))),
            ("after lost", ready(job()).in_lane(lane("lost", 1))),
        ];
        self.submit(bench, 0, tasks).await;
        assert_eq!(bench.claim(0, &lost, 1, 9).await.grants.len(), 4);
        bench.at(0).cancel(self.id("lost cancelled")).await.expect("the task is working");
    }

    /// Ends some tasks, and lets others wait for a retry.
    async fn end_some(&mut self, bench: &Bench) {
        let tasks =
            ["dead", "done", "due retry", "later retry", "tried", "lane dead", "blocks", "away"];
        let submissions = tasks.map(|name| match name {
            "dead" => (name, ready(job().biz_id("dead"))),
            "later retry" => (name, ready(job().biz_id("later retry"))),
            "lane dead" => (name, ready(job()).in_lane(lane("free", 1))),
            "blocks" => (name, ready(job()).in_lane(blocking("blocked"))),
            "away" => (name, ready(job()).in_lane(lane("wide", 2))),
            _ => (name, ready(job())),
        });
        self.submit(bench, 1_000, submissions.into()).await;
        let claimed = bench.claim(1_000, &self.busy, 1, 8).await;
        let leases = claimed.leases(&self.busy);
        assert!(bench.complete(1_000, &[done(&leases[1])]).await.is_empty());
        let outcomes = [
            failed(&leases[0], FailureOutcome::Dead),
            failed(&leases[2], FailureOutcome::Retry(ms(49_000))),
            failed(&leases[3], FailureOutcome::Retry(ms(399_000))),
            failed(&leases[4], FailureOutcome::Retry(ms(1_000))),
            failed(&leases[5], FailureOutcome::Dead),
            failed(&leases[6], FailureOutcome::Dead),
            failed(&leases[7], FailureOutcome::Retry(ms(49_000))),
        ];
        assert!(bench.fail(1_000, &outcomes).await.is_empty());
    }

    /// Lets the busy worker hold five tasks.
    async fn hold_some(&mut self, bench: &Bench) {
        let tasks = vec![
            ("held", ready(job())),
            ("held biz", ready(job().biz_id("held biz").biz_window(DAY))),
            ("held intent", ready(job().biz_id("held intent"))),
            ("held ranked", ready(job().priority(3))),
            ("held of lane", ready(job()).in_lane(lane("held", 1))),
            ("after held", ready(job()).in_lane(lane("held", 1))),
            ("held wide 1", ready(job()).in_lane(lane("wide", 2))),
            ("held wide 2", ready(job()).in_lane(lane("wide", 2))),
            ("after wide", ready(job()).in_lane(lane("wide", 2))),
        ];
        self.submit(bench, 3_000, tasks).await;
        self.held = bench.claim(3_000, &self.busy, 2, 8).await.leases(&self.busy);
        assert_eq!(self.held.len(), 8);
        bench.at(3_000).cancel(self.id("held intent")).await.expect("the task is working");
    }

    /// Adds tasks that wait, and the tombstones of a cancel.
    async fn add_some(&mut self, bench: &Bench) {
        let large = format!("\"{}\"", "x".repeat(20_000));
        let tasks = vec![
            ("ready", ready(job().biz_id("ready"))),
            ("tombstone", ready(job().biz_id("tombstone"))),
            ("requeued", ready(job())),
            ("ranked", ready(job().priority(2).biz_id("ranked"))),
            ("large", ready(job_of(large))),
            ("due", ready(job().due(Due::In(ms(46_000))))),
            ("due ranked", ready(job().due(Due::In(ms(46_000))).priority(1))),
            ("later", ready(job().due(Due::In(ms(496_000))).biz_id("later"))),
            ("offered", ready(job()).in_lane(lane("line", 1))),
            ("waits", ready(job()).in_lane(lane("line", 1))),
            ("last", ready(job().priority(1)).in_lane(lane("line", 1))),
            ("due of lane", ready(job().due(Due::In(ms(46_000)))).in_lane(lane("line", 1))),
            ("due alone", ready(job().due(Due::In(ms(46_000)))).in_lane(lane("alone", 1))),
            ("after blocks", ready(job()).in_lane(blocking("blocked"))),
        ];
        self.submit(bench, 4_000, tasks).await;
        for name in ["tombstone", "requeued"] {
            bench.at(4_000).cancel(self.id(name)).await.expect("the task is ready");
        }
        bench.at(4_000).requeue(self.id("requeued")).await.expect("the task is cancelled");
    }

    async fn await_all(&self, bench: &Bench) {
        for (name, id) in &self.tasks {
            if !["dead", "done", "tombstone", "blocks", "lane dead", "unmet", "unmet there"]
                .contains(name)
            {
                bench.wait(id, "waiting").await;
            }
        }
    }

    /// Calls a script in a situation; a refusal is an answer.
    pub(crate) async fn act(
        &self,
        bench: &Bench,
        script: &str,
        situation: &str,
    ) -> Result<(), BrokerError> {
        match self.call(bench, script, situation).await {
            Err(BrokerError::Refused(..)) => Ok(()),
            other => other,
        }
    }

    async fn call(&self, bench: &Bench, script: &str, situation: &str) -> Result<(), BrokerError> {
        let broker = bench.at(if situation.contains("outage") { NOW + 400_000 } else { NOW });
        let (queue, busy) = (&bench.queue, &self.busy);
        match script {
            _ if is_operation(script, situation) => self.operate_in(bench, script, situation).await,
            dispenser if dispenser.starts_with("dispenser_") => {
                self.dispense_in(bench, script, situation).await
            }
            "submit" => self.submit_in(bench, situation).await,
            "claim" => {
                let want = if situation.ends_with("one") { 1 } else { 128 };
                broker.claim(queue, busy, 9, want).await.map(drop)
            }
            "complete" | "fail" | "release" => self.report_in(bench, script, situation).await,
            "collect" => self.collect_in(bench, situation).await,
            "register" => {
                let newcomer = WorkerId::from_stored("newcomer");
                let worker = if situation == "a known worker" { busy } else { &newcomer };
                broker.register(queue, worker, LEASE, "{}").await.map(drop)
            }
            "renew" => broker.renew(queue, self.worker_in(situation), LEASE).await.map(drop),
            "reap" => broker.reap(queue, busy, LEASE, 128).await.map(drop),
            "leave" => broker.leave(queue, self.worker_in(situation)).await.map(drop),
            "cancel" => broker.cancel(self.id_in(situation)).await.map(drop),
            "requeue" => broker.requeue_as(self.id_in(situation), "again").await.map(drop),
            "run_now" => broker.run_now(queue, &[self.id_in(situation)]).await.map(drop),
            "delete" => broker.delete_all(queue, &[self.id_in(situation)]).await.map(drop),
            "pause" | "limit" | "resize" | "acquire" | "repay" => {
                self.limit_in(bench, script, situation).await
            }
            "interrupt" => broker.interrupt(queue, &self.idle).await,
            "purge" => purge_in(bench, situation).await,
            "retire" => broker.retire(queue, ms(0)).await.map(drop),
            "await" if situation == "a read" => {
                broker.state_of(self.id("held"), None).await.map(drop)
            }
            "await" => {
                let stored_by = Some(StoredBy { client: "c1", number: 2 });
                broker.wait_for_end(self.id_in(situation), "another", stored_by).await.map(drop)
            }
            "list" => {
                let word = situation.rsplit(' ').next().unwrap_or_default();
                let state = TaskState::from_word(word).expect("a state");
                broker.list(queue, state, 128, "").await.map(drop)
            }
            "inspect" => broker.inspect(self.id_in(situation)).await.map(drop),
            "count" => broker.counts(queue).await.map(drop),
            "attend" | "wish" => self.attend_in(bench, script, situation).await,
            "audit" => {
                let at_ms = START + NOW + if situation == "an act" { 0 } else { YEARS_MS };
                broker.audit(queue, at_ms, "1 i{}").await
            }
            "fingerprints" => broker.dead_groups(queue, 1_000).await.map(drop),
            "tally" | "stats" => self.tally_in(bench, script, situation).await,
            "retain" | "history" | "annotate" => self.history_in(bench, script, situation).await,
            "enroll" | "disband" => self.group_in(bench, script, situation).await,
            "apply" if ["members", "results"].contains(&situation) => {
                self.count_in(bench, situation).await
            }
            "apply" | "relay" | "reask" => self.relay_in(bench, script, situation).await,
            "schedule" | "reschedule" | "agenda" | "tick" => {
                self.schedule_in(bench, script, situation).await
            }
            "hold" | "yield" | "recount" | "suspend" | "checkpoint" | "demote" | "survey"
            | "rescan" => self.roster_in(bench, script, situation).await,
            other => panic!("no script {other}"),
        }
    }

    fn worker_in(&self, situation: &str) -> &WorkerId {
        if situation.contains("idle") { &self.idle } else { &self.busy }
    }

    fn id_in(&self, situation: &str) -> &TaskId {
        if situation == "gathered offered" {
            return self.offered();
        }
        self.id(match situation {
            "delayed" => "later",
            "retry" => "later retry",
            "working" | "a live task" => "held",
            "cancelled" => "tombstone",
            "a success" => "done",
            "ranked lane, offered" => "ranked offered",
            "limited waits" => "r2",
            "gathered waits" => "gathers biz",
            "gathered alone" => "gathers alone",
            "gathered no more" => "gathers no more",
            other => other,
        })
    }

    async fn submit_in(&self, bench: &Bench, situation: &str) -> Result<(), BrokerError> {
        let large = || format!("\"{}\"", "x".repeat(20_000));
        let soon = DateTime::from_timestamp_millis(i64::try_from(START + NOW + 1).unwrap());
        let tasks = match situation {
            "a plain task" => vec![ready(job())],
            "prerequisites" => self.dependants(bench),
            "flow" => self.flow(),
            "gathered" => gathered(0, 4, &three_of("new")),
            _ => vec![
                ready(job()),
                ready(job_of(large()).biz_id("new").priority(1)),
                ready(job().due(Due::At(soon.unwrap())).biz_id("later new").biz_window(DAY)),
                ready(job().biz_id("later")),
                ready(job().biz_id("of lane")).in_lane(lane("line", 1)),
                ready(job().priority(1)).in_lane(lane("new", 1)),
                ready(job()).in_lane(lane("new", 1)),
                ready(job()).limited_by(vec![one_in_10_s("r")]),
            ],
        };
        let number = bench.next_number();
        let keep = situation != "a plain task";
        let batch = Batch {
            queue: &bench.queue,
            client: "c1",
            number,
            since: number.saturating_sub(LEDGER_SLOTS),
            keep,
            tasks: &tasks,
        };
        bench.at(NOW).submit(&batch).await.map(drop)
    }

    async fn report_in(
        &self,
        bench: &Bench,
        script: &str,
        situation: &str,
    ) -> Result<(), BrokerError> {
        let broker = bench.at(NOW);
        let (queue, busy) = (&bench.queue, &self.busy);
        let call = match script {
            "complete" => {
                let report = |lease: &Lease| match &lease.id {
                    id if id == self.id("held biz") => remembered(done_biz(lease, "held biz")),
                    id if id == self.id("held intent") => done_biz(lease, "held intent"),
                    id if id == self.id("held of lane") => done_in(lease, &lane("held", 1)),
                    id if id == self.id("held wide 1") || id == self.id("held wide 2") => {
                        done_in(lease, &lane("wide", 2))
                    }
                    _ => done(lease),
                };
                let mut reports: Vec<_> = self.held.iter().map(report).collect();
                reports[0].result = Some((b"42".to_vec(), ms(600_000)));
                Self::count_some(&mut reports, situation);
                broker.complete_call(queue, busy, &reports)
            }
            "fail" => {
                let outcome = match situation {
                    "retry" | "limited, retry" | "limited, shut" | "resized, retry"
                    | "gathered, retry" => FailureOutcome::Retry(ms(1)),
                    "dead" | "kept, dead" => FailureOutcome::Dead,
                    "lost" => FailureOutcome::Lost,
                    _ => FailureOutcome::Cancelled,
                };
                let mut reports: Vec<_> = self.held.iter().map(|l| failed(l, outcome)).collect();
                if situation == "limited, shut" {
                    let shut = Shutting { scope: ShutScope::Limit, wait: ms(9), why: "429".into() };
                    reports.last_mut().expect("it holds tasks").shut = Some(shut);
                }
                broker.fail_call(queue, busy, &reports)
            }
            _ => {
                let give = match situation {
                    "head" | "limited, head" | "gathered, head" => Give::Head,
                    "snooze" | "limited, snooze" => Give::Snooze(ms(1)),
                    _ => Give::Misfit(ms(1)),
                };
                let reports: Vec<_> = self.held.iter().map(|l| given(l, give)).collect();
                broker.release_call(queue, busy, &reports)
            }
        };
        let reported = broker.report(call).await?;
        assert!(reported.stale.is_empty(), "{script}: {reported:?}");
        Ok(())
    }
}

async fn purge_in(bench: &Bench, situation: &str) -> Result<(), BrokerError> {
    let (at, keep, ledgers_idle) = match situation {
        "old groups" => (NOW + 700_000, keep(10_000, 180 * DAY), DAY),
        "by cap" => (NOW, keep(0, 180 * DAY), ms(30_000)),
        "by bytes" => (NOW, Keep { bytes: 1, ..keep(10_000, 180 * DAY) }, ms(30_000)),
        _ => (NOW, keep(10_000, ms(30_000)), DAY),
    };
    bench.at(at).purge(&bench.queue, keep, ledgers_idle).await.map(drop)
}
