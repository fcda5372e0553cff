//! Each user gets a digest at 8:00 in the morning, in one of five time zones, by a schedule that is
//! made at run time. A schedule of code counts what was sent.
//!
//! `cargo run --example digests` needs no server. It does not wait for the morning: it runs each
//! digest once at once.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use anyhow::Context as _;
use optimus::{Client, Context, Missed, Schedule, Tick, Worker};
use tokio::sync::Notify;

const URL: &str = "memory://digests";

const USERS: [(&str, &str); 5] = [
    ("ann", "Asia/Shanghai"),
    ("ben", "Asia/Kolkata"),
    ("eva", "Europe/Berlin"),
    ("joe", "America/New_York"),
    ("mia", "Pacific/Auckland"),
];

/// What was sent so far.
#[derive(Clone, Default)]
struct Sent {
    digests: Arc<AtomicU32>,
    is_counted: Arc<Notify>,
}

#[optimus::task(queue = "mail")]
async fn digest(user: String, #[data] sent: Sent, ctx: Context) -> Result<(), String> {
    let tick = ctx.tick().ok_or("only a schedule submits digests")?;
    println!("{user}: the digest of {}", tick.local().date_naive());
    sent.digests.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Every second, and once after an absence.
#[optimus::cron("* * * * * *", queue = "mail")]
async fn count(tick: Tick, #[data] sent: Sent) {
    let digests = sent.digests.load(Ordering::Relaxed);
    println!("{}: {digests} digests were sent", tick.nominal().time());
    if digests == 5 {
        sent.is_counted.notify_one();
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let client = Client::connect(URL).await?;
    let schedules = client.schedules();
    for (user, zone) in USERS {
        let morning = Schedule::cron(format!("digest-{user}"), "0 8 * * *").tz(zone);
        let call = digest(user.to_owned());
        schedules.put(morning.missed(Missed::Skip).call(call)).await?;
    }
    // The next morning comes first to those who live in the east.
    for row in schedules.list("mail", None, 100).await?.rows {
        let next = row.next_instants(1);
        println!("{}: next at {}", row.name, next.first().context("it has instants")?);
    }
    let sent = Sent::default();
    let worker = Worker::builder(URL).queues(["mail"]).data(sent.clone()).build()?;
    let running = async {
        for (user, _) in USERS {
            let task = schedules.run_now(&format!("digest-{user}")).await?;
            let task = task.context("the schedule is stored")?;
            client.handle::<()>(task).result().await?;
        }
        sent.is_counted.notified().await;
        let ticks = schedules.history("digest-ann").await?;
        anyhow::ensure!(ticks.len() == 1 && ticks[0].by_hand);
        anyhow::Ok(())
    };
    worker.run_until(running).await?
}
