//! `retain` and `history`: what a queue keeps of the tasks that succeeded or died.

use redis::Value;

use super::{
    Broker, BrokerError, ScriptCall,
    inspect::{get, texts},
    reply, scripts,
};
use crate::{id::QueueName, state::TaskState};

/// Some entries of one day.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryPart {
    /// The number of the first entry.
    pub first: u64,
    /// The entries, each with lines of tasks.
    pub entries: Vec<String>,
    /// How many entries follow these.
    pub following: u64,
    /// The lines of the last successes, which are in no entry yet; none if entries follow.
    pub recent: Vec<String>,
}

/// What is set, and what is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistoryStored {
    /// What was set, as the scripts read it; `None` if the queue keeps no history.
    pub wanted: Option<String>,
    /// The kind, the number of the day and the bytes of each list.
    pub lists: Vec<(TaskState, u64, u64)>,
}

impl Broker {
    /// Sets what a queue keeps, or removes all of it. Returns whether it kept something before.
    pub async fn retain(
        &self,
        queue: &QueueName,
        wanted: Option<(u32, u64, &str)>,
    ) -> Result<bool, BrokerError> {
        let call = ScriptCall::new(&scripts::RETAIN, &self.keys(queue), "");
        let call = match wanted {
            Some((days, bytes, tasks)) => call.arg(days).arg(bytes).arg(tasks),
            None => call.arg("").arg("").arg(""),
        };
        Ok(!self.run(call).await?.text()?.is_empty())
    }

    /// Lets a queue keep no more tasks, for the same days and in the same bytes as before. Returns
    /// whether it kept something before.
    pub async fn retain_no_more(&self, queue: &QueueName) -> Result<bool, BrokerError> {
        let call = ScriptCall::new(&scripts::RETAIN, &self.keys(queue), "");
        Ok(!self.run(call.arg("-").arg("").arg("")).await?.text()?.is_empty())
    }

    /// Lets a queue keep at least these tasks for at least these days, in at least these bytes, in
    /// addition to what is set. A queue that was told to keep no more stays so. Returns what is set
    /// now, if that is new.
    pub async fn retain_at_least(
        &self,
        queue: &QueueName,
        (days, bytes, tasks): (u32, u64, &str),
    ) -> Result<Option<String>, BrokerError> {
        let call = ScriptCall::new(&scripts::RETAIN, &self.keys(queue), "");
        let call = call.arg(format!("+{days}")).arg(bytes).arg(tasks);
        let mut reply = self.run(call).await?;
        let (before, now) = (reply.text()?, reply.text()?);
        Ok((now != before).then_some(now))
    }

    /// Reads some entries of a day.
    pub async fn history(
        &self,
        queue: &QueueName,
        (state, day): (TaskState, u64),
        first: u64,
        most: u64,
    ) -> Result<HistoryPart, BrokerError> {
        let call = ScriptCall::new(&scripts::HISTORY, &self.keys(queue), "")
            .arg(state.as_str())
            .arg(day)
            .arg(first)
            .arg(most);
        let mut reply = self.run_read(call).await?;
        let (first, count) = (reply.number()?, reply.number::<u64>()?);
        let mut entries = Vec::new();
        for _ in 0..count {
            entries.push(String::from_utf8_lossy(&reply.bytes()?).into_owned());
        }
        Ok(HistoryPart { first, entries, following: reply.number()?, recent: reply.rest()? })
    }

    /// Reads what is set, and how large the days are.
    pub async fn history_stored(&self, queue: &QueueName) -> Result<HistoryStored, BrokerError> {
        let keys = self.keys(queue);
        let commands = vec![
            get(&["HGET", &keys.of("meta"), "history"]),
            get(&["HGETALL", &keys.of("history_bytes")]),
        ];
        let mut answers = self.read(commands).await.into_iter();
        let mut next = || answers.next().expect("an answer for each call");
        let wanted = reply::plain_bytes("HGET", next()?)?;
        let mut stored = HistoryStored {
            wanted: wanted.map(|text| String::from_utf8_lossy(&text).into_owned()),
            ..HistoryStored::default()
        };
        let sizes: Value = next()?;
        for pair in texts("HGETALL", sizes)?.chunks_exact(2) {
            stored.lists.extend(size_of_list(&pair[0], &pair[1]));
        }
        stored.lists.sort_by_key(|(state, day, _)| (*day, *state == TaskState::Dead));
        Ok(stored)
    }
}

/// Reads `<kind>:<day>` and `<bytes> <entries that were removed>`.
fn size_of_list(name: &str, size: &str) -> Option<(TaskState, u64, u64)> {
    let (kind, day) = name.split_once(':')?;
    let bytes = size.split(' ').next()?;
    Some((TaskState::from_word(kind)?, day.parse().ok()?, bytes.parse().ok()?))
}
