//! A schedule has all options of a task, and its function takes what an attempt has.

use std::time::Duration;

use optimus::{Context, Data, Missed, Overlap, SchedulePace, Task, Tick};

mod reports {
    use super::{Context, Tick};

    /// Reports the last day.
    #[optimus::cron(
        "0 9 * * 1-5",
        tz = "Asia/Shanghai",
        missed = "skip",
        overlap = "queue",
        jitter = "30s",
        queue = "reports",
        name = "report.daily",
        timeout = "10m",
        max_retry = 7,
        max_working = 2
    )]
    pub async fn report(tick: Tick, #[data] team: String, ctx: Context) -> Result<String, String> {
        assert_eq!(ctx.tick(), None);
        Ok(format!("{team} {:?} {}", tick.schedule(), ctx.task()))
    }
}

#[optimus::cron("@hourly")]
async fn plain() {}

#[optimus::cron("*/5 * * * * *", biz_id = "sync")]
fn blocking(instant: optimus::Tick) -> Result<(), std::io::Error> {
    assert_eq!(instant.missed(), 0);
    Ok(())
}

#[optimus::task]
async fn takes_a_market_tick(tick: market::Tick) -> Result<u64, std::io::Error> {
    Ok(tick.cents)
}

mod market {
    #[derive(serde::Serialize, serde::Deserialize)]
    pub struct Tick {
        pub cents: u64,
    }
}

fn schedule_of<T: Task>(_: &optimus::Call<T>) -> Option<optimus::Schedule> {
    T::schedule()
}

#[tokio::main(flavor = "current_thread")]
pub(super) async fn main() {
    let data = Data::new().with("ops".to_owned());
    let text = reports::report().perform_inline_with(data).await.unwrap();
    assert_eq!(text, "ops None report.daily");
    plain().perform_inline().await.unwrap();
    blocking().perform_inline().await.unwrap();
    let tick = market::Tick { cents: 5 };
    assert_eq!(takes_a_market_tick(tick).perform_inline().await.unwrap(), 5);
    assert_eq!(schedule_of(&plain()).unwrap().name(), "plain");
    assert!(schedule_of(&takes_a_market_tick(market::Tick { cents: 5 })).is_none());
    let url = "memory://ui-cron";
    let client = optimus::Client::connect(url).await.unwrap();
    let schedule = optimus::Schedule::every("poll", Duration::from_secs(60)).call(plain());
    client.schedules().put(schedule).await.unwrap();
    let poll = client.schedules().get("poll").await.unwrap().unwrap();
    assert_eq!(poll.pace, SchedulePace::Every(Duration::from_secs(60)));
    assert_eq!((poll.missed, poll.overlap), (Missed::RunOnce, Overlap::Skip));
}
