//! Fills a server with many tasks, and with all else that pages show.

use std::{fmt::Write as _, time::Duration};

use optimus::{
    Client, Due, Gate, Limit, OperationAct, OperationFilter, Rate, Schedule, TaskId, TaskState,
    Worker,
};
use optimus_testkit::{RedisServer, eventually};
use redis::aio::MultiplexedConnection;
use tokio::task::JoinHandle;

use crate::stage::{SOON, call};

pub(super) const QUEUES: usize = 1_000;
/// In so many queues tasks have died.
const DYING: usize = 50;
/// So many queues have schedules and limits.
const FURNISHED: usize = 100;
const A_CALL: usize = 1_000;
/// The first queue has at least so many tasks, so that a filter looks at as many as it may.
const FILTERED: usize = 1_000;
/// The finished rows of the statistics of a queue, with their numbers of minutes.
const KEPT: [(&str, u64, u64); 3] = [("minutes", 1, 120), ("hours", 60, 336), ("days", 1_440, 180)];

/// What the statistics say of a task.
const STATISTICS: &str = "120,3,1,0,0,0,724000,93000 9:80,10:44 4:120";

pub(super) fn name_of(queue: usize) -> String {
    format!("queue-{queue}")
}

/// A task in each of some states, all in the first queue.
pub(super) struct Known {
    pub(super) ready: TaskId,
    pub(super) dead: TaskId,
    /// Workers that run tasks which do not end.
    working: Vec<JoinHandle<()>>,
}

impl Drop for Known {
    fn drop(&mut self) {
        self.working.iter().for_each(JoinHandle::abort);
    }
}

/// Fills the server with `tasks` tasks in [`QUEUES`] queues. `dead` is how many of them die in the
/// queue with most dead tasks.
pub(super) async fn fill(redis: &RedisServer, client: &Client, tasks: usize, dead: usize) -> Known {
    let ended = end_some(redis, client, dead).await;
    let mut ready = None;
    for queue in 0..QUEUES {
        let mut left = (tasks / QUEUES).max(if queue == 0 { FILTERED } else { 0 });
        while left > 0 {
            let count = left.min(A_CALL);
            let calls: Vec<_> = (0..count).map(|_| call("x").queue(&*name_of(queue))).collect();
            let handles = client.submit_all(calls).await.unwrap();
            ready.get_or_insert_with(|| handles[0].id().clone());
            left -= count;
        }
    }
    furnish(client).await;
    write_statistics(&mut redis.admin().await).await;
    Known { ready: ready.unwrap(), dead: ended, working: run_some(redis, client).await }
}

/// Lets tasks succeed and die. Returns one that has died.
async fn end_some(redis: &RedisServer, client: &Client, dead: usize) -> TaskId {
    let mut one = None;
    let mut submitted = 0;
    for queue in 0..DYING {
        let name = name_of(queue);
        let count = if queue == 0 { dead } else { dead / DYING };
        for part in 0..count.div_ceil(A_CALL) {
            let numbers = part * A_CALL..((part + 1) * A_CALL).min(count);
            let cause = |n: usize| format!("fail: cause {}: timed out", ["a", "b", "c"][n % 3]);
            let calls: Vec<_> = numbers.map(|n| call(&cause(n)).queue(&*name)).collect();
            submitted += calls.len();
            let handles = client.submit_all(calls).await.unwrap();
            one.get_or_insert_with(|| handles[0].id().clone());
        }
        let calls: Vec<_> = (0..count).map(|_| call("ok").queue(&*name)).collect();
        client.submit_all(calls).await.unwrap();
    }
    let names: Vec<String> = (0..DYING).map(name_of).collect();
    let worker = Worker::builder(&redis.url()).queues(&names).concurrency(1_000).build().unwrap();
    let ended = eventually("all have ended", Duration::from_secs(300), async || {
        let (mut dead, mut left) = (0, 0);
        for name in &names {
            let counts = client.inspector().counts(name).await.unwrap();
            dead += counts.dead;
            left += counts.ready + counts.working;
        }
        left == 0 && dead == submitted as u64
    });
    worker.run_until(ended).await.unwrap();
    one.unwrap()
}

/// Sets limits and schedules, and adds groups, lanes, delayed tasks and operations.
async fn furnish(client: &Client) {
    for queue in 0..FURNISHED {
        let name = name_of(queue);
        for gate in 0..5 {
            let gate = client.gate(&*name, Gate::Named(format!("limit-{gate}")));
            gate.set(Limit::new().rate(Rate::per_second(100)).max_working(8)).await.unwrap();
        }
        for number in 0..5 {
            let schedule = Schedule::cron(format!("schedule-{number}"), "0 8 * * *");
            let schedule = schedule.call(call("x").queue(&*name));
            client.schedules().put(schedule).await.unwrap();
        }
        let in_lane = (0..20).map(|n| call("x").queue(&*name).lane(format!("user-{}", n % 10)));
        client.submit_all(in_lane.collect::<Vec<_>>()).await.unwrap();
        let later = (0..20).map(|_| call("x").queue(&*name).due(Due::In(SOON * 1_000)));
        client.submit_all(later.collect::<Vec<_>>()).await.unwrap();
        let members = (0..10).map(|_| call("x").queue(&*name));
        client.submit_flow(optimus::group(members)).await.unwrap();
    }
    for queue in 0..20 {
        let filter = OperationFilter::of(TaskState::Dead).queue(name_of(queue)).unwrap();
        client.operations().count(OperationAct::Requeue, filter, "tester").await.unwrap();
    }
}

/// Writes the statistics of half a year, which nobody can wait for, and that each queue has had a
/// worker.
async fn write_statistics(admin: &mut MultiplexedConnection) {
    let (seconds, _): (u64, u64) = redis::cmd("TIME").query_async(admin).await.unwrap();
    for queue in 0..QUEUES {
        let mut rows = redis::pipe();
        for (key, minutes, kept) in KEPT {
            let present = seconds / 60 / minutes;
            let push = rows.cmd("RPUSH").arg(format!("{{optimus:{}:0}}:{key}", name_of(queue)));
            for number in present - kept..present {
                let mut row = number.to_string();
                for task in ["send_mail", "copy_file"] {
                    let _ = write!(row, "\n{task} {STATISTICS}");
                }
                push.arg(row);
            }
            push.ignore();
        }
        let key = |name: &str| format!("{{optimus:{}:0}}:{name}", name_of(queue));
        let hour = format!("{}\nsend_mail {STATISTICS}", seconds / 3_600);
        rows.cmd("HSETNX").arg(key("tally")).arg("hour").arg(hour).ignore();
        rows.cmd("HSETNX").arg(key("meta")).arg("watched_at").arg(seconds * 1_000).ignore();
        rows.query_async::<()>(admin).await.unwrap();
    }
}

/// Runs tasks that do not end, by eight workers of the last queues.
async fn run_some(redis: &RedisServer, client: &Client) -> Vec<JoinHandle<()>> {
    let mut working = Vec::new();
    for number in 0..8 {
        let name = format!("busy-{number}");
        let calls: Vec<_> = (0..32).map(|_| call("hang").queue(&*name)).collect();
        client.submit_all(calls).await.unwrap();
        let worker =
            Worker::builder(&redis.url()).queues([&*name]).concurrency(32).build().unwrap();
        working.push(tokio::spawn(async move {
            worker.run_until(std::future::pending::<()>()).await.unwrap();
        }));
    }
    eventually("the processes say what they run", SOON, async || {
        let page = client.inspector().processes(None, 100).await.unwrap();
        page.rows.iter().filter(|process| process.doing.running.len() == 32).count() == 8
    })
    .await;
    working
}
