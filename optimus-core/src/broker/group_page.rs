//! Bounded reads of the groups of a queue, and of the members that a group waits for.

use super::{
    Broker, BrokerError,
    inspect::{get, size, stored_id, texts, whole},
    reply::{plain_bytes, plain_list},
};
use crate::id::{QueueName, TaskId};

/// How many fields one look at a group reads, and how many looks find a member that it waits for.
const FIELDS_AT_ONCE: &str = "1000";
const LOOKS_MAX: usize = 8;

impl Broker {
    /// Reads the ids of groups of a queue, each with the ms when it is removed, in that order, from
    /// the one after `after` on.
    pub async fn group_ids(
        &self,
        queue: &QueueName,
        limit: usize,
        after: Option<(&TaskId, u64)>,
    ) -> Result<Vec<(TaskId, u64)>, BrokerError> {
        let key = self.keys(queue).of("groups");
        let first = match after {
            Some((id, until_ms)) => self.place_after(&key, &id.stored(), until_ms).await?,
            None => 0,
        };
        let last = (first + limit as u64).saturating_sub(1).to_string();
        let range = get(&["ZRANGE", &key, &first.to_string(), &last, "WITHSCORES"]);
        let found = texts("ZRANGE", self.read_one(range).await?)?;
        let rows = found.chunks_exact(2).filter_map(|row| {
            let id = stored_id(queue, &row[0])?;
            Some((id, row[1].parse::<f64>().ok().map(whole)?))
        });
        Ok(rows.collect())
    }

    /// Returns the rank after a member of a zset. A member that has left, or has another score now,
    /// no longer shows the place; then all with its old score are read again.
    async fn place_after(&self, key: &str, id: &str, score: u64) -> Result<u64, BrokerError> {
        let commands = vec![
            get(&["ZSCORE", key, id]),
            get(&["ZRANK", key, id]),
            get(&["ZCOUNT", key, "-inf", &format!("({score}")]),
        ];
        let mut answers = self.read(commands).await.into_iter();
        let mut next = || answers.next().expect("an answer for each call");
        let (found, rank, before) = (next()?, next()?, size(&next()?));
        let found = plain_bytes("ZSCORE", found)?;
        let found = found.and_then(|text| String::from_utf8(text).ok()?.parse::<f64>().ok());
        let is_there = found.map(whole) == Some(score);
        Ok(if is_there { size(&rank) + 1 } else { before })
    }

    /// Returns the positions of some members that have failed, and whose requeue the group waits
    /// for.
    pub async fn lost_members(&self, group: &TaskId) -> Result<Vec<u32>, BrokerError> {
        let (key, mut cursor) = (self.keys(group.queue()).group(group), "0".to_owned());
        for _ in 0..LOOKS_MAX {
            let scan = get(&["HSCAN", &key, &cursor, "MATCH", "-*", "COUNT", FIELDS_AT_ONCE]);
            let (next, fields) = scanned(self.read_one(scan).await?)?;
            let positions = fields.iter().step_by(2);
            let found: Vec<u32> =
                positions.filter_map(|field| field.strip_prefix('-')?.parse().ok()).collect();
            if !found.is_empty() || next == "0" {
                return Ok(found);
            }
            cursor = next;
        }
        Ok(Vec::new())
    }
}

/// Splits the answer of a scan into the next cursor and the fields with their values.
fn scanned(answer: redis::Value) -> Result<(String, Vec<String>), BrokerError> {
    let wrong = || BrokerError::UnexpectedReply("HSCAN answered no cursor and fields".into());
    let redis::Value::Array(parts) = answer else { return Err(wrong()) };
    let [cursor, fields] = <[redis::Value; 2]>::try_from(parts).map_err(|_| wrong())?;
    let cursor = plain_bytes("HSCAN", cursor)?.unwrap_or_default();
    let fields = plain_list("HSCAN", fields)?.into_iter();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok((text(cursor), fields.map(text).collect()))
}
