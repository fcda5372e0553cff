//! Plain reads of since when tasks wait. The submit of a task does not tell: the task may have been
//! requeued, snoozed or tried again since then.

use chrono::{DateTime, Utc};

use super::{
    Broker, BrokerError,
    inspect::{get, texts, whole},
    reply::plain_bytes,
};
use crate::{
    id::{QueueName, TaskId},
    platform::instant,
};

/// The last of the entries of the ready list that are read: the first page of it.
const LAST_ENTRY: &str = "127";
/// How many bytes an entry has before its id, if it has a stamp: eight digits and a colon.
const STAMP_BYTES: usize = 9;
/// One step of priority equals so much waiting, as in `lua/include/ready.lua`.
const PRIORITY_STEP_MS: f64 = 60_000.0;
/// The index of the runs of gathered tasks, by the ms when each is due.
const RUNS: &str = "gathers";
/// The indexes of what is blocked: the lanes and the classes of limits, by the ms since when.
const WAITING: [&str; 3] = ["lanes", "waits", RUNS];

impl Broker {
    /// Returns since when one of the first ready tasks is in the ready list. `None` if it is not
    /// one of them, or is there since its submit. A task that a worker gave back counts since then,
    /// too.
    pub async fn ready_since(&self, id: &TaskId) -> Result<Option<DateTime<Utc>>, BrokerError> {
        let (keys, stored) = (self.keys(id.queue()), id.stored());
        let reads = vec![
            get(&["LRANGE", &keys.of("ready"), "0", LAST_ENTRY]),
            get(&["ZSCORE", &keys.of("priority"), &stored]),
            get(&["HGET", &keys.of("priorities"), &stored]),
        ];
        let answers: Result<Vec<_>, _> = self.read(reads).await.into_iter().collect();
        let mut answers = answers?.into_iter();
        let entries = answers.next().map_or(Ok(Vec::new()), |found| texts("LRANGE", found))?;
        let mut numbers = Vec::new();
        for answer in answers {
            let number = plain_bytes("ZSCORE", answer)?;
            let number = number.and_then(|text| String::from_utf8(text).ok()?.parse::<f64>().ok());
            numbers.push(number);
        }
        if let [Some(rank), Some(priority)] = numbers[..] {
            return Ok(Some(instant(whole(rank + priority * PRIORITY_STEP_MS))));
        }
        Ok(stamp_in(&entries, &stored).map(instant))
    }

    /// Returns since when tasks wait in the lane or at the limit of a queue where they have waited
    /// longest without a break: no task that is blocked there waits for longer. `None` if none
    /// waits there, or if tasks wait for their run, as nothing tells since when.
    pub async fn blocked_since(
        &self,
        queue: &QueueName,
    ) -> Result<Option<DateTime<Utc>>, BrokerError> {
        let keys = self.keys(queue);
        let first = |index| get(&["ZRANGE", &keys.of(index), "0", "0", "WITHSCORES"]);
        let mut since = Vec::new();
        for (index, answer) in WAITING.into_iter().zip(self.read(WAITING.map(first).into()).await) {
            let found = texts("ZRANGE", answer?)?;
            if index == RUNS && !found.is_empty() {
                return Ok(None);
            }
            since.extend(found.get(1).and_then(|score| score.parse::<f64>().ok()).map(whole));
        }
        Ok(since.into_iter().min().map(instant))
    }
}

/// Returns the stamp of the last entry of a task: earlier ones may be tombstones.
fn stamp_in(entries: &[String], id: &str) -> Option<u64> {
    stamp_of(entries.iter().rfind(|entry| entry.ends_with(id))?)
}

/// Returns the ms of the stamp of an entry of the ready list, as `lua/include/ready_entry.lua`
/// describes it.
pub(super) fn stamp_of(entry: &str) -> Option<u64> {
    let stamp = entry.get(..STAMP_BYTES)?.strip_suffix(':')?;
    u64::from_str_radix(stamp, 36).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stamp_of_the_last_entry_of_a_task_counts() {
        let entries = ["0000000a:other", "0000000b:task", "task", "000000zz:task"];
        let entries = entries.map(str::to_owned);
        assert_eq!(stamp_in(&entries, "task"), Some(35 * 36 + 35));
        assert_eq!(stamp_in(&entries[..3], "task"), None, "it is ready since its submit");
        assert_eq!(stamp_in(&entries[..1], "task"), None);
    }
}
