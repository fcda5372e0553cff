//! Plain reads of limits.

use chrono::{DateTime, Utc};
use futures_util::try_join;
use redis::Value;

use super::{
    Broker, BrokerError,
    inspect::{get, size, texts, whole},
    keys::Keys,
    reply,
};
use crate::{
    gate::Gate,
    id::QueueName,
    limit::{Limit, LimitDetails, Shut, TaskLimit},
    platform::instant,
    rate::Rate,
    record::TaskRecord,
};

/// At most this many classes of tasks are read to count those that wait for a gate.
const CLASSES_MAX: &str = "127";

/// What is stored of a gate.
struct GateSeen {
    set: Option<String>,
    until: Option<String>,
    reason: Option<String>,
    queue_paused: Option<String>,
    full_at: Option<String>,
    opens: Option<String>,
    working: u64,
    classes: Vec<String>,
    now_us: u64,
}

impl Broker {
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
        let gates = names.iter().filter_map(|name| Gate::from_stored(name)).map(|gate| {
            let known = known.iter().find(|known| known.gate == gate).map(|known| known.limit);
            (gate, known)
        });
        let found = self.limits_known(queue, &gates.collect::<Vec<_>>()).await?;
        Ok(found.into_iter().flatten().collect())
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
        Ok(self.limits_known(queue, &[(gate.clone(), known)]).await?.into_iter().flatten().next())
    }

    /// Reads gates, in one write and as few commands as possible.
    async fn limits_known(
        &self,
        queue: &QueueName,
        gates: &[(Gate, Option<Limit>)],
    ) -> Result<Vec<Option<LimitDetails>>, BrokerError> {
        let keys = self.keys(queue);
        let names: Vec<String> = gates.iter().map(|(gate, _)| gate.stored()).collect();
        let Some(mut answers) = self.ask_of_gates(&keys, &names).await else { return Ok(vec![]) };
        let mut next = || answers.next().expect("an answer for each command");
        let now_us = time_us(&texts("TIME", next()?)?);
        let queue_paused = text(next()?)?;
        let (mut set, mut paused) = (each_text(next()?)?, each_text(next()?)?);
        let (mut until, mut full_at) = (each_text(next()?)?, each_text(next()?)?);
        let (mut opens, mut reasons) = (each_text(next()?)?, each_text(next()?)?);
        let mut found = Vec::with_capacity(gates.len());
        for (gate, known) in gates {
            let (working, classes) = (size(&next()?), texts("ZRANGE", next()?)?);
            let own = |of_all: &mut std::vec::IntoIter<Option<String>>| of_all.next().flatten();
            let (paused, reason) = (own(&mut paused), own(&mut reasons));
            let seen = GateSeen {
                set: own(&mut set),
                until: own(&mut until),
                reason: paused.or(reason),
                queue_paused: queue_paused.clone().filter(|_| *gate == Gate::Queue),
                full_at: own(&mut full_at),
                opens: own(&mut opens),
                working,
                classes,
                now_us,
            };
            found.push(self.limit_seen(&keys, gate, *known, seen).await?);
        }
        Ok(found)
    }

    /// Sends the commands that read gates; `None` without a gate.
    async fn ask_of_gates(
        &self,
        keys: &Keys,
        names: &[String],
    ) -> Option<impl Iterator<Item = Result<Value, BrokerError>>> {
        if names.is_empty() {
            return None;
        }
        let of_all = |verb: &str, key: &str| {
            let mut command = get(&[verb, &keys.of(key)]);
            command.arg(names);
            command
        };
        let mut reasons = get(&["MGET"]);
        reasons.arg(names.iter().map(|name| keys.of(&format!("shut:{name}"))).collect::<Vec<_>>());
        let mut commands = vec![
            get(&["TIME"]),
            get(&["HGET", &keys.of("meta"), "paused"]),
            of_all("HMGET", "limits"),
            of_all("HMGET", "paused"),
            of_all("ZMSCORE", "shut"),
            of_all("ZMSCORE", "spent"),
            of_all("ZMSCORE", "gates"),
            reasons,
        ];
        for name in names {
            commands.push(get(&["ZCARD", &keys.of(&format!("busy:{name}"))]));
            commands.push(get(&["ZRANGE", &keys.of(&format!("gate:{name}")), "0", CLASSES_MAX]));
        }
        Some(self.read(commands).await.into_iter())
    }

    /// Makes the details of a gate of what was read of it.
    async fn limit_seen(
        &self,
        keys: &Keys,
        gate: &Gate,
        known: Option<Limit>,
        seen: GateSeen,
    ) -> Result<Option<LimitDetails>, BrokerError> {
        let GateSeen { set, until, reason, queue_paused, full_at, opens, working, .. } = seen;
        let (classes, now_us) = (seen.classes, seen.now_us);
        let (count, brought) = try_join!(
            self.waiting_in(keys, &classes),
            self.brought(keys, classes.get(..1).unwrap_or_default()),
        )?;
        let brought = brought.into_iter().find(|limit| limit.gate == *gate).map(|own| own.limit);
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
        let waiting = match gate {
            // Its tasks stay in the ready list.
            Gate::Queue if shut.is_some() || is_full || tokens == Some(0) => {
                self.startable(keys, now_us / 1_000).await?
            }
            _ => count,
        };
        let of_rate = limit.rate.filter(|_| tokens == Some(0) && !is_full);
        let next = opens.or_else(|| of_rate.map(|rate| next_token(rate, limit, full_at)));
        let gate = gate.clone();
        Ok(Some(LimitDetails { gate, limit, is_set, tokens, next, working, waiting, shut }))
    }

    /// Counts the ready tasks of a queue, and those that the next claim finds due.
    async fn startable(&self, keys: &Keys, now_ms: u64) -> Result<u64, BrokerError> {
        let now_ms = now_ms.to_string();
        let due = |key| get(&["ZCOUNT", &keys.of(key), "-inf", &now_ms]);
        let commands = vec![
            due("delayed"),
            due("retry"),
            get(&["LLEN", &keys.of("ready")]),
            get(&["ZCARD", &keys.of("priority")]),
            get(&["HGET", &keys.of("meta"), "tombstones"]),
        ];
        let mut answers = self.read(commands).await.into_iter();
        let mut next = || answers.next().expect("an answer for each call");
        let (delayed, retried) = (size(&next()?), size(&next()?));
        let (listed, ranked, gone) = (size(&next()?), size(&next()?), text(next()?)?);
        let gone = gone.and_then(|count| count.parse().ok()).map_or(0, whole);
        Ok((listed + ranked).saturating_sub(gone) + delayed + retried)
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

/// Reads a limit that was set at run time.
pub(super) fn read_limit(stored: &str) -> Option<Limit> {
    let mut parts = stored.split(':');
    let rate = Rate::from_interval_us(parts.next()?.parse().ok()?);
    let (burst, most) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let max_working = (most > 0).then_some(most);
    Some(Limit { rate, burst: rate.map(|_| burst), max_working })
}

/// Returns how many tasks may start at once now, as the script `claim` counts them.
pub(super) fn tokens(rate: Rate, limit: Limit, full_at: u64, now_us: u64) -> u64 {
    // A day for each of 2^32 tasks is more than 64 bits of microseconds.
    let [interval, now_us, full_at] = [rate.interval_us(), now_us, full_at].map(u128::from);
    let latest = now_us + u128::from(limit.burst_limit()) * interval;
    let tokens = (latest - full_at.min(latest).max(now_us)) / interval;
    u64::try_from(tokens).unwrap_or(u64::MAX)
}

/// Returns when a rate without tokens next lets a task start.
fn next_token(rate: Rate, limit: Limit, full_at: u64) -> DateTime<Utc> {
    let others = u64::from(limit.burst_limit()) - 1;
    let spent = others.saturating_mul(rate.interval_us());
    instant(full_at.saturating_sub(spent).div_ceil(1_000))
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

/// Returns the texts of a list, each of which may be missing.
fn each_text(value: Value) -> Result<std::vec::IntoIter<Option<String>>, BrokerError> {
    let Value::Array(items) = value else {
        return Err(BrokerError::UnexpectedReply(format!("a read answered {value:?}")));
    };
    let texts: Result<Vec<_>, _> = items.into_iter().map(text).collect();
    Ok(texts?.into_iter())
}

/// Reads a text; `None` if there is none.
pub(super) fn text(value: Value) -> Result<Option<String>, BrokerError> {
    let bytes = reply::plain_bytes("HGET", value)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}
