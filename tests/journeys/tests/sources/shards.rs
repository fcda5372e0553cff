//! Sharded functions: who holds which shard, for how long, and what operators see and do.

use std::{collections::BTreeMap, time::Duration};

use crate::common::{
    Bench,
    rounds::{Rounds, idle},
};
use optimus_core::{RosterName, ShardsDetails};
use optimus_testkit::eventually;
use optimus_worker::WorkerBuilder;

const WITHIN: Duration = Duration::from_secs(20);

fn serving(bench: &Bench, rounds: &Rounds) -> WorkerBuilder {
    bench.worker().lease(Duration::from_secs(1)).sharded(idle).data(rounds.clone())
}

async fn look(bench: &Bench) -> ShardsDetails {
    bench.client.shards("idle").look().await.unwrap()
}

/// Returns how many shards each member holds, without those that drain.
async fn loads(bench: &Bench) -> Vec<usize> {
    let seen = look(bench).await;
    let mut loads: BTreeMap<_, usize> =
        seen.workers.iter().map(|worker| (worker.worker.clone(), 0)).collect();
    for holder in seen.shards.iter().filter_map(|shard| shard.holder.as_ref()) {
        *loads.entry(holder.worker.clone()).or_default() += 1;
    }
    loads.into_values().collect()
}

async fn are_shared(bench: &Bench, expected: &[usize]) {
    eventually("the shards are shared", WITHIN, async || {
        let mut found = loads(bench).await;
        found.sort_unstable();
        found == expected
    })
    .await;
}

on_both! {
    async fn a_worker_without_tasks_works_on_all_shards(bench: Bench) {
        let rounds = Rounds::default().of("one");
        let worker = bench.start(serving(&bench, &rounds));
        rounds.cover(6).await;
        let all = rounds.all();
        assert!(all.iter().all(|seen| seen.worker == "one" && seen.fence >= seen.generation));
        let seen = look(&bench).await;
        assert_eq!((seen.count, seen.shards.len(), seen.workers.len()), (6, 6, 1));
        let worker_seen = &seen.workers[0];
        assert_eq!((worker_seen.description.pid, worker_seen.holds), (std::process::id(), 6));
        assert_eq!(bench.client.shard_names().await.unwrap(), ["idle"]);
        assert!(bench.client.inspector().queues().await.unwrap().is_empty(), "it is no queue");
        worker.stop().await;
        let seen = look(&bench).await;
        assert!(seen.workers.is_empty() && seen.shards.iter().all(|shard| shard.holder.is_none()));
    }

    async fn shards_move_and_workers_end_although_their_grace_has_no_limit(bench: Bench) {
        let rounds = Rounds::default();
        let start = |name| {
            bench.start(serving(&bench, &rounds.of(name)).shutdown_grace(Duration::MAX))
        };
        let one = start("one");
        rounds.cover(6).await;
        let two = start("two");
        are_shared(&bench, &[3, 3]).await;
        rounds.cover(6).await;
        let mut who: Vec<_> = rounds.all().iter().map(|seen| (seen.index, seen.worker)).collect();
        who.sort_unstable();
        who.dedup();
        assert_eq!(who.len(), 6, "each shard has rounds of one worker: {who:?}");
        two.stop().await;
        are_shared(&bench, &[6]).await;
        one.stop().await;
    }

    async fn workers_share_the_shards_and_one_that_ends_gives_them_back_at_once(bench: Bench) {
        let rounds = Rounds::default();
        // The lease is long: only what is given back can be taken within it.
        let long = Duration::from_secs(6);
        let start = |name| bench.start(serving(&bench, &rounds.of(name)).lease(long));
        let one = start("one");
        if bench.url().starts_with("memory") {
            rounds.cover(6).await;
        }
        let two = start("two");
        are_shared(&bench, &[3, 3]).await;
        rounds.cover(6).await;
        two.stop().await;
        let gone = tokio::time::Instant::now();
        are_shared(&bench, &[6]).await;
        assert!(gone.elapsed() < long / 2, "a heartbeat of the other one takes them");
        rounds.cover(6).await;
        assert!(rounds.all().iter().all(|seen| seen.worker == "one"));
        one.stop().await;
    }

    async fn one_shard_or_all_can_be_paused(bench: Bench) {
        let rounds = Rounds::default().of("one");
        let worker = bench.start(serving(&bench, &rounds));
        rounds.cover(6).await;
        let shards = bench.client.shards("idle");
        assert!(shards.because("ann", "a repair").pause(2).await.unwrap());
        eventually("the shard is given back", WITHIN, async || {
            look(&bench).await.shards[2].holder.is_none()
        })
        .await;
        let paused = look(&bench).await.shards[2].paused.clone().unwrap();
        assert_eq!((&*paused.by, &*paused.why), ("ann", "a repair"));
        rounds.clear();
        eventually("others go on", WITHIN, async || rounds.indexes().len() == 5).await;
        assert!(!rounds.indexes().contains(&2));

        assert!(shards.pause_all().await.unwrap().is_changed);
        eventually("all are given back", WITHIN, async || {
            look(&bench).await.shards.iter().all(|shard| shard.holder.is_none())
        })
        .await;
        assert!(look(&bench).await.paused.is_some());
        assert!(shards.resume().await.unwrap().is_changed);
        assert!(!shards.resume().await.unwrap().is_changed);
        rounds.cover(6).await;
        worker.stop().await;
    }

    async fn a_pause_before_the_first_start_is_kept_and_says_that_nobody_has_the_name(
        bench: Bench
    ) {
        let shards = bench.client.shards("idle");
        let paused = shards.because("ann", "a move").pause_all().await.unwrap();
        assert_eq!((paused.is_changed, paused.is_known), (true, false));
        assert!(paused.to_string().contains("misspelt"), "{paused}");
        assert!(!bench.client.shards("other").resume().await.unwrap().is_known);
        let rounds = Rounds::default().of("one");
        let worker = bench.start(serving(&bench, &rounds));
        eventually("the worker is a member", WITHIN, async || {
            look(&bench).await.workers.len() == 1
        })
        .await;
        assert_eq!(look(&bench).await.paused.unwrap().by, "ann");
        let resumed = shards.resume().await.unwrap();
        assert_eq!((resumed.is_changed, resumed.is_known), (true, true));
        rounds.cover(6).await;
        worker.stop().await;
    }

    async fn the_count_changes_while_workers_run(bench: Bench) {
        let rounds = Rounds::default();
        let [one, two] = ["one", "two"].map(|name| bench.start(serving(&bench, &rounds.of(name))));
        are_shared(&bench, &[3, 3]).await;
        let shards = bench.client.shards("idle");
        for (before, count) in [(6, 9), (9, 2)] {
            rounds.clear();
            assert_eq!(shards.set_count(count).await.unwrap(), before);
            eventually("the new shards have rounds", WITHIN, async || {
                let new = rounds.all().into_iter().filter(|seen| seen.count == count);
                new.map(|seen| seen.index).collect::<std::collections::BTreeSet<_>>().len()
                    == usize::from(count)
            })
            .await;
            let all = rounds.all();
            let first = all.iter().position(|seen| seen.count == count).unwrap();
            let is_old = |seen: &crate::common::rounds::Seen| seen.count == before;
            assert!(all[..first].iter().all(is_old) && !all[first..].iter().any(is_old));
            assert!(all[first..].iter().all(|seen| seen.generation > all[0].generation
                || first == 0));
        }
        are_shared(&bench, &[1, 1]).await;
        one.stop().await;
        two.stop().await;
    }

    async fn what_an_operator_can_not_mean_is_refused(bench: Bench) {
        let shards = bench.client.shards("idle");
        for count in [0, 1_025] {
            assert!(shards.set_count(count).await.unwrap_err().is_invalid());
        }
        let problem = shards.set_count(5).await.unwrap_err();
        assert!(problem.is_invalid() && problem.to_string().contains("no worker"), "{problem}");
        assert!(bench.client.shards("a b").look().await.unwrap_err().is_invalid());
        let rounds = Rounds::default().of("one");
        let worker = bench.start(serving(&bench, &rounds));
        rounds.cover(6).await;
        let problem = shards.pause(6).await.unwrap_err();
        assert!(problem.to_string().contains("the last one is 5"), "{problem}");
        worker.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_with_wrong_shards_does_not_start() {
    let bench = Bench::on_memory().await;
    let problem = bench.worker().sharded(idle).build().unwrap_err();
    assert!(problem.is_invalid() && problem.to_string().contains("needs data"), "{problem}");
    assert!(RosterName::shards("").is_err());
}
