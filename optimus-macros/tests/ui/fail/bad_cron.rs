//! A schedule that makes no sense is refused, at the part that is wrong.

use optimus::Tick;

#[optimus::cron]
async fn no_expression() {}

#[optimus::cron(tz = "UTC", "0 9 * * *")]
async fn expression_not_first() {}

#[optimus::cron("0 9 * *")]
async fn four_fields() {}

#[optimus::cron("0 25 * * *")]
async fn hour_25() {}

#[optimus::cron("0 0 30 2 *")]
async fn impossible_date() {}

#[optimus::cron("@dayly")]
async fn unknown_word() {}

#[optimus::cron("@daily", tz = "Asia/Shangai")]
async fn misspelled_zone() {}

#[optimus::cron("@daily", tz = "Shanghai")]
async fn city() {}

#[optimus::cron("@daily", tz = "+08:00")]
async fn offset() {}

#[optimus::cron("@daily", timezone = "Asia/Shanghai")]
async fn synonym() {}

#[optimus::cron("@daily", missed = "once")]
async fn unknown_policy() {}

#[optimus::cron("@daily", overlap = true)]
async fn no_text() {}

#[optimus::cron("@daily", jitter = "2d")]
async fn long_jitter() {}

#[optimus::cron("@daily", tz = "UTC", tz = "UTC")]
async fn twice() {}

#[optimus::cron("@daily", retries = 3)]
async fn synonym_of_a_task() {}

#[optimus::cron("@daily")]
async fn argument(user: u64) {
    let _ = user;
}

#[optimus::cron("@daily")]
async fn two_ticks(one: Tick, other: Tick) {
    let _ = (one, other);
}

#[optimus::cron("@daily")]
async fn borrowed(tick: &Tick) {
    let _ = tick;
}

#[optimus::cron("@daily")]
#[optimus::task(queue = "reports")]
async fn both() {}

#[optimus::cron("@daily", overlap = "queue", lane = "reports")]
async fn two_lanes() {}

#[optimus::cron("@hourly", missed = "all")]
async fn all_and_skip() {}

#[optimus::cron("*/5 * * * *", jitter = "5m")]
async fn jitter_and_skip() {}

#[optimus::cron("@hourly", overlap = "skip", jitter = "2h")]
async fn jitter_and_written_skip() {}

#[optimus::cron("@daily")]
struct NoFunction;

#[optimus::task(tz = "Asia/Shanghai")]
async fn task_with_zone() {}

mod other {
    pub struct Tick;

    #[optimus::cron("@daily")]
    async fn foreign_tick(tick: Tick) {
        let _ = tick;
    }
}

fn main() {}
