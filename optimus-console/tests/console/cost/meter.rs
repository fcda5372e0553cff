//! Counts what a page costs: [`Meter`].

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use optimus_testkit::RedisServer;
use redis::aio::MultiplexedConnection;

use crate::client::Browser;

/// How often a page is asked for in a row, and how many rows of requests there are.
const TIMES: u32 = 10;
const ROWS: u32 = 5;
/// How old a read of all queues is when a request makes the next one.
const OLD_AFTER_MS: u64 = 5_000;

/// What a page costs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    /// The commands that Redis runs, with those of scripts.
    pub(super) commands: u64,
    /// The processor time of Redis.
    pub(super) redis: Duration,
    /// The time from the request to the answer.
    pub(super) server: Duration,
}

impl Cost {
    pub(super) const HEADING: &str =
        "page                                   commands  redis ms  answer ms  (the first time)";

    pub(super) fn row(&self, path: &str) -> String {
        let [redis, server] = [self.redis, self.server].map(|time| time.as_secs_f64() * 1e3);
        let path: String = path.chars().take(38).collect();
        format!("{path:<38} {:>8} {redis:>9.2} {server:>10.1}", self.commands)
    }

    pub(super) fn short(&self) -> String {
        let [redis, server] = [self.redis, self.server].map(|time| time.as_secs_f64() * 1e3);
        format!(" ({}, {redis:.2}, {server:.1})", self.commands)
    }
}

/// Asks for pages, and counts.
pub(super) struct Meter {
    admin: MultiplexedConnection,
    browser: Browser,
}

/// Returns the fields of a section of `INFO`.
async fn info(admin: &mut MultiplexedConnection, section: &str) -> BTreeMap<String, String> {
    let text: String = redis::cmd("INFO").arg(section).query_async(admin).await.unwrap();
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

impl Meter {
    pub(super) async fn new(redis: &RedisServer, browser: Browser) -> Self {
        Self { admin: redis.admin().await, browser }
    }

    pub(super) async fn memory(&mut self) -> String {
        let memory = info(&mut self.admin, "memory").await;
        format!("{} in Redis", memory["used_memory_human"])
    }

    /// Returns how many commands have run so far, but those of this meter.
    async fn commands(&mut self) -> u64 {
        let stats = info(&mut self.admin, "commandstats").await;
        let number = |text: &str| -> u64 {
            let calls = text.split(',').find_map(|pair| pair.strip_prefix("calls="));
            calls.and_then(|calls| calls.parse().ok()).unwrap_or(0)
        };
        let is_own = |name: &str| name == "cmdstat_info";
        stats.iter().filter(|(name, _)| !is_own(name)).map(|(_, of)| number(of)).sum()
    }

    /// Returns the processor time of the thread that runs commands.
    async fn processor(&mut self) -> Duration {
        let cpu = info(&mut self.admin, "cpu").await;
        let seconds =
            |kind: &str| -> f64 { cpu[&format!("used_cpu_{kind}_main_thread")].parse().unwrap() };
        Duration::from_secs_f64(seconds("user") + seconds("sys"))
    }

    async fn cost(&mut self, path: &str, times: u32) -> Cost {
        let (commands, redis) = (self.commands().await, self.processor().await);
        let begun = Instant::now();
        for _ in 0..times {
            self.browser.look(path).await;
        }
        let server = begun.elapsed() / times;
        let redis = self.processor().await.saturating_sub(redis) / times;
        let commands = (self.commands().await - commands) / u64::from(times);
        Cost { commands, redis, server }
    }

    /// Returns what a page costs that nobody has asked for before.
    pub(super) async fn first(&mut self, path: &str) -> Cost {
        self.browser.look("overview").await;
        self.cost(path, 1).await
    }

    /// Returns what a page costs: the least of some rows of requests, since other programs may have
    /// had the processor, and a read of all queues is not a part of the page.
    pub(super) async fn later(&mut self, path: &str) -> Cost {
        let mut least: Option<Cost> = None;
        for _ in 0..ROWS {
            self.browser.look("overview").await;
            let cost = self.cost(path, TIMES).await;
            let known = least.get_or_insert(cost);
            known.commands = known.commands.min(cost.commands);
            known.redis = known.redis.min(cost.redis);
            known.server = known.server.min(cost.server);
        }
        least.expect("there are rows")
    }

    /// Returns what a read of all queues costs, which all pages share: a request makes it once the
    /// last one is old.
    pub(super) async fn cost_of_reads(&mut self) -> Cost {
        let mut reads = Vec::new();
        let mut seen = self.browser.look("overview").await;
        while reads.len() < ROWS as usize {
            let ms = |name: &str| seen[name].as_u64().expect("a time");
            let old_at_ms = ms("sampled_ms") + OLD_AFTER_MS;
            let left_ms = old_at_ms.saturating_sub(ms("now_ms")).max(1);
            tokio::time::sleep(Duration::from_millis(left_ms)).await;
            let cost = self.cost("overview", 1).await;
            let next = self.browser.look("overview").await;
            if next["sampled_ms"] != seen["sampled_ms"] {
                reads.push(cost);
            }
            seen = next;
        }
        reads.into_iter().min_by_key(|cost| cost.redis).expect("there are reads")
    }
}
