//! The agent that submits. It is a client as in any program.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use optimus::{Call, Client, Due, Schedule, Submit, Task, TaskHandle};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::protocol::{Kind, Load, PAYLOAD_BYTES, QUEUE, Reply, SubmitOrder, Way, queue_names};
use super::{obey_each, return_one, runtime, tally, tasks};

/// The interval in which a load with a rate is continued.
const TICK: Duration = Duration::from_millis(1);

pub(super) fn serve(url: &str) -> anyhow::Result<()> {
    let runtime = runtime()?;
    let client = runtime.block_on(Client::connect(url))?.install();
    let mut held = Vec::new();
    obey_each(|order| match order {
        SubmitOrder::Hold { count } => {
            let begun = Instant::now();
            held = runtime.block_on(hold(client.clone(), count))?;
            Ok(Reply::Submitted { seconds: begun.elapsed().as_secs_f64(), count })
        }
        SubmitOrder::Hear => {
            let (begun, count) = (Instant::now(), held.len() as u64);
            runtime.block_on(hear(std::mem::take(&mut held)))?;
            Ok(Reply::Submitted { seconds: begun.elapsed().as_secs_f64(), count })
        }
        SubmitOrder::Schedule { count, lead_s, within_s } => {
            let begun = Instant::now();
            runtime.block_on(schedule(client.clone(), count, (lead_s, within_s)))?;
            Ok(Reply::Submitted { seconds: begun.elapsed().as_secs_f64(), count })
        }
        SubmitOrder::Load(load) => {
            let begun = Instant::now();
            let count = runtime.block_on(carry(client.clone(), load))?;
            Ok(Reply::Submitted { seconds: begun.elapsed().as_secs_f64(), count })
        }
        SubmitOrder::ReturnOne { words, count } => {
            let seconds = runtime.block_on(return_one::call(url, &words, count))?;
            Ok(Reply::Submitted { seconds, count })
        }
        SubmitOrder::ReturnOneEvery { us, count } => {
            let (url, interval) = (url.to_owned(), Duration::from_micros(us));
            // The calls run in a task of the runtime, as a load does.
            let calling = async move { return_one::call_every(&url, interval, count).await };
            let latencies_us = runtime.block_on(runtime.spawn(calling))??;
            Ok(Reply::Called { latencies_us })
        }
    })
}

/// Submits tasks that return something.
async fn hold(client: Client, count: u64) -> anyhow::Result<Vec<TaskHandle<String>>> {
    let calls = (0..count).map(|number| tasks::answer(number, tasks::text(number, PAYLOAD_BYTES)));
    client.submit_all(calls).await.map_err(|error| error.first.into())
}

/// Waits for their results in turn, in a task of the runtime, as an application does.
async fn hear(held: Vec<TaskHandle<String>>) -> anyhow::Result<()> {
    let hearing = tokio::spawn(async move {
        for handle in held {
            handle.result().await?;
        }
        anyhow::Ok(())
    });
    hearing.await?
}

/// Stores schedules, each with one instant in a year.
async fn schedule(
    client: Client,
    count: u64,
    (lead_s, within_s): (u64, u64),
) -> anyhow::Result<()> {
    let first = Utc::now() + Duration::from_secs(lead_s + 1);
    for number in 0..count {
        let at = first + Duration::from_secs(number % within_s);
        let expression = at.format("%-S %-M %-H %-d %-m *").to_string();
        let schedule = Schedule::cron(format!("bench-{number}"), expression);
        client.schedules().put(schedule.call(tasks::ticked(number))).await?;
    }
    Ok(())
}

/// Submits a load. Returns the number of its tasks.
async fn carry(client: Client, load: Load) -> anyhow::Result<u64> {
    let end = load.first + load.count;
    match load.way {
        Way::Sequential => {
            // The load runs in a task of the runtime, as in an application, and not on the blocked
            // thread.
            tokio::spawn(async move {
                for number in load.first..end {
                    one(&client, number, &load).await?;
                }
                anyhow::Ok(load.count)
            })
            .await?
        }
        Way::Concurrent { in_flight } => together(load, in_flight, None).await,
        Way::For { in_flight, ms } => {
            let until = Instant::now() + Duration::from_millis(ms);
            together(load, in_flight, Some(until)).await
        }
        Way::Batches { batch } => {
            tokio::spawn(async move {
                for first in (load.first..end).step_by(batch) {
                    many(&client, first..end.min(first + batch as u64), &load).await?;
                }
                anyhow::Ok(load.count)
            })
            .await?
        }
        Way::AtRate { per_s } => tokio::spawn(at_rate(client, load, per_s)).await?,
        Way::Every { us } => tokio::spawn(every(client, load, Duration::from_micros(us))).await?,
    }
}

/// Submits from this many tasks at once, up to a count or until a time.
async fn together(load: Load, in_flight: usize, until: Option<Instant>) -> anyhow::Result<u64> {
    let client = Client::installed()?;
    let next = Arc::new(AtomicU64::new(load.first));
    let end = if until.is_some() { u64::MAX } else { load.first + load.count };
    let load = Arc::new(load);
    let mut submitters = JoinSet::new();
    for _ in 0..in_flight {
        let (client, next, load) = (client.clone(), next.clone(), load.clone());
        submitters.spawn(async move {
            let mut submitted = 0;
            while until.is_none_or(|until| Instant::now() < until) {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= end {
                    break;
                }
                one(&client, number, &load).await?;
                submitted += 1;
            }
            anyhow::Ok(submitted)
        });
    }
    let mut submitted = 0;
    while let Some(ended) = submitters.join_next().await {
        submitted += ended??;
    }
    Ok(submitted)
}

async fn at_rate(client: Client, load: Load, per_s: f64) -> anyhow::Result<u64> {
    let begun = Instant::now();
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut submitted = 0;
    while submitted < load.count {
        tick.tick().await;
        let target = Duration::from_secs_f64(begun.elapsed().as_secs_f64() * per_s).as_secs();
        let next = target.min(load.count);
        if next > submitted {
            many(&client, load.first + submitted..load.first + next, &load).await?;
            submitted = next;
        }
    }
    Ok(submitted)
}

async fn every(client: Client, load: Load, interval: Duration) -> anyhow::Result<u64> {
    let mut tick = tokio::time::interval(interval);
    for number in load.first..load.first + load.count {
        tick.tick().await;
        one(&client, number, &load).await?;
    }
    Ok(load.count)
}

/// Submits one task. Only plain and stamped tasks are submitted one by one.
async fn one(client: &Client, number: u64, load: &Load) -> anyhow::Result<()> {
    let text = tasks::text(number, load.payload);
    if load.kind == Kind::Stamped {
        let now_us = u64::try_from(tally::now().as_micros())?;
        client.submit(tasks::stamped(number, text, now_us)).await?;
    } else {
        client.submit(tasks::work(number, text)).await?;
    }
    Ok(())
}

/// Submits these tasks in one call of the library.
async fn many(client: &Client, numbers: std::ops::Range<u64>, load: &Load) -> anyhow::Result<()> {
    let text = |number| tasks::text(number, load.payload);
    let spread = Spread::over(load.queues);
    match load.kind {
        Kind::Plain => all(client, numbers.map(|n| spread.send(n, tasks::work(n, text(n))))).await,
        Kind::BizId => {
            all(client, numbers.map(|n| tasks::work(n, text(n)).biz_id(format!("order-{n}")))).await
        }
        Kind::Result => all(client, numbers.map(|n| tasks::answer(n, text(n)))).await,
        Kind::Delayed { ms } => {
            let due = Due::In(Duration::from_millis(ms));
            all(client, numbers.map(|n| tasks::work(n, text(n)).due(due))).await
        }
        Kind::DueAt { ms } => {
            let due = Due::At(instant(ms));
            all(client, numbers.map(|n| tasks::work(n, text(n)).due(due))).await
        }
        Kind::FailsOnce => all(client, numbers.map(|n| tasks::fail_once(n, text(n)))).await,
        Kind::Stamped => {
            let now_us = u64::try_from(tally::now().as_micros())?;
            all(client, numbers.map(|n| tasks::stamped(n, text(n), now_us))).await
        }
        Kind::StampedWithin { ms } => {
            let now_ms = u64::try_from(tally::now().as_millis())?;
            let calls = numbers.map(|n| {
                let due_ms = now_ms + fastrand::u64(..ms);
                tasks::stamped(n, text(n), due_ms * 1_000).due(Due::At(instant(due_ms)))
            });
            all(client, calls).await
        }
    }
}

async fn all<C: Submit>(client: &Client, calls: impl Iterator<Item = C>) -> anyhow::Result<()> {
    client.submit_all(calls).await.map(drop).map_err(|error| error.first.into())
}

fn instant(ms: u64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(ms.cast_signed())
        .expect("the time is within some thousand years of today")
}

/// Sends tasks to several queues in turn. The queue of the task definition needs no option.
struct Spread(Vec<String>);

impl Spread {
    fn over(queues: usize) -> Self {
        let names = queue_names(queues);
        Self(if names == [QUEUE] { Vec::new() } else { names })
    }

    fn send<T: Task>(&self, number: u64, call: Call<T>) -> Call<T> {
        let turn = number.checked_rem(self.0.len() as u64);
        match turn.and_then(|turn| self.0.get(usize::try_from(turn).ok()?)) {
            Some(queue) => call.queue(queue),
            None => call,
        }
    }
}
