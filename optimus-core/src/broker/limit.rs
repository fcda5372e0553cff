//! `limit`, `acquire` and `repay`, and plain reads of limits.

use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::try_join;
use redis::Value;

use super::{
    Broker, BrokerError,
    inspect::{get, size, texts, whole},
    keys::Keys,
    reply, scripts,
};
use crate::{
    gate::Gate,
    id::QueueName,
    limit::{Limit, LimitDetails, Shut, TaskLimit},
    platform::instant,
    rate::Rate,
    record::TaskRecord,
};

/// The result of a call that takes a token or a permit outside tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acquired {
    /// The caller has it.
    Granted,
    /// Nothing is free before this time.
    Wait(Duration),
}

/// How long a caller waits until it asks again, if a permit must be given back before.
const ASK_AGAIN: Duration = Duration::from_millis(200);

/// At most this many classes of tasks are read to count those that wait for a gate.
const CLASSES_MAX: &str = "127";

impl Broker {
    /// Sets the limit of a gate at run time; `None` removes what was set.
    pub async fn set_limit(
        &self,
        queue: &QueueName,
        gate: &Gate,
        limit: Option<&Limit>,
    ) -> Result<(), BrokerError> {
        let call = self.call(&scripts::LIMIT, queue, "").arg(gate.stored());
        let call = call.arg(limit.map(stored_limit).unwrap_or_default());
        self.run_surely(call).await.map(drop)
    }

    /// Stops the starts of a gate's tasks until it is resumed. `true` if the queue was used before.
    pub async fn pause_gate(
        &self,
        queue: &QueueName,
        gate: &Gate,
        by: &str,
        why: &str,
    ) -> Result<bool, BrokerError> {
        let by = by.replace(['\n', '\r'], " ");
        let call = self.call(&scripts::PAUSE, queue, "").arg(1).arg(gate.stored());
        self.run_surely(call.arg(by).arg(why)).await?.flag()
    }

    /// Ends a pause of a gate, also one that a task asked for. `true` if the queue was used before.
    pub async fn resume_gate(&self, queue: &QueueName, gate: &Gate) -> Result<bool, BrokerError> {
        let call = self.call(&scripts::PAUSE, queue, "").arg(0).arg(gate.stored());
        self.run_surely(call.arg("").arg("")).await?.flag()
    }

    /// Takes tokens and a permit of a gate. A call that is repeated under the same permit takes
    /// nothing more. The permit ends after the lease, unless it is renewed or given back before.
    pub async fn acquire(
        &self,
        queue: &QueueName,
        gate: &Gate,
        cost: u32,
        permit: &str,
        lease: Duration,
    ) -> Result<Acquired, BrokerError> {
        let call = self.call(&scripts::ACQUIRE, queue, "").arg(gate.stored()).arg(cost.max(1));
        let mut reply = self.run_surely(call.arg(permit).arg(lease.as_millis())).await?;
        Ok(match reply.wait()? {
            Some(Duration::ZERO) => Acquired::Granted,
            Some(wait) => Acquired::Wait(wait),
            None => Acquired::Wait(ASK_AGAIN),
        })
    }

    /// Renews a permit. `false` if it has ended.
    pub async fn renew_permit(
        &self,
        queue: &QueueName,
        gate: &Gate,
        permit: &str,
        lease: Duration,
    ) -> Result<bool, BrokerError> {
        let call = self.call(&scripts::REPAY, queue, "").arg(gate.stored()).arg(permit);
        self.run_surely(call.arg(lease.as_millis())).await?.flag()
    }

    /// Gives a permit back.
    pub async fn give_back(
        &self,
        queue: &QueueName,
        gate: &Gate,
        permit: &str,
    ) -> Result<(), BrokerError> {
        let call = self.call(&scripts::REPAY, queue, "").arg(gate.stored()).arg(permit).arg("");
        self.run_surely(call).await.map(drop)
    }

    /// Reads the gates that were set or paused, and those at which tasks wait; up to `limit` of
    /// each.
    pub async fn limits(
        &self,
        queue: &QueueName,
        limit: usize,
    ) -> Result<Vec<LimitDetails>, BrokerError> {
        self.limits_declared(queue, limit, &[]).await
    }

    /// Reads as [`limits`](Self::limits), and also the gates of these limits, which the workers of
    /// the queue have declared.
    pub async fn limits_declared(
        &self,
        queue: &QueueName,
        limit: usize,
        declared: &[TaskLimit],
    ) -> Result<Vec<LimitDetails>, BrokerError> {
        let keys = self.keys(queue);
        let last = limit.saturating_sub(1).to_string();
        let mut answers = self
            .read(vec![
                get(&["HKEYS", &keys.of("limits")]),
                get(&["ZRANGE", &keys.of("shut"), "0", &last]),
                get(&["HKEYS", &keys.of("paused")]),
                get(&["ZRANGE", &keys.of("gates"), "0", &last]),
                get(&["ZRANGE", &keys.of("waits"), "0", &last]),
            ])
            .await
            .into_iter();
        let mut names: Vec<String> =
            declared.iter().take(limit).map(|known| known.gate.stored()).collect();
        let mut classes = Vec::new();
        for verb in ["HKEYS", "ZRANGE", "HKEYS", "ZRANGE", "ZRANGE"] {
            classes = texts(verb, answers.next().expect("an answer for each call")?)?;
            classes.truncate(limit);
            // The name of a class has those of its gates.
            let found = classes.iter().flat_map(|name| name.split('\n'));
            names.extend(found.map(str::to_owned));
        }
        names.sort();
        names.dedup();
        let mut known = self.brought(&keys, &classes).await?;
        known.extend_from_slice(declared);
        let mut limits = Vec::new();
        for gate in names.iter().filter_map(|name| Gate::from_stored(name)) {
            let known = known.iter().find(|known| known.gate == gate).map(|known| known.limit);
            limits.extend(self.limit_known(queue, &gate, known).await?);
        }
        Ok(limits)
    }

    /// Reads one gate; `None` if nothing was set, nothing waits, and it is not shut or in use.
    pub async fn limit(
        &self,
        queue: &QueueName,
        gate: &Gate,
    ) -> Result<Option<LimitDetails>, BrokerError> {
        self.limit_known(queue, gate, None).await
    }

    /// Reads one gate. It has the limit `known` if none was set; `None` if nothing is known of it.
    pub async fn limit_known(
        &self,
        queue: &QueueName,
        gate: &Gate,
        known: Option<Limit>,
    ) -> Result<Option<LimitDetails>, BrokerError> {
        let (keys, name) = (self.keys(queue), gate.stored());
        let classes = keys.of(&format!("gate:{name}"));
        let mut answers = self
            .read(vec![
                get(&["TIME"]),
                get(&["HGET", &keys.of("limits"), &name]),
                get(&["ZSCORE", &keys.of("shut"), &name]),
                get(&["HGET", &keys.of("paused"), &name]),
                get(&["GET", &keys.of(&format!("shut:{name}"))]),
                get(&["HGET", &keys.of("meta"), "paused"]),
                get(&["ZSCORE", &keys.of("spent"), &name]),
                get(&["ZCARD", &keys.of(&format!("busy:{name}"))]),
                get(&["ZSCORE", &keys.of("gates"), &name]),
                get(&["ZRANGE", &classes, "0", CLASSES_MAX]),
            ])
            .await
            .into_iter();
        let mut next = || answers.next().expect("an answer for each call");
        let time = texts("TIME", next()?)?;
        let (set, until, paused) = (text(next()?)?, text(next()?)?, text(next()?)?);
        let reason = paused.or(text(next()?)?);
        let queue_paused = text(next()?)?.filter(|_| *gate == Gate::Queue);
        let (full_at, working, opens) = (text(next()?)?, size(&next()?), text(next()?)?);
        let waiting = texts("ZRANGE", next()?)?;
        let (count, brought) = try_join!(
            self.waiting_in(&keys, &waiting),
            self.brought(&keys, waiting.get(..1).unwrap_or_default()),
        )?;
        let brought = brought.into_iter().find(|limit| limit.gate == *gate).map(|own| own.limit);
        let now_us = time_us(&time);
        let is_set = set.is_some();
        let limit = set.as_deref().and_then(read_limit).or(brought).or(known);
        let shut = read_shut(until.as_deref(), reason.as_deref(), queue_paused.as_deref(), now_us);
        let is_used = count > 0 || working > 0 || full_at.is_some();
        if limit.is_none() && shut.is_none() && !is_used {
            return Ok(None);
        }
        let limit = limit.unwrap_or_default();
        let full_at: u64 = full_at.and_then(|at| at.parse().ok()).map_or(0, whole);
        let opens = opens.and_then(|at| at.parse().ok()).map(|at| instant(whole(at)));
        let tokens = limit.rate.map(|rate| tokens(rate, limit, full_at, now_us));
        let is_full = limit.max_working.is_some_and(|most| working >= u64::from(most));
        let is_closed = shut.is_some() || is_full || tokens == Some(0);
        let waiting = match gate {
            // Its tasks stay in the ready list.
            Gate::Queue if is_closed => self.ready_count(&keys).await?,
            _ => count,
        };
        let of_rate = limit.rate.filter(|_| tokens == Some(0) && !is_full);
        let next = opens.or_else(|| of_rate.map(|rate| next_token(rate, limit, full_at)));
        let gate = gate.clone();
        Ok(Some(LimitDetails { gate, limit, is_set, tokens, next, working, waiting, shut }))
    }

    /// Returns whether a gate has tasks that are stored elsewhere than in its own keys: the queue's
    /// tasks, or those of the lane.
    pub async fn gate_has_tasks(
        &self,
        queue: &QueueName,
        gate: &Gate,
    ) -> Result<bool, BrokerError> {
        let keys = self.keys(queue);
        let commands = match gate {
            Gate::Queue => {
                vec![get(&["HLEN", &keys.of("tasks")]), get(&["LLEN", &keys.of("success")])]
            }
            Gate::Lane(key) => vec![get(&["ZCARD", &keys.of(&format!("lane:{key}"))])],
            _ => Vec::new(),
        };
        let mut count = 0;
        for answer in self.read(commands).await {
            count += size(&answer?);
        }
        Ok(count > 0)
    }

    /// Counts the ready tasks of a queue.
    async fn ready_count(&self, keys: &Keys) -> Result<u64, BrokerError> {
        let commands = vec![
            get(&["LLEN", &keys.of("ready")]),
            get(&["ZCARD", &keys.of("priority")]),
            get(&["HGET", &keys.of("meta"), "tombstones"]),
        ];
        let mut answers = self.read(commands).await.into_iter();
        let mut next = || answers.next().expect("an answer for each call");
        let (listed, ranked, gone) = (size(&next()?), size(&next()?), text(next()?)?);
        let gone = gone.and_then(|count| count.parse().ok()).map_or(0, whole);
        Ok((listed + ranked).saturating_sub(gone))
    }

    /// Counts the tasks of these classes.
    async fn waiting_in(&self, keys: &Keys, classes: &[String]) -> Result<u64, BrokerError> {
        let size_of = |class: &String| get(&["ZCARD", &keys.of(&format!("wait:{class}"))]);
        let mut count = 0;
        for answer in self.read(classes.iter().map(size_of).collect()).await {
            count += size(&answer?);
        }
        Ok(count)
    }

    /// Reads the limits that the first task of each of these classes has brought.
    async fn brought(
        &self,
        keys: &Keys,
        classes: &[String],
    ) -> Result<Vec<TaskLimit>, BrokerError> {
        let first = |class: &String| get(&["ZRANGE", &keys.of(&format!("wait:{class}")), "0", "0"]);
        let mut ids = Vec::new();
        for answer in self.read(classes.iter().map(first).collect()).await {
            ids.extend(texts("ZRANGE", answer?)?);
        }
        let tasks = keys.of("tasks");
        let mut limits = Vec::new();
        for record in self.read(ids.iter().map(|id| get(&["HGET", &tasks, id])).collect()).await {
            let record = reply::plain_bytes("HGET", record?)?.unwrap_or_default();
            limits.extend(TaskRecord::decode(record).into_iter().flat_map(|known| known.limits));
        }
        Ok(limits)
    }
}

/// Writes `<interval of the rate in µs>:<burst>:<max working>`; 0 is none.
fn stored_limit(limit: &Limit) -> String {
    let interval_us = limit.rate.map_or(0, |rate| rate.interval_us());
    let burst = limit.rate.map_or(0, |_| limit.burst_limit());
    format!("{interval_us}:{burst}:{}", limit.max_working.unwrap_or(0))
}

fn read_limit(stored: &str) -> Option<Limit> {
    let mut parts = stored.split(':');
    let rate = Rate::from_interval_us(parts.next()?.parse().ok()?);
    let (burst, most) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let max_working = (most > 0).then_some(most);
    Some(Limit { rate, burst: rate.map(|_| burst), max_working })
}

/// Returns how many tasks may start at once now, as the script `claim` counts them.
fn tokens(rate: Rate, limit: Limit, full_at: u64, now_us: u64) -> u64 {
    let (interval, burst) = (rate.interval_us(), u64::from(limit.burst_limit()));
    let full_at = full_at.min(now_us + burst * interval).max(now_us);
    (now_us + burst * interval - full_at) / interval
}

/// Returns when a rate without tokens next lets a task start.
fn next_token(rate: Rate, limit: Limit, full_at: u64) -> DateTime<Utc> {
    let others = u64::from(limit.burst_limit()) - 1;
    instant(full_at.saturating_sub(others * rate.interval_us()).div_ceil(1_000))
}

/// Reads `<ms> <who>`, a line break, and why.
fn read_shut(
    until: Option<&str>,
    gate_pause: Option<&str>,
    queue_pause: Option<&str>,
    at_us: u64,
) -> Option<Shut> {
    let now_ms = at_us / 1000;
    let is_until_resumed = until == Some("inf") || queue_pause.is_some();
    let until = until.and_then(|ms| ms.parse().ok()).map(whole).filter(|ms| *ms > now_ms);
    if !is_until_resumed && until.is_none() {
        return None;
    }
    let (since, text) = gate_pause.and_then(|text| text.split_once(' ')).unwrap_or_default();
    let (by, why) = text.split_once('\n').unwrap_or((text, ""));
    let since = since.parse().or_else(|_| queue_pause.unwrap_or_default().parse());
    Some(Shut {
        since: instant(since.unwrap_or(now_ms)),
        until: until.filter(|_| !is_until_resumed).map(instant),
        by: by.into(),
        why: why.into(),
    })
}

fn time_us(time: &[String]) -> u64 {
    let part = |at: usize| time.get(at).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    part(0) * 1_000_000 + part(1)
}

fn text(value: Value) -> Result<Option<String>, BrokerError> {
    let bytes = reply::plain_bytes("HGET", value)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}
