//! A plain connection to Redis that reads its counters before and after a measurement.
//!
//! The commands of the probe itself between two readings are subtracted.

use std::cell::RefCell;
use std::collections::BTreeMap;

use anyhow::Context as _;
use redis::{Connection, FromRedisValue, Pipeline};

use crate::field::{Field, Sample};

/// Reads Redis' counters.
pub(crate) struct Probe {
    inner: RefCell<Inner>,
}

struct Inner {
    connection: Connection,
    /// The commands that this connection has sent.
    calls: Calls,
    /// The number of reads by Redis from this connection.
    reads: u64,
}

type Calls = BTreeMap<String, u64>;

/// Redis' counters at one moment, without those of the probe.
#[derive(Clone, Debug)]
pub(crate) struct Counters {
    cpu_s: f64,
    calls: Calls,
    reads: u64,
    /// Bytes in use.
    pub(crate) memory: u64,
}

/// The work of Redis between two readings.
#[derive(Clone, Debug)]
pub(crate) struct Spent {
    /// The user and system time in seconds.
    pub(crate) cpu_s: f64,
    /// The calls by command, including those of scripts. Contains only commands that were called.
    pub(crate) calls: Calls,
    /// Reads from sockets.
    pub(crate) reads: u64,
    /// The growth of the memory in use, in bytes.
    pub(crate) memory_grown: i64,
}

impl Probe {
    /// Connects.
    ///
    /// # Errors
    ///
    /// When there is no reply from `url`.
    pub(crate) fn connect(url: &str) -> anyhow::Result<Self> {
        let connection = redis::Client::open(url)
            .and_then(|client| client.get_connection())
            .with_context(|| format!("no connection to {url} to read the counters"))?;
        let inner = Inner { connection, calls: Calls::new(), reads: 0 };
        Ok(Self { inner: RefCell::new(inner) })
    }

    /// Reads the current counters.
    ///
    /// # Errors
    ///
    /// When Redis does not reply, or not as Redis does.
    pub(crate) fn counters(&self) -> anyhow::Result<Counters> {
        let mut inner = self.inner.borrow_mut();
        // `INFO` counts a read before its reply, and a call only after it.
        let own_calls = inner.calls.clone();
        let text: String = inner.ask(redis::pipe().cmd("INFO").arg("everything"))?;
        let mut counters = Counters::read(&text).context("INFO lacks a counter")?;
        counters.reads = counters.reads.saturating_sub(inner.reads);
        for (name, own) in own_calls {
            if let Some(calls) = counters.calls.get_mut(&name) {
                *calls = calls.saturating_sub(own);
            }
        }
        Ok(counters)
    }

    /// Returns the work of Redis since this reading.
    ///
    /// # Errors
    ///
    /// The errors of [`counters`](Self::counters).
    pub(crate) fn since(&self, before: &Counters) -> anyhow::Result<Spent> {
        Ok(self.counters()?.since(before))
    }

    /// Sends one command and reads its reply.
    ///
    /// # Errors
    ///
    /// When Redis refuses it or does not reply.
    pub(crate) fn command<T: FromRedisValue>(&self, words: &[&str]) -> anyhow::Result<T> {
        let mut pipeline = redis::pipe();
        pipeline.cmd(words[0]).arg(&words[1..]);
        self.inner.borrow_mut().ask(&pipeline)
    }

    /// Returns the total number of fields in these hashes.
    ///
    /// # Errors
    ///
    /// When Redis does not reply.
    pub(crate) fn fields_of(&self, hashes: &[String]) -> anyhow::Result<u64> {
        let mut pipeline = redis::pipe();
        for hash in hashes {
            pipeline.cmd("HLEN").arg(hash);
        }
        let lengths: Vec<u64> = self.inner.borrow_mut().ask_all(&pipeline)?;
        Ok(lengths.iter().sum())
    }

    /// Returns the number of connections to Redis, including this one.
    ///
    /// # Errors
    ///
    /// When Redis does not reply, or not as Redis does.
    pub(crate) fn connections(&self) -> anyhow::Result<u64> {
        let text: String = self.command(&["INFO", "clients"])?;
        let line = text.lines().find_map(|line| line.strip_prefix("connected_clients:"));
        Ok(line.context("INFO does not count clients")?.trim_end().parse()?)
    }

    /// Empties Redis and frees its memory.
    ///
    /// # Errors
    ///
    /// When Redis does not reply.
    pub(crate) fn flush(&self) -> anyhow::Result<()> {
        self.command::<()>(&["FLUSHALL", "SYNC"])?;
        self.command::<()>(&["MEMORY", "PURGE"])
    }
}

impl Inner {
    fn ask<T: FromRedisValue>(&mut self, pipeline: &Pipeline) -> anyhow::Result<T> {
        let mut answers: Vec<redis::Value> = self.ask_all(pipeline)?;
        Ok(redis::from_redis_value(answers.pop().context("Redis sent no reply")?)?)
    }

    fn ask_all<T: FromRedisValue>(&mut self, pipeline: &Pipeline) -> anyhow::Result<Vec<T>> {
        for command in pipeline.cmd_iter() {
            *self.calls.entry(name_of(command)).or_default() += 1;
        }
        self.reads += 1;
        Ok(pipeline.query(&mut self.connection)?)
    }
}

/// Returns the name in the form of `commandstats`: `memory|purge`.
fn name_of(command: &redis::Cmd) -> String {
    let mut words = command.args_iter().filter_map(|arg| match arg {
        redis::Arg::Simple(word) => Some(String::from_utf8_lossy(word).to_lowercase()),
        _ => None,
    });
    let name = words.next().unwrap_or_default();
    match (name.as_str(), words.next()) {
        ("memory" | "config" | "client", Some(sub)) => format!("{name}|{sub}"),
        _ => name,
    }
}

impl Counters {
    fn read(info: &str) -> Option<Self> {
        let lines: BTreeMap<&str, &str> =
            info.lines().filter_map(|line| line.trim_end().split_once(':')).collect();
        let number = |name: &str| lines.get(name)?.parse::<f64>().ok();
        let whole = |name: &str| lines.get(name)?.parse::<u64>().ok();
        let calls = lines.iter().filter_map(|(name, stats)| {
            let name = name.strip_prefix("cmdstat_")?;
            let calls = stats.split(',').find_map(|stat| stat.strip_prefix("calls="))?;
            Some((name.to_owned(), calls.parse().ok()?))
        });
        Some(Self {
            cpu_s: number("used_cpu_user")? + number("used_cpu_sys")?,
            calls: calls.collect(),
            reads: whole("total_reads_processed")?,
            memory: whole("used_memory")?,
        })
    }

    fn since(&self, before: &Self) -> Spent {
        let calls = self.calls.iter().map(|(name, calls)| {
            (name.clone(), calls - before.calls.get(name).copied().unwrap_or(0).min(*calls))
        });
        Spent {
            cpu_s: self.cpu_s - before.cpu_s,
            calls: calls.filter(|(_, calls)| *calls > 0).collect(),
            reads: self.reads.saturating_sub(before.reads),
            memory_grown: self.memory.cast_signed() - before.memory.cast_signed(),
        }
    }
}

impl Spent {
    /// Returns the values per task: processor time, calls, and reads.
    pub(crate) fn sample(&self, tasks: f64) -> Sample {
        let calls: u64 = self.calls.values().sum();
        Sample::new()
            .with(Field::RedisCpuUsPerTask, self.cpu_s * 1e6 / tasks)
            .with(Field::RedisCallsPerTask, calls as f64 / tasks)
            .with(Field::ReadsPerTask, self.reads as f64 / tasks)
    }
}
