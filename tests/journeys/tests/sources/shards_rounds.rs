//! The rounds of a shard: rests, failures, positions, rows that fail, and how a round ends.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use crate::common::{
    Bench,
    log::Log,
    one_thread::OneThreadWorker,
    rounds::{Rounds, idle, sharded},
};
use optimus_core::{Round, Sharded, Walk, WorkerId};
use optimus_testkit::{RedisServer, Signal, eventually};
use tokio::time::Instant;

const WITHIN: Duration = Duration::from_secs(20);
const LEASE: Duration = Duration::from_secs(1);

/// Goes through the numbers from 1 to 40 of its shard, four at a time.
fn walker() -> Sharded {
    sharded("walker", 4, Walk::Once, |mut shard| {
        Ok(Box::pin(async move {
            let after = shard.position::<u32>()?.unwrap_or(0);
            let (index, count) = (u32::from(shard.index()), u32::from(shard.count()));
            let page: Vec<u32> = (after + 1..=40).filter(|n| n % count == index).take(4).collect();
            let Some(last) = page.last() else { return Ok(Round::Idle) };
            let rounds = shard.data::<Rounds>().ok_or("no rounds")?;
            for _ in &page {
                rounds.note(&shard);
            }
            shard.checkpoint(last).await?;
            Ok(Round::Again)
        }))
    })
}

/// The numbers that a slow walk has seen.
#[derive(Clone, Default)]
struct Numbers(Arc<Mutex<Vec<u32>>>);

/// Goes through the numbers from 1 to 120, one in a round.
fn slow() -> Sharded {
    sharded("slow", 4, Walk::Once, |mut shard| {
        Ok(Box::pin(async move {
            let after = shard.position::<u32>()?.unwrap_or(0);
            let (index, count) = (u32::from(shard.index()), u32::from(shard.count()));
            let next = (after + 1..=120).find(|n| n % count == index);
            let Some(next) = next else { return Ok(Round::Idle) };
            tokio::time::sleep(Duration::from_millis(10)).await;
            shard.data::<Numbers>().ok_or("no numbers")?.0.lock().unwrap().push(next);
            shard.checkpoint(&next).await?;
            Ok(Round::Again)
        }))
    })
}

/// Fails in its first round, panics in the second, and counts the failures of a row.
fn clumsy() -> Sharded {
    static ROUNDS: AtomicU32 = AtomicU32::new(0);
    sharded("clumsy", 1, Walk::Forever, |shard| {
        Ok(Box::pin(async move {
            match ROUNDS.fetch_add(1, Ordering::SeqCst) {
                0 => return Err("the database is away".into()),
                1 => panic!("asked to panic"),
                _ => {}
            }
            if !shard.set_aside::<i64>().await?.contains(&7) {
                assert_eq!(shard.failed(7).await?, 1);
            }
            shard.data::<Rounds>().ok_or("no rounds")?.note(&shard);
            Ok(Round::Idle)
        }))
    })
}

/// Signals the begin of a round, that it was asked to end, and its end.
#[derive(Clone, Default)]
struct Stages {
    began: Signal,
    asked: Signal,
    dropped: Signal,
}

struct Dropped(Signal);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.hit();
    }
}

/// Runs until it is dropped.
fn stubborn() -> Sharded {
    sharded("stubborn", 1, Walk::Forever, |shard| {
        Ok(Box::pin(async move {
            let stages = shard.data::<Stages>().ok_or("no stages")?;
            let _dropped = Dropped(stages.dropped.clone());
            stages.began.hit();
            shard.stopping().await;
            stages.asked.hit();
            std::future::pending().await
        }))
    })
}

/// Keeps its thread until it is asked to end, by the worker or by the test.
fn spinning() -> Sharded {
    sharded("spinning", 1, Walk::Forever, |shard| {
        Ok(Box::pin(async move {
            let stages = shard.data::<Stages>().ok_or("no stages")?;
            stages.began.hit();
            while !shard.is_stopping() && stages.asked.hits() == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(Round::Again)
        }))
    })
}

/// Fails until the test asks for the next stage. Then it finds no work, and yet asks for the next
/// round at once.
fn eager() -> Sharded {
    sharded("eager", 1, Walk::Forever, |shard| {
        Ok(Box::pin(async move {
            let stages = shard.data::<Stages>().ok_or("no stages")?;
            if stages.asked.hits() == 0 {
                return Err("the database is away".into());
            }
            Ok(Round::Again)
        }))
    })
}

/// Waits until the member that is not this one has asked for posts, and has asked twice more after
/// a whole lease. If the other lease was not renewed, the post is that member's then.
async fn asks_twice_after_a_lease(bench: &Bench, name: &str, holder: &WorkerId) {
    let (mut raw, mut ends) = (bench.raw().await, BTreeSet::<u64>::new());
    let key = bench.key(&format!("@shards.{name}"), "workers");
    let lease_ms = u64::try_from(LEASE.as_millis()).unwrap();
    eventually("the other member asks twice after a lease", WITHIN, async || {
        let members = raw.run(&format!("ZRANGE {key} 0 -1 WITHSCORES")).await;
        let other = members.chunks_exact(2).find(|row| row[0] != holder.as_str().as_bytes());
        // Each time that a member asks, its lease has another end.
        ends.extend(other.and_then(|row| String::from_utf8_lossy(&row[1]).parse::<u64>().ok()));
        let first = ends.first().copied().unwrap_or(u64::MAX);
        ends.iter().filter(|end| **end >= first.saturating_add(lease_ms)).count() >= 2
    })
    .await;
}

on_both! {
    async fn a_pass_ends_and_an_operator_begins_the_next(bench: Bench) {
        let rounds = Rounds::default().of("one");
        let serving = || bench.worker().lease(LEASE).sharded(walker).data(rounds.clone());
        let worker = bench.start(serving());
        let has_ended = async || {
            let seen = bench.client.shards("walker").look().await.unwrap();
            !seen.shards.is_empty() && seen.shards.iter().all(|shard| shard.has_ended)
        };
        eventually("the pass ends", WITHIN, has_ended).await;
        assert_eq!(rounds.all().len(), 40, "each number once");
        worker.stop().await;
        let worker = bench.start(serving());
        let shards = bench.client.shards("walker");
        shards.set_count(3).await.unwrap();
        eventually("the new shards are held", WITHIN, async || {
            let seen = shards.look().await.unwrap();
            seen.count == 3 && seen.shards.iter().all(|shard| shard.holder.is_some())
        })
        .await;
        assert!(has_ended().await, "what had ended stays so with another count");
        assert_eq!(rounds.all().len(), 40);
        shards.restart().await.unwrap();
        eventually("the next pass ends", WITHIN, async || {
            rounds.all().len() >= 80 && has_ended().await
        })
        .await;
        // The first page of a shard comes twice if its holder has read the position before it hears
        // of the new pass: the checkpoint of the first time is refused.
        assert!(rounds.all().len() <= 80 + 3 * 4, "each number once more: {}", rounds.all().len());
        worker.stop().await;
    }

    async fn a_new_count_in_the_middle_of_a_pass_misses_no_row(bench: Bench) {
        let numbers = Numbers::default();
        let worker = bench.worker().lease(LEASE).sharded(slow).data(numbers.clone());
        let worker = bench.start(worker.data(Rounds::default()));
        let seen = || numbers.0.lock().unwrap().clone();
        eventually("the pass has begun", WITHIN, async || seen().len() >= 30).await;
        let shards = bench.client.shards("slow");
        shards.set_count(3).await.unwrap();
        eventually("the pass ends", WITHIN, async || {
            let look = shards.look().await.unwrap();
            look.count == 3 && look.shards.iter().all(|shard| shard.has_ended)
        })
        .await;
        let all = seen();
        let different: BTreeSet<u32> = all.iter().copied().collect();
        assert_eq!(different, (1..=120).collect());
        assert!(all.len() < 200, "the new shards begin where all old ones were: {}", all.len());
        worker.stop().await;
    }

    async fn a_round_that_fails_or_panics_is_repeated_and_rows_are_set_aside(bench: Bench) {
        // Both kinds of store count the rounds of one process.
        let rounds = Rounds::default().of("one");
        let worker = bench.worker().lease(LEASE).sharded(clumsy).data(rounds.clone());
        let worker = bench.start(worker);
        eventually("rounds go on", WITHIN, async || rounds.all().len() >= 2).await;
        worker.stop().await;
    }

    async fn a_round_that_does_not_end_is_dropped_after_the_grace(bench: Bench) {
        let stages = Stages::default();
        let worker = bench.worker().lease(LEASE).shutdown_grace(Duration::from_millis(300));
        let worker = worker.sharded(stubborn).data(stages.clone()).data(Rounds::default());
        let worker = bench.start(worker);
        stages.began.wait_for(1).await;
        let asked_at = Instant::now();
        worker.stop().await;
        assert_eq!((stages.asked.hits(), stages.dropped.hits()), (1, 1));
        assert!(asked_at.elapsed() >= Duration::from_millis(300));
        let seen = bench.client.shards("stubborn").look().await.unwrap();
        assert!(seen.shards[0].holder.is_none() && seen.workers.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_round_is_dropped_before_the_lease_ends_if_redis_does_not_answer() {
    let redis = RedisServer::start();
    let bench = Bench::at(&redis.url()).await;
    let stages = Stages::default();
    let lease = Duration::from_secs(2);
    let worker = bench.worker().lease(lease).shutdown_grace(Duration::from_millis(100));
    let worker = worker.sharded(stubborn).data(stages.clone()).data(Rounds::default());
    let worker = bench.start(worker);
    stages.began.wait_for(1).await;
    redis.pause();
    let paused_at = Instant::now();
    stages.asked.wait_for(1).await;
    stages.dropped.wait_for(1).await;
    assert!(paused_at.elapsed() < lease, "{:?}", paused_at.elapsed());
    redis.resume();
    stages.began.wait_for(2).await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_round_that_keeps_its_thread_does_not_cost_the_shard() {
    let bench = Bench::on_redis().await;
    let stages = Stages::default();
    let serving = || bench.worker().lease(LEASE).sharded(spinning).data(Rounds::default());
    let worker = OneThreadWorker::start(serving().data(stages.clone()));
    stages.began.wait_for(1).await;
    let before = bench.client.shards("spinning").look().await.unwrap();
    let other = Stages::default();
    let second = bench.start(serving().data(other.clone()));
    let holder = before.shards[0].holder.as_ref().unwrap().worker.clone();
    asks_twice_after_a_lease(&bench, "spinning", &holder).await;
    let after = bench.client.shards("spinning").look().await.unwrap();
    let fence = |seen: &optimus_core::ShardsDetails| seen.shards[0].holder.as_ref().unwrap().fence;
    assert_eq!((fence(&before), other.began.hits()), (fence(&after), 0));
    stages.asked.hit();
    drop(worker);
    other.began.wait_for(1).await;
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_sees_that_a_round_blocks_all_threads_of_a_worker() {
    let (bench, stages) = (Bench::on_redis().await, Stages::default());
    let builder = bench.worker().sharded(spinning).data(Rounds::default()).data(stages.clone());
    let worker = OneThreadWorker::start(builder);
    stages.began.wait_for(1).await;
    eventually("the process says that it is blocked", WITHIN, async || {
        let page = bench.client.inspector().processes(None, 10).await.unwrap();
        page.rows.iter().any(|process| process.doing.blocked_ms.is_some())
    })
    .await;
    stages.asked.hit();
    drop(worker);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_shard_rests_longer_and_longer() {
    let bench = Bench::on_memory().await;
    let rounds = Rounds::default().of("one");
    let worker = bench.start(bench.worker().sharded(idle).data(rounds.clone()));
    rounds.cover(6).await;
    rounds.clear();
    let began = Instant::now();
    eventually("72 rounds", WITHIN, async || rounds.all().len() >= 72).await;
    // Six shards, each of which rests 10, 20 and 40 ms at first, and then 80 ms.
    assert!(began.elapsed() > Duration::from_millis(500), "{:?}", began.elapsed());
    worker.stop().await;
}

#[tokio::test]
async fn operators_see_that_a_shard_fails_works_again_and_spins() {
    let log = Log::at(tracing::Level::INFO);
    let _default = tracing::subscriber::set_default(log.subscriber());
    let bench = Bench::on_memory().await;
    let stages = Stages::default();
    let worker = bench.worker().lease(LEASE).sharded(eager).data(Rounds::default());
    let worker = bench.start(worker.data(stages.clone()));
    let failing = async || {
        let seen = bench.client.shards("eager").look().await.unwrap();
        let holder = seen.shards.into_iter().next().and_then(|shard| shard.holder);
        holder.and_then(|holder| holder.failing)
    };
    eventually("it is seen that it fails", WITHIN, async || {
        failing().await.is_some_and(|failing| failing.error == "the database is away")
    })
    .await;
    stages.asked.hit();
    eventually("it fails no more", WITHIN, async || failing().await.is_none()).await;
    let lines = |part: &str| {
        let all = log.lines.lock().unwrap().clone();
        all.into_iter().filter(|line| line.get("message").contains(part)).collect::<Vec<_>>()
    };
    eventually("it is warned of", WITHIN, async || !lines("`Round::Idle`").is_empty()).await;
    let warning = lines("`Round::Idle`").remove(0);
    assert_eq!((warning.get("name"), warning.get("shard")), ("eager", "0"));
    assert_eq!(lines("has succeeded after failures").len(), 1);
    worker.stop().await;
}
