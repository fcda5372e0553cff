//! The part of the world in which tasks run together, and the calls that collect them.

use optimus_core::{
    TaskId,
    broker::{BrokerError, Give},
};

use crate::{
    acts::{Grants, given, ms},
    bench::Bench,
    gathers::{Gather, many_of, three_of},
    jobs::{job, ready},
    world::{NOW, World},
};

/// The tasks of the key whose leader is ready.
const OFFERED: [&str; 3] = ["offered 1", "offered 2", "offered 3"];

impl World {
    /// Adds a key whose leader is held, one whose leader is ready, one that is due, and one that
    /// waits, and a task that was cancelled.
    pub(crate) async fn gather_some(&mut self, bench: &Bench) {
        let later = Gather { wait: ms(400_000), ..many_of("later") };
        let of = |gather: &Gather| ready(job()).gathered(gather.clone());
        let led = |name| (name, ready(job().priority(100)).gathered(three_of("led")));
        self.submit(bench, 6_000, ["led 1", "led 2", "led 3", "led 4"].map(led).into()).await;
        // The first claim makes the leader ready by its priority, the next one grants it.
        self.claim_of(bench, 4).await;
        self.claim_of(bench, 5).await;
        let offered = OFFERED.map(|name| (name, of(&three_of("offered"))));
        self.submit(bench, 6_000, offered.into()).await;
        self.claim_of(bench, 6).await;
        let tasks = vec![
            ("gathers", of(&later)),
            ("gathers biz", ready(job().biz_id("gathers biz")).gathered(later.clone())),
            ("gathers due", of(&many_of("due"))),
            ("gathers due too", of(&many_of("due"))),
            ("gathers no more", of(&later)),
            ("gathers alone", of(&many_of("alone"))),
        ];
        self.submit(bench, 7_000, tasks).await;
        bench.at(7_000).cancel(self.id("gathers no more")).await.expect("the task is blocked");
    }

    /// Claims a task, and gives it back unless it leads a run.
    async fn claim_of(&mut self, bench: &Bench, seq: u64) {
        let lease = bench.claim(6_000, &self.busy, seq, 1).await.leases(&self.busy).remove(0);
        if self.names().any(|name| name.starts_with("led") && *self.id(name) == lease.id) {
            self.held.push(lease);
        } else {
            bench.release(6_000, &[given(&lease, Give::Head)]).await;
        }
    }

    /// Returns the ready task that leads a run.
    pub(crate) fn offered(&self) -> &TaskId {
        let ids = OFFERED.map(|name| self.id(name));
        ids.into_iter().min_by_key(|id| id.stored()).expect("there are three")
    }

    pub(crate) async fn collect_in(
        &self,
        bench: &Bench,
        situation: &str,
    ) -> Result<(), BrokerError> {
        let leader = self.held.last().expect("the worker holds it");
        let want = match situation {
            "gathered, none" => 0,
            "gathered, one" => 1,
            _ => 100,
        };
        bench.at(NOW).collect(leader, want).await.map(drop)
    }
}
