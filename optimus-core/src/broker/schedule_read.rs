//! Plain reads of schedules: one, a page, the history of one.

use std::collections::BTreeMap;

use redis::Value;

use super::{
    Broker, BrokerError, DueSchedule,
    inspect::{get, size, texts},
    reply::{plain_bytes, plain_list},
};
use crate::{
    id::{QueueName, TaskId},
    platform::instant,
    record::{RecordError, TaskRecord},
    schedule_details::{
        ORPHANED_AFTER_MS, ScheduleCursor, ScheduleDetails, SchedulePace, ScheduleTick,
    },
    scheduled_task::ScheduledTask,
    timing::Timing,
};

/// How often the queues of a name are read, if it moves meanwhile.
const LOOKS_MAX: usize = 4;

/// A stored schedule.
#[derive(Debug, Clone)]
pub struct StoredSchedule {
    name: String,
    queue: QueueName,
    fields: BTreeMap<String, Vec<u8>>,
    /// When it is due, in ms; `None` if never.
    pub due_ms: Option<u64>,
    /// Redis' clock, in ms.
    pub now_ms: u64,
}

impl StoredSchedule {
    fn field(&self, name: &str) -> Vec<u8> {
        self.fields.get(name).cloned().unwrap_or_default()
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(&self.field(name)).into_owned()
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.text(name).parse().ok()
    }

    /// Returns the queue of its tasks.
    pub fn queue(&self) -> &QueueName {
        &self.queue
    }

    /// Returns the number that changes with each change of the schedule.
    pub fn edition(&self) -> u64 {
        self.number("edition").unwrap_or_default()
    }

    /// Returns the release of the program whose code has it; `None` if it was made at run time.
    pub fn release(&self) -> Option<String> {
        Some(self.text("release")).filter(|release| !release.is_empty())
    }

    /// Returns the number of the schedule. Of several queues that have one of this name, the one
    /// with the highest number keeps it.
    pub fn number_of_name(&self) -> u64 {
        self.number("number").unwrap_or_default()
    }

    /// Returns when the program whose code has it has started, in ms.
    pub fn started_ms(&self) -> u64 {
        self.number("started").unwrap_or_default()
    }

    /// Returns whether it moves from queue to queue, so that it has no instants yet.
    pub fn is_moving(&self) -> bool {
        self.fields.contains_key("moving")
    }

    /// Returns whether it is due since more than a minute, and nobody ticks it.
    pub fn is_orphaned(&self) -> bool {
        self.due_ms.is_some_and(|due_ms| self.now_ms.saturating_sub(due_ms) > ORPHANED_AFTER_MS)
    }

    /// Returns when it was made, in ms.
    pub(crate) fn made_ms(&self) -> u64 {
        self.number("made").unwrap_or_default()
    }

    /// Returns since when and by whom it is paused, as stored; empty if it is not.
    pub(crate) fn paused(&self) -> String {
        self.text("paused")
    }

    /// Returns the latest instant, in ms.
    pub fn last_ms(&self) -> Option<u64> {
        self.number("last")
    }

    /// Returns whether somebody has paused it.
    pub fn is_paused(&self) -> bool {
        self.fields.contains_key("paused")
    }

    /// Reads when it is due.
    pub fn timing(&self) -> Result<Timing, String> {
        Timing::read(&self.text("timing"))
    }

    /// Returns whether the stored timing and call are these.
    pub fn is_same(&self, timing: &str, record: &[u8], blob: &[u8]) -> bool {
        self.text("timing") == timing
            && self.field("record") == record
            && self.field("blob") == blob
    }

    /// Returns what a tick needs.
    pub fn due(&self) -> DueSchedule {
        let task = ScheduledTask::read(self.field("record"), self.field("blob"));
        DueSchedule {
            name: self.name.clone(),
            due_ms: self.due_ms.unwrap_or_default(),
            edition: self.edition(),
            is_moving: self.is_moving(),
            timing: self.timing(),
            task: task.map_err(|why| why.to_string()),
        }
    }

    /// Describes it; `None` if a newer program has written it.
    pub fn details(&self) -> Option<ScheduleDetails> {
        let timing = self.timing().ok()?;
        let mut record = TaskRecord::decode(self.field("record"));
        if let Ok(record) = &mut record
            && record.has_blob
        {
            record.payload = self.field("blob");
        }
        let stored = self.text("paused");
        // The reason follows in lines of its own.
        let (paused, why) = stored.split_once('\n').unwrap_or((&stored, ""));
        let paused = paused
            .split_once(' ')
            .and_then(|(since, by)| Some((instant(since.parse().ok()?), by.to_owned())));
        let last_id = TaskId::from_stored(self.queue.clone(), &self.text("last_id")).ok();
        Some(ScheduleDetails {
            name: self.name.clone(),
            queue: self.queue.clone(),
            pace: SchedulePace::of(&timing),
            missed: timing.missed,
            overlap: timing.overlap,
            jitter: std::time::Duration::from_millis(timing.jitter_ms),
            record: record.map_err(|problem: RecordError| problem),
            release: self.release(),
            made: instant(self.number("made").unwrap_or_default()),
            next: self.due_ms.map(instant),
            last: self.last_ms().map(instant),
            last_id,
            paused,
            paused_why: why.to_owned(),
            now_ms: self.now_ms,
            timing,
        })
    }
}

impl Broker {
    /// Reads a schedule of a queue.
    pub async fn find_schedule(
        &self,
        queue: &QueueName,
        name: &str,
    ) -> Result<Option<StoredSchedule>, BrokerError> {
        let keys = self.keys(queue);
        let reads = vec![
            get(&["TIME"]),
            get(&["HGETALL", &keys.schedule(name)]),
            get(&["ZSCORE", &keys.of("schedules"), name]),
            get(&["ZSCORE", &keys.of("code_schedules"), name]),
        ];
        let mut answers = self.read(reads).await.into_iter();
        let mut next = || answers.next().expect("an answer for each command");
        let (now_ms, fields) = (self.time_ms(next()?)?, next()?);
        let due = score(next()?)?.or(score(next()?)?);
        stored(queue, name, fields, (due.as_deref(), now_ms))
    }

    /// Reads the schedules of this name in all queues of this namespace, and in this one, which may
    /// be unknown yet. The first one is the one that keeps the name.
    pub async fn find_schedules(
        &self,
        name: &str,
        own: Option<&QueueName>,
    ) -> Result<Vec<StoredSchedule>, BrokerError> {
        let mut found = Vec::new();
        for _ in 0..LOOKS_MAX {
            let mut queues = self.queues_with_schedule(name).await?;
            let known = queues.len();
            queues.extend(own.filter(|own| !queues.contains(own)).cloned());
            found.clear();
            for queue in &queues {
                found.extend(self.find_schedule(queue, name).await?);
            }
            // If fewer are left, it has moved meanwhile, perhaps to a queue that was not read.
            if found.len() >= known {
                break;
            }
        }
        let rank = |one: &StoredSchedule| (one.number_of_name(), one.queue.to_string());
        found.sort_by_key(|one| std::cmp::Reverse(rank(one)));
        Ok(found)
    }

    /// Returns the queues of this namespace that have a schedule of this name.
    pub async fn queues_with_schedule(&self, name: &str) -> Result<Vec<QueueName>, BrokerError> {
        let queues = self.queues().await?;
        let exists = |queue| get(&["EXISTS", &self.keys(queue).schedule(name)]);
        let answers = self.read(queues.iter().map(exists).collect()).await;
        let mut found = Vec::new();
        for (queue, answer) in queues.into_iter().zip(answers) {
            if size(&answer?) > 0 {
                found.push(queue);
            }
        }
        Ok(found)
    }

    /// Reads schedules of a queue, and the place of the last one if there may be more: those that
    /// were made at run time first.
    pub async fn schedule_page(
        &self,
        queue: &QueueName,
        limit: usize,
        after: Option<&ScheduleCursor>,
    ) -> Result<(Vec<StoredSchedule>, Option<ScheduleCursor>), BrokerError> {
        let (mut rows, now_ms) = self.places_after(queue, limit, after).await?;
        rows.truncate(limit);
        let next = rows.last().filter(|_| rows.len() == limit).cloned();
        let keys = self.keys(queue);
        let reads = rows.iter().map(|row| get(&["HGETALL", &keys.schedule(&row.name)]));
        let answers = self.read(reads.collect()).await;
        let mut found = Vec::with_capacity(rows.len());
        for (row, fields) in rows.iter().zip(answers) {
            found.extend(stored(queue, &row.name, fields?, (Some(&row.due), now_ms))?);
        }
        Ok((found, next))
    }

    /// Reads the names of schedules and when they are due, up to `limit` of each index, and Redis'
    /// clock.
    async fn places_after(
        &self,
        queue: &QueueName,
        limit: usize,
        after: Option<&ScheduleCursor>,
    ) -> Result<(Vec<ScheduleCursor>, u64), BrokerError> {
        let (mut reads, mut indexes) = (vec![get(&["TIME"])], Vec::new());
        for (index, is_of_code) in [("schedules", false), ("code_schedules", true)] {
            let key = self.keys(queue).of(index);
            let first = match after {
                Some(cursor) if cursor.is_of_code == is_of_code => {
                    self.rank_after(&key, cursor).await?
                }
                Some(cursor) if cursor.is_of_code => continue,
                _ => 0,
            };
            let last = (first + limit as u64).saturating_sub(1).to_string();
            reads.push(get(&["ZRANGE", &key, &first.to_string(), &last, "WITHSCORES"]));
            indexes.push(is_of_code);
        }
        let mut answers = self.read(reads).await.into_iter();
        let now_ms = self.time_ms(answers.next().expect("an answer for each command")?)?;
        let mut rows = Vec::new();
        for (is_of_code, found) in indexes.into_iter().zip(answers) {
            let found = texts("ZRANGE", found?)?;
            rows.extend(found.chunks_exact(2).map(|row| {
                let [name, due] = [0, 1].map(|at| row[at].clone());
                ScheduleCursor { is_of_code, due, name }
            }));
        }
        Ok((rows, now_ms))
    }

    /// Returns the rank after a schedule. If it has another due time now, this is the rank of
    /// the first one with its old time.
    async fn rank_after(&self, key: &str, after: &ScheduleCursor) -> Result<u64, BrokerError> {
        let commands = vec![
            get(&["ZSCORE", key, &after.name]),
            get(&["ZRANK", key, &after.name]),
            get(&["ZCOUNT", key, "-inf", &format!("({}", after.due)]),
        ];
        let mut answers = self.read(commands).await.into_iter();
        let mut next = || answers.next().expect("an answer for each call");
        let (found, rank, before) = (next()?, next()?, size(&next()?));
        let is_there = score(found)?.as_deref() == Some(&*after.due);
        Ok(if is_there { size(&rank) + 1 } else { before })
    }

    /// Reads the history of a schedule, the latest instant first.
    pub async fn schedule_ticks(
        &self,
        queue: &QueueName,
        name: &str,
    ) -> Result<Vec<ScheduleTick>, BrokerError> {
        let entries = self.schedule_history(queue, name).await?;
        Ok(entries.iter().filter_map(|e| ScheduleTick::from_stored(queue, e)).collect())
    }

    /// Reads the history of a schedule as it is stored.
    pub(crate) async fn schedule_history(
        &self,
        queue: &QueueName,
        name: &str,
    ) -> Result<Vec<String>, BrokerError> {
        let range = get(&["LRANGE", &self.keys(queue).ticks(name), "0", "-1"]);
        texts("LRANGE", self.read_one(range).await?)
    }
}

/// Reads a score; `None` if there is none.
/// Reads the fields of a schedule, which is due at this score at this time; `None` if there is no
/// such schedule.
fn stored(
    queue: &QueueName,
    name: &str,
    fields: Value,
    (due, now_ms): (Option<&str>, u64),
) -> Result<Option<StoredSchedule>, BrokerError> {
    let fields = plain_list("HGETALL", fields)?;
    let pairs = fields.chunks_exact(2);
    let fields: BTreeMap<_, _> = pairs
        .map(|pair| (String::from_utf8_lossy(&pair[0]).into_owned(), pair[1].clone()))
        .collect();
    let due_ms = due.and_then(|due| due.parse().ok());
    let (name, queue) = (name.to_owned(), queue.clone());
    let schedule = StoredSchedule { name, queue, fields, due_ms, now_ms };
    Ok(Some(schedule).filter(|schedule| !schedule.fields.is_empty()))
}

fn score(answer: Value) -> Result<Option<String>, BrokerError> {
    let text = plain_bytes("ZSCORE", answer)?;
    Ok(text.map(|text| String::from_utf8_lossy(&text).into_owned()))
}
