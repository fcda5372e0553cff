//! A roster with something of every kind, and the calls on it.

use std::{
    collections::{BTreeMap, HashMap},
    sync::atomic::{AtomicU64, Ordering},
};

use optimus_core::{
    Granted, Post, WorkerId,
    broker::{BrokerError, Ended, Holder},
};

use redis::cmd;

use crate::{
    acts::ms,
    bench::Bench,
    rosters::RosterMember,
    world::{NOW, World},
};

/// The number of the last heartbeat of any world. The members of a world have sent less than 100.
static CALLS: AtomicU64 = AtomicU64::new(100);

impl World {
    /// Fills the store with a roster of four posts. At `NOW` the busy member holds two posts and
    /// the idle one another; the lost one is dead and had the fourth.
    pub(crate) async fn with_roster(bench: &Bench, situation: &str) -> Self {
        let [mut busy, mut idle, mut lost] =
            ["busy", "idle", "lost"].map(|id| RosterMember::new(id, 4));
        (busy.lease, idle.lease) = (ms(45_000), ms(45_000));
        bench.hold(0, &mut busy).await;
        bench.hold(1_000, &mut idle).await;
        let changes = bench.hold(32_000, &mut busy).await;
        bench.hold(42_000, &mut lost).await;
        bench.give(42_100, &mut busy, &changes.drain).await;
        bench.hold(42_200, &mut idle).await;
        bench.hold(42_300, &mut lost).await;
        bench.hold(44_000, &mut busy).await;
        bench.hold(55_000, &mut idle).await;
        let held = [busy.holds().len(), idle.holds().len(), lost.holds().len()];
        assert_eq!(held, [2, 1, 1], "the members share the posts");
        let broker = bench.at(56_000);
        if situation != "roster, first" {
            let (kept, failing) = (busy.granted(0), busy.granted(1));
            broker.checkpoint(&holder(bench, &busy.id, kept), "7").await.expect("busy holds it");
            let waits = (ms(1_000), ms(9_000));
            for row in ["r1", "r2"] {
                let failed = broker.demote(&holder(bench, &busy.id, failing), row, waits).await;
                failed.expect("busy holds it");
            }
            broker.suspend(&bench.roster(), Some(3), "ann", "a repair").await.expect("it is there");
        }
        if situation == "roster, slow" {
            let figures = BTreeMap::from([(0, "{}".to_owned()), (1, "{}".to_owned())]);
            let ended = Ended { ok: 1, failed: 40, scan_at_ms: 0 };
            let told = broker.survey(&bench.roster(), ended, None, &figures).await;
            told.expect("the roster is there");
        }
        if situation == "roster, the last" {
            let generation = busy.granted(0).0.generation;
            let others = (1..4).map(|index| (Post { generation, index }.to_string(), "5"));
            let fields: Vec<_> = others.chain([("1/0".to_owned(), "3")]).collect();
            let () = bench.raw(cmd("DEL").arg(bench.key("positions"))).await;
            let () = bench.raw(cmd("HSET").arg(bench.key("positions")).arg(fields)).await;
            let () = bench.raw(cmd("HSET").arg(bench.key("generations")).arg("1").arg("1")).await;
        }
        let tasks = HashMap::new();
        Self { tasks, busy: busy.id, idle: idle.id, held: Vec::new() }
    }

    pub(crate) async fn roster_in(
        &self,
        bench: &Bench,
        script: &str,
        situation: &str,
    ) -> Result<(), BrokerError> {
        let (broker, roster) = (bench.at(NOW), bench.roster());
        let seen = broker.roster(&roster).await?;
        let of_busy = seen.holders.iter().filter(|(_, (worker, ..))| *worker == self.busy);
        let mine: Vec<Granted> = of_busy.map(|(post, (_, fence, _))| (*post, *fence)).collect();
        let generation = seen.generation;
        let first = mine.first().copied().unwrap_or((Post { generation, index: 0 }, 1));
        let holder = holder(bench, &self.busy, first);
        match (script, situation) {
            ("hold", _) => self.hold_in(bench, situation, &mine).await,
            ("yield", "roster, one") => {
                broker.yield_posts(&roster, &self.busy, &[first]).await.map(drop)
            }
            ("yield", _) => broker.leave_roster(&roster, &self.busy, &mine).await.map(drop),
            ("recount", "roster, wider") => broker.recount(&roster, 6).await.map(drop),
            ("recount", _) => broker.restart(&roster).await.map(drop),
            ("suspend", "roster, one") => {
                broker.suspend(&roster, Some(1), "bob", "").await.map(drop)
            }
            ("suspend", "roster, all") => broker.suspend(&roster, None, "bob", "").await.map(drop),
            ("suspend", _) => broker.resume_posts(&roster, None).await.map(drop),
            ("survey", _) => {
                let figures = BTreeMap::from([(1, "{}".to_owned())]);
                let ended = Ended { ok: 3, failed: 30, scan_at_ms: 0 };
                broker.survey(&roster, ended, Some(ms(1)), &figures).await.map(drop)
            }
            ("rescan", _) => broker.rescan(&roster).await,
            ("checkpoint", _) => broker.checkpoint(&holder, "\"here\"").await,
            (_, "roster, failed") => broker.demote(&holder, "r1", (ms(1), ms(9))).await.map(drop),
            _ => broker.forget_failures(&holder, "r1").await,
        }
    }

    async fn hold_in(
        &self,
        bench: &Bench,
        situation: &str,
        mine: &[Granted],
    ) -> Result<(), BrokerError> {
        let id = if situation.contains("new") { "newcomer" } else { self.busy.as_str() };
        let mut member = RosterMember::new(id, 4);
        *member.beats.get_mut() = CALLS.fetch_add(1, Ordering::Relaxed);
        member.is_leaving = situation.contains("leaves");
        let at = if situation.contains("outage") { NOW + 400_000 } else { NOW };
        let heard = bench.at(at).roster(&bench.roster()).await?;
        if id != "newcomer" && !situation.contains("nothing") {
            let keep = |&(post, fence): &Granted| (post, fence, optimus_core::Stay::Keep);
            let posts: Vec<_> = mine.iter().map(keep).collect();
            let heard = optimus_core::Heard {
                generation: heard.generation,
                count: heard.count,
                longest: ms(45_000),
            };
            member.held.answered((ms(at), ms(at)), member.lease, heard, &posts);
        }
        bench.ask(at, &member).await.map(drop)
    }
}

/// Returns the holder of a post, as a fenced call shows it.
pub(crate) fn holder(bench: &Bench, worker: &WorkerId, granted: Granted) -> Holder {
    Holder { roster: bench.roster(), worker: worker.clone(), granted }
}
