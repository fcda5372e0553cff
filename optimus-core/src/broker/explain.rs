//! Plain reads of what keeps a task, a queue or a worker waiting. Each read is bounded.

use std::{collections::BTreeMap, num::NonZeroU16};

use redis::Value;

use super::{
    Broker, BrokerError,
    inspect::{get, size, stored_id, texts, whole},
    keys::Keys,
    lanes::width_of,
    reply,
};
use crate::id::{QueueName, TaskId, WorkerId};

/// At most this many entries of the ready list are read to find a task's place.
const ENTRIES_MAX: usize = 200;

/// At most this many holders of a lane are read.
const HOLDERS_MAX: &str = "4";

/// At most this many workers without a lease are asked which tasks they hold.
const LOST_MAX: &str = "16";

/// The highest `needs` of a queue that the scripts of this release know: `script_version` has it.
const NEEDS_KNOWN: u64 = 7;

/// The place of a task in its lane.
#[derive(Debug)]
pub struct LanePlace {
    /// Tasks with a permit.
    pub holders: Vec<TaskId>,
    /// How many tasks of the lane get a permit before it.
    pub ahead: u64,
    /// The width that was set at run time.
    pub width_set: Option<NonZeroU16>,
}

/// The place of a ready task.
#[derive(Debug, Clone, Copy)]
pub struct ReadyPlace {
    /// How many tasks are before it.
    pub ahead: u64,
    /// Whether there may be more.
    pub or_more: bool,
    /// Whether it is in a list from which workers claim, as far as that was read.
    pub is_listed: bool,
}

/// A task of a worker that has lost its lease.
#[derive(Debug)]
pub struct LostTask {
    /// The task.
    pub id: TaskId,
    /// The worker.
    pub worker: WorkerId,
    /// The ms at which its lease was over.
    pub lease_until_ms: u64,
}

/// What a queue has that is ready or waits.
#[derive(Debug)]
pub struct QueueLoad {
    /// Tasks in the ready list and ranked tasks.
    pub ready: u64,
    /// Tasks that wait for a lane or a limit.
    pub blocked: u64,
    /// Tasks that wait for their prerequisites.
    pub unmet: u64,
    /// The version that the queue requires, if the scripts of this release refuse it.
    pub newer: Option<u64>,
    /// Whether the queue has or had a task.
    pub is_used: bool,
    /// The ms at which the first delayed task or retry is due.
    pub next_due_ms: Option<u64>,
    /// The records of some of the first ready tasks.
    pub first: Vec<Vec<u8>>,
}

impl Broker {
    /// Reads where a task is in its lane; `None` if it does not wait because of the lane. A task
    /// that has not joined comes after all.
    pub async fn lane_place(
        &self,
        id: &TaskId,
        lane: &str,
    ) -> Result<Option<LanePlace>, BrokerError> {
        let (key, stored) = (self.keys(id.queue()).of(&format!("lane:{lane}")), id.stored());
        let commands = vec![
            get(&["ZSCORE", &key, &stored]),
            get(&["ZRANK", &key, &stored]),
            get(&["ZCOUNT", &key, "-inf", "(0"]),
            get(&["ZCARD", &key]),
            get(&["ZRANGEBYSCORE", &key, "-1", "-1", "LIMIT", "0", HOLDERS_MAX]),
            get(&["HGET", &self.keys(id.queue()).of("widths"), lane]),
        ];
        let mut answers = self.read(commands).await.into_iter();
        let mut next = || answers.next().expect("an answer for each call");
        let (score, rank) = (text(next()?)?, next()?);
        let (with_permits, all, holders) = (size(&next()?), size(&next()?), next()?);
        let width_set = width_of(next()?)?;
        let has_permit = score.is_some_and(|score| score.starts_with('-'));
        if has_permit || all == 0 {
            return Ok(None);
        }
        let is_in = matches!(rank, redis::Value::Int(_));
        let before = if is_in { size(&rank) } else { all };
        let holders = texts("ZRANGEBYSCORE", holders)?;
        Ok(Some(LanePlace {
            holders: holders.iter().filter_map(|holder| stored_id(id.queue(), holder)).collect(),
            ahead: before.saturating_sub(with_permits),
            width_set,
        }))
    }

    /// Finds those of these tasks of a queue whose workers have lost their leases.
    pub async fn lost_tasks(
        &self,
        queue: &QueueName,
        ids: &[TaskId],
        now_ms: u64,
    ) -> Result<Vec<LostTask>, BrokerError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let (keys, now) = (self.keys(queue), now_ms.to_string());
        let workers = keys.of("workers");
        let over = ["ZRANGEBYSCORE", &workers, "-inf", &now, "WITHSCORES", "LIMIT", "0", LOST_MAX];
        let over = texts("ZRANGEBYSCORE", self.read_one(get(&over)).await?)?;
        let pairs: Vec<_> =
            over.chunks_exact(2).flat_map(|lost| ids.iter().map(move |id| (lost, id))).collect();
        let holds = |(lost, id): &(&[String], &TaskId)| {
            get(&["HEXISTS", &keys.working(&lost[0]), &id.stored()])
        };
        let answers = self.read(pairs.iter().map(holds).collect()).await;
        let mut found = Vec::new();
        for ((lost, id), holds) in pairs.into_iter().zip(answers) {
            if size(&holds?) == 1 {
                let worker = WorkerId::from_stored(&lost[0]);
                let lease_until_ms = lost[1].parse().map_or(0, whole);
                found.push(LostTask { id: id.clone(), worker, lease_until_ms });
            }
        }
        Ok(found)
    }

    /// Returns those of these tasks of a queue that are dead.
    pub async fn dead_tasks(
        &self,
        queue: &QueueName,
        ids: &[TaskId],
    ) -> Result<Vec<TaskId>, BrokerError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut scores = get(&["ZMSCORE", &self.keys(queue).of("dead")]);
        scores.arg(ids.iter().map(TaskId::stored).collect::<Vec<_>>());
        let scores = texts("ZMSCORE", self.read_one(scores).await?)?;
        let dead = ids.iter().zip(scores).filter(|(_, score)| !score.is_empty());
        Ok(dead.map(|(id, _)| id.clone()).collect())
    }

    /// Reads how many tasks are before a ready one. There may be more if the task is not among the
    /// first.
    pub async fn ready_place(&self, id: &TaskId) -> Result<ReadyPlace, BrokerError> {
        let (keys, stored) = (self.keys(id.queue()), id.stored());
        let last = (ENTRIES_MAX - 1).to_string();
        let commands = vec![
            get(&["ZRANK", &keys.of("priority"), &stored]),
            get(&["ZCARD", &keys.of("priority")]),
            get(&["LLEN", &keys.of("ready")]),
            get(&["LRANGE", &keys.of("ready"), "0", &last]),
            get(&["HMGET", &keys.of("meta"), "tombstones"]),
        ];
        let mut answers = self.read(commands).await.into_iter();
        let mut next = || answers.next().expect("an answer for each call");
        let (rank, ranked, length) = (next()?, size(&next()?), size(&next()?));
        let (entries, gone) = (texts("LRANGE", next()?)?, texts("HMGET", next()?)?);
        if let redis::Value::Int(_) = rank {
            // A claim merges both by age, so some of the list may come first.
            return Ok(ReadyPlace { ahead: size(&rank), or_more: length > 0, is_listed: true });
        }
        let place = entries.iter().position(|entry| entry.ends_with(&stored));
        let before = place.unwrap_or(entries.len());
        let has_gone = gone.iter().any(|count| !count.is_empty() && count != "0");
        let gone = if has_gone { self.tombstones(&keys, &entries[..before]).await? } else { 0 };
        Ok(ReadyPlace {
            ahead: (before as u64).saturating_sub(gone),
            or_more: place.is_none() || ranked > 0,
            is_listed: place.is_some() || length > ENTRIES_MAX as u64,
        })
    }

    /// Counts which of these entries of the ready list belong to tasks that were cancelled.
    async fn tombstones(&self, keys: &Keys, entries: &[String]) -> Result<u64, BrokerError> {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for entry in entries {
            *counts.entry(entry.rsplit(':').next().unwrap_or_default()).or_default() += 1;
        }
        if counts.is_empty() {
            return Ok(0);
        }
        let mut skips = get(&["HMGET", &keys.of("skips")]);
        skips.arg(counts.keys().collect::<Vec<_>>());
        let skips = texts("HMGET", self.read_one(skips).await?)?;
        let skipped = skips.iter().map(|skips| skips.parse().unwrap_or(0));
        Ok(skipped.zip(counts.values()).map(|(skips, count): (u64, _)| skips.min(*count)).sum())
    }

    /// Reads the server's time, in ms since the Unix epoch. A test may have set it.
    pub async fn now_ms(&self) -> Result<u64, BrokerError> {
        self.time_ms(self.read_one(get(&["TIME"])).await?)
    }

    /// Reads the answer to `TIME`, in ms since the Unix epoch. A test may have set the time.
    pub(super) fn time_ms(&self, answer: Value) -> Result<u64, BrokerError> {
        if let Ok(now_ms) = self.now.parse() {
            return Ok(now_ms);
        }
        let time = texts("TIME", answer)?;
        let part = |at: usize| time.get(at).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        Ok(part(0) * 1_000 + part(1) / 1_000)
    }

    /// Reads what a queue has to claim.
    pub async fn queue_load(&self, queue: &QueueName) -> Result<QueueLoad, BrokerError> {
        let keys = self.keys(queue);
        let first_due = |key| get(&["ZRANGE", &keys.of(key), "0", "0", "WITHSCORES"]);
        let commands = vec![
            get(&["LLEN", &keys.of("ready")]),
            get(&["ZCARD", &keys.of("priority")]),
            get(&["HLEN", &keys.of("unmet")]),
            get(&["HLEN", &keys.of("tasks")]),
            get(&["LLEN", &keys.of("success")]),
            get(&["HMGET", &keys.of("meta"), "blocked", "tombstones", "needs"]),
            first_due("delayed"),
            first_due("retry"),
            get(&["LRANGE", &keys.of("ready"), "0", "7"]),
            get(&["ZRANGE", &keys.of("priority"), "0", "7"]),
        ];
        let mut answers = self.read(commands).await.into_iter();
        let mut next = || answers.next().expect("an answer for each call");
        let entries = size(&next()?) + size(&next()?);
        let (unmet, tasks, successes) = (size(&next()?), size(&next()?), size(&next()?));
        let counts = texts("HMGET", next()?)?;
        let count = |at: usize| counts.get(at).and_then(|text| text.parse::<f64>().ok()).map(whole);
        let mut due = Vec::new();
        for first in [next()?, next()?] {
            let first = texts("ZRANGE", first)?;
            due.extend(first.get(1).and_then(|score| score.parse::<f64>().ok()).map(whole));
        }
        let mut first = texts("LRANGE", next()?)?;
        first.extend(texts("ZRANGE", next()?)?);
        let id = |entry: &String| entry.rsplit(':').next().unwrap_or_default().to_owned();
        let first = self.records(queue, first.iter().map(id)).await?;
        Ok(QueueLoad {
            ready: entries.saturating_sub(count(1).unwrap_or(0)),
            blocked: count(0).unwrap_or(0),
            unmet,
            newer: count(2).filter(|needs| *needs > NEEDS_KNOWN),
            is_used: tasks + successes > 0,
            next_due_ms: due.into_iter().min(),
            first: first.into_iter().map(|(_, record)| record).collect(),
        })
    }

    /// Reads the version that a queue requires, if the scripts of this release refuse it.
    pub async fn newer(&self, queue: &QueueName) -> Result<Option<u64>, BrokerError> {
        let needs = get(&["HGET", &self.keys(queue).of("meta"), "needs"]);
        let needs = text(self.read_one(needs).await?)?.and_then(|needs| needs.parse().ok());
        Ok(needs.map(whole).filter(|needs| *needs > NEEDS_KNOWN))
    }

    /// Reads some tasks that wait for their prerequisites, and their records.
    pub async fn some_unmet(
        &self,
        queue: &QueueName,
        most: usize,
    ) -> Result<Vec<(TaskId, Vec<u8>)>, BrokerError> {
        let (unmet, most) = (self.keys(queue).of("unmet"), most.to_string());
        let ids = self.read_one(get(&["HRANDFIELD", &unmet, &most])).await?;
        let ids = texts("HRANDFIELD", ids)?;
        let found = self.records(queue, ids.into_iter()).await?.into_iter();
        Ok(found.filter_map(|(id, record)| Some((stored_id(queue, &id)?, record))).collect())
    }

    /// Reads the records of those of these tasks that have one.
    async fn records(
        &self,
        queue: &QueueName,
        ids: impl Iterator<Item = String>,
    ) -> Result<Vec<(String, Vec<u8>)>, BrokerError> {
        let (tasks, ids) = (self.keys(queue).of("tasks"), ids.collect::<Vec<_>>());
        let reads = ids.iter().map(|id| get(&["HGET", &tasks, id])).collect();
        let mut records = Vec::new();
        for (id, record) in ids.into_iter().zip(self.read(reads).await) {
            records.extend(reply::plain_bytes("HGET", record?)?.map(|record| (id, record)));
        }
        Ok(records)
    }
}

/// Reads a text; `None` if there is none.
pub(super) fn text(value: redis::Value) -> Result<Option<String>, BrokerError> {
    let bytes = reply::plain_bytes("a read", value)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_scripts_know_the_same_version_as_the_reads() {
        let source = include_str!("../../lua/include/script_version.lua");
        let line = format!("local NEEDS_KNOWN = {}\n", super::NEEDS_KNOWN);
        assert!(source.contains(&line), "{source}");
    }
}
