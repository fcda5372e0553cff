//! Acts on Redis itself. A failure because Redis is already unavailable is ignored.

use std::time::Duration;

use optimus_testkit::history::{What, now_ns};
use redis::{RedisResult, Value};
use tokio::task::block_in_place;
use tokio::time::sleep;

use super::Nemesis;

/// Redis syncs its file once a second, and postpones a sync while an earlier one runs.
const UNSYNCED_NS: u64 = 2_000_000_000;
/// The memory that a full Redis may still use. It is smaller than a batch of submits.
const ROOM: u64 = 64 * 1024;
/// The errors of Redis' clock, in s. The largest is longer than a lease, but so short that delayed
/// tasks do not hold up the run.
const CLOCK_OFF_S: [i64; 5] = [-9, -3, 0, 3, 9];
const FULL_FOR: Duration = Duration::from_millis(1_200);

impl Nemesis {
    pub(super) async fn kill_redis(&mut self) -> anyhow::Result<u64> {
        // Sometimes the pause is longer than the lease.
        let away = if self.random.u8(..4) == 0 { 1.1..1.6 } else { 0.0..0.3 };
        let away = self.leases(away);
        let mut server = self.environment.store.server().await;
        let since = now_ns();
        server.kill();
        if !self.environment.is_synced_always() {
            let since = now_ns().saturating_sub(UNSYNCED_NS);
            self.environment.log.write(What::Rollback { since });
        }
        sleep(away).await;
        block_in_place(|| server.restart());
        drop(server);
        self.environment.apply_sync().await?;
        self.environment.log.write(What::Outage { since, of: None });
        Ok(1)
    }

    pub(super) async fn freeze_redis(&mut self) -> anyhow::Result<u64> {
        let lasting = self.leases(0.025..1.5);
        let server = self.environment.store.server().await;
        let since = now_ns();
        server.pause();
        sleep(lasting).await;
        server.resume();
        self.environment.log.write(What::Outage { since, of: None });
        Ok(1)
    }

    pub(super) async fn set_clock(&mut self) -> anyhow::Result<u64> {
        let off_s = self.random.choice(CLOCK_OFF_S).unwrap_or_default();
        Ok(u64::from(self.environment.set_clock(off_s).await?))
    }

    pub(super) async fn flush(&mut self, times: u32, pause: Duration) -> anyhow::Result<u64> {
        let mut flushed = 0;
        for _ in 0..times {
            flushed += self.struck(&["SCRIPT", "FLUSH"]).await;
            sleep(pause).await;
        }
        Ok(flushed)
    }

    /// Redis loses all its data, and keeps its connections.
    pub(super) async fn lose_all(&mut self) -> anyhow::Result<u64> {
        let lost = self.struck(&["FLUSHALL"]).await;
        self.environment.log.write(What::Rollback { since: 0 });
        Ok(lost)
    }

    pub(super) async fn kill_connections(&mut self) -> anyhow::Result<u64> {
        let mut killed = 0;
        for _ in 0..=self.random.u32(..5) {
            let since = now_ns();
            killed += self.struck(&["CLIENT", "KILL", "TYPE", "normal"]).await;
            self.environment.log.write(What::Outage { since, of: None });
            sleep(Duration::from_millis(50)).await;
        }
        Ok(killed)
    }

    pub(super) async fn kill_one_connection(&mut self) -> anyhow::Result<u64> {
        let since = now_ns();
        let list: RedisResult<String> = self.environment.store.command(&["CLIENT", "LIST"]).await;
        let list = list.unwrap_or_default();
        let ids: Vec<&str> =
            list.lines().filter_map(|line| line.strip_prefix("id=")?.split(' ').next()).collect();
        let Some(id) = self.random.choice(ids) else { return Ok(0) };
        let killed = self.struck(&["CLIENT", "KILL", "ID", id]).await;
        self.environment.log.write(What::Outage { since, of: None });
        Ok(killed)
    }

    pub(super) async fn pause_clients(&mut self) -> anyhow::Result<u64> {
        let lasting = self.leases(0.025..1.5);
        let mode = if self.random.bool() { "ALL" } else { "WRITE" };
        let since = now_ns();
        let ms = lasting.as_millis().to_string();
        let paused = self.struck(&["CLIENT", "PAUSE", &ms, mode]).await;
        sleep(lasting).await;
        self.environment.log.write(What::Outage { since, of: None });
        Ok(paused)
    }

    pub(super) async fn sleep_redis(&mut self) -> anyhow::Result<u64> {
        let lasting = self.leases(0.025..1.5);
        let since = now_ns();
        let slept = self.struck(&["DEBUG", "SLEEP", &lasting.as_secs_f64().to_string()]).await;
        self.environment.log.write(What::Outage { since, of: None });
        Ok(slept)
    }

    /// Makes Redis full. A full Redis refuses submits and nothing else, so this act is not an
    /// outage.
    pub(super) async fn fill_redis(&mut self) -> anyhow::Result<u64> {
        let store = &self.environment.store;
        let Ok(Some(used)) = store.info("used_memory").await else { return Ok(0) };
        let most = (used + ROOM).to_string();
        let filled = self.struck(&["CONFIG", "SET", "maxmemory", &most]).await;
        sleep(FULL_FOR).await;
        self.struck(&["CONFIG", "SET", "maxmemory", "0"]).await;
        Ok(filled)
    }

    /// Fills the disk. A Redis that syncs with each write ends when its disk is full, and this act
    /// then counts as a kill.
    pub(super) async fn fill_disk(&mut self) -> anyhow::Result<u64> {
        let lasting = self.shortly();
        let mut server = self.environment.store.server().await;
        let since = now_ns();
        server.fill_disk()?;
        sleep(lasting).await;
        if server.has_ended() {
            block_in_place(|| server.restart());
        } else {
            server.free_disk()?;
            // Redis notices this at its next attempt, which it makes once a second.
            sleep(Duration::from_millis(1_500)).await;
        }
        drop(server);
        self.environment.apply_sync().await?;
        self.environment.log.write(What::Outage { since, of: None });
        Ok(1)
    }

    /// Returns whether Redis accepted the command.
    async fn struck(&self, words: &[&str]) -> u64 {
        u64::from(self.environment.store.command::<Value>(words).await.is_ok())
    }
}
