//! A worker of an older version and one of this version on the same queues. Together they keep the
//! order in queues that the older one knows. The older one claims nothing from the other queues.
//! `cargo xtask older` builds the older worker from an earlier commit, and names its program in the
//! environment.

use std::{
    collections::BTreeMap,
    env,
    time::{Duration, Instant},
};

use optimus_core::{Call, Limit, Task, TaskId, TaskState, WorkerId, group};
use optimus_testkit::{Proc, RedisServer, eventually};

use crate::common::{
    Bench,
    steps::{Journal, Step, Verdict},
};

/// The test program of the older version.
const OLDER: &str = "OPTIMUS_OLDER_WORKER";
/// The test that is a worker, in both versions.
const WORKER: &str = "lanes::a_worker_process_for_the_other_tests";
const SOON: Duration = Duration::from_secs(120);
/// How many tasks a worker process runs at once.
const SLOTS: usize = 64;

/// A server with a worker of each version.
struct Both {
    bench: Bench,
    journal: Journal,
    older: Proc,
    older_ids: Vec<WorkerId>,
    _present: Proc,
    _redis: RedisServer,
}

impl Both {
    async fn start() -> Self {
        let redis = RedisServer::start();
        let bench = Bench::at(&redis.url()).await;
        let journal = Journal::in_redis(&redis.url()).await;
        let older = older_worker(&bench).await;
        let older_ids = ids(&bench).await;
        let present = bench.child(WORKER).start();
        present.wait_for_line("works", SOON).await;
        Self { bench, journal, older, older_ids, _present: present, _redis: redis }
    }

    /// Kills the older worker, and starts another one.
    async fn replace_older(&mut self) {
        let before = ids(&self.bench).await;
        self.older.kill9();
        self.older = older_worker(&self.bench).await;
        let new = ids(&self.bench).await.into_iter().filter(|id| !before.contains(id));
        self.older_ids.extend(new);
    }

    async fn submit(&self, calls: Vec<Call<Step>>) -> Vec<TaskId> {
        let handles = self.bench.client.submit_all(calls).await.unwrap();
        handles.into_iter().map(|handle| handle.id().clone()).collect()
    }

    /// Waits until all tasks have ended, and returns how many succeeded in each version: in the
    /// older one, and in this one.
    async fn all_end(&self, ids: &[TaskId]) -> [usize; 2] {
        let (inspector, mut ended) = (self.bench.client.inspector(), [0, 0]);
        for id in ids {
            let has_ended = async || {
                let state = inspector.get(id).await.unwrap().map(|task| task.state);
                matches!(state, Some(TaskState::Success | TaskState::Dead))
            };
            eventually("a task has ended", SOON, has_ended).await;
            let task = inspector.get(id).await.unwrap().expect("it is known");
            let Some(summary) = task.summary else { continue };
            let worker = summary.rsplit(' ').next().unwrap_or_default();
            let is_older = self.older_ids.iter().any(|older| older.as_str() == worker);
            ended[usize::from(!is_older)] += 1;
        }
        ended
    }

    async fn verdict(&self) -> Verdict {
        let verdict = Verdict::of(&self.journal.lines().await);
        assert_eq!(verdict.problems, [""; 0]);
        assert!(verdict.reruns <= SLOTS, "{} attempts were repeated", verdict.reruns);
        verdict
    }
}

async fn older_worker(bench: &Bench) -> Proc {
    let program = env::var_os(OLDER).expect("cargo xtask older names the program");
    let worker = bench.child_of(program, WORKER).start();
    worker.wait_for_line("works", SOON).await;
    let is_there = async || !ids(bench).await.is_empty();
    eventually("the older worker serves the queue", SOON, is_there).await;
    worker
}

async fn ids(bench: &Bench) -> Vec<WorkerId> {
    let workers = bench.client.inspector().workers("default").await.unwrap();
    workers.into_iter().map(|worker| worker.id).collect()
}

fn step(lane: u32, number: u32) -> Call<Step> {
    let chance = (lane * 31 + number) % 20;
    Step { lane, number, fails: u32::from(chance == 7), dies: chance == 13 }.call()
}

fn say(what: &str, [older, present]: [usize; 2], begun: Instant) {
    println!(
        "{what}: {older} by the older worker, {present} by the present one, {:.1?}",
        begun.elapsed()
    );
}

mod beside {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "cargo xtask older builds the older worker"]
    async fn lanes_with_limits_are_in_order_while_older_workers_are_killed() {
        let (mut both, begun) = (Both::start().await, Instant::now());
        let mut ids = Vec::new();
        for round in 0..4 {
            let numbers = round * 5..(round + 1) * 5;
            let limited =
                |call: Call<Step>, lane| if lane % 2 == 0 { call.limit("m") } else { call };
            let calls = numbers.flat_map(|number| (0..40).map(move |lane| (lane, number)));
            let calls = calls.map(|(lane, number)| limited(step(lane, number), lane)).collect();
            if round == 0 {
                let limit = Limit::new().max_working(8);
                both.bench.client.limit("m").set(limit).await.unwrap();
            }
            ids.extend(both.submit(calls).await);
            both.replace_older().await;
        }
        let ended = both.all_end(&ids).await;
        assert_eq!(both.verdict().await.ended, ids.len(), "none is lost");
        let busy = both.bench.client.limit("m").get().await.unwrap().expect("it is set").working;
        assert_eq!(busy, 0, "no permit is left");
        say("lanes and limits", ended, begun);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "cargo xtask older builds the older worker"]
    async fn a_task_starts_after_its_prerequisite_in_either_version() {
        let (mut both, begun) = (Both::start().await, Instant::now());
        let plain = |lane| Step { lane, number: 0, fails: u32::from(lane % 7 == 0), dies: false };
        let mut ids = both.submit((0..150).map(|lane| plain(lane).call()).collect()).await;
        let later = (0..150).map(|lane| plain(1_000 + lane).call().after(&ids[lane as usize]));
        let later = both.submit(later.collect()).await;
        both.replace_older().await;
        ids.extend(later);
        let ended = both.all_end(&ids).await;
        both.verdict().await;
        let lines = both.journal.lines().await;
        let at: BTreeMap<&str, usize> = lines.iter().map(String::as_str).zip(0..).collect();
        for lane in 0..150 {
            let (ends, begins) = (format!("ends {lane} 0"), format!("begins {} 0", 1_000 + lane));
            let first = lines.iter().position(|line| *line == begins);
            assert!(at[&*ends] < first.expect("it began"), "{begins} is before {ends}");
        }
        say("prerequisites", ended, begun);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "cargo xtask older builds the older worker"]
    async fn a_group_and_a_lane_with_a_set_width_lose_nothing() {
        let (both, begun) = (Both::start().await, Instant::now());
        let mut ids = both.submit((0..50).map(|lane| step(lane, 0)).collect()).await;
        let members = (100..150).map(|lane| Step { lane, number: 0, fails: 0, dies: false }.call());
        let group = both.bench.client.submit_group(group(members)).await.unwrap();
        let is_done = async || group.progress().await.unwrap().ended.is_some();
        eventually("the group has ended", SOON, is_done).await;
        both.bench.client.lane("default", "lane-500").set_width(3).await.unwrap();
        let wide = (0..30).map(|number| Step {
            lane: 500 + number % 2,
            number: number / 2,
            fails: 0,
            dies: false,
        });
        ids.extend(both.submit(wide.map(Task::call).collect()).await);
        let ended = both.all_end(&ids).await;
        assert_eq!(ended.iter().sum::<usize>() + dead(&both, &ids).await, ids.len());
        say("a group and a set width", ended, begun);
    }

    async fn dead(both: &Both, ids: &[TaskId]) -> usize {
        let mut count = 0;
        for id in ids {
            let task = both.bench.client.inspector().get(id).await.unwrap().expect("it is known");
            count += usize::from(task.state == TaskState::Dead);
        }
        count
    }
}
