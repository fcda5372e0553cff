//! Plain reads of what a task that runs together with others waits for.

use super::{
    Broker, BrokerError,
    explain::text,
    inspect::{get, size, stored_id, texts, whole},
};
use crate::id::{QueueName, TaskId};

/// The run for which a task waits.
#[derive(Debug)]
pub struct RunWait {
    /// How many other tasks wait for it.
    pub others: u64,
    /// The task that leads the run, and is ready or starts.
    pub leader: Option<TaskId>,
    /// The ms at which the run is due.
    pub due_ms: u64,
}

/// The run of a queue that is due first.
#[derive(Debug)]
pub struct NextRun {
    /// The name of its task.
    pub task: String,
    /// What the calls that run together have in common; may be empty.
    pub by: String,
    /// How many tasks wait for it.
    pub waiting: u64,
    /// The task that leads the run, and is ready or starts.
    pub leader: Option<TaskId>,
    /// The ms at which the run is due.
    pub due_ms: u64,
    /// For how many other runs tasks wait.
    pub others: u64,
}

impl Broker {
    /// Reads the run of a queue that is due first.
    pub async fn next_run(&self, queue: &QueueName) -> Result<Option<NextRun>, BrokerError> {
        let keys = self.keys(queue);
        let gathers = keys.of("gathers");
        let commands =
            vec![get(&["ZRANGE", &gathers, "0", "0", "WITHSCORES"]), get(&["ZCARD", &gathers])];
        let mut answers = self.read(commands).await.into_iter();
        let mut next = || answers.next().expect("an answer for each call");
        let (first, count) = (texts("ZRANGE", next()?)?, size(&next()?));
        let [name, due] = &first[..] else { return Ok(None) };
        let Some((task, by)) = name.split_once(':') else { return Ok(None) };
        let key = keys.of(&format!("gather:{name}"));
        let commands = vec![
            get(&["ZCOUNT", &key, "0", "+inf"]),
            get(&["ZRANGEBYSCORE", &key, "-1", "-1", "LIMIT", "0", "1"]),
        ];
        let mut answers = self.read(commands).await.into_iter();
        let mut next = || answers.next().expect("an answer for each call");
        let (waiting, leaders) = (size(&next()?), texts("ZRANGEBYSCORE", next()?)?);
        Ok((waiting > 0).then(|| NextRun {
            // Tasks that were tried wait under `<task>#<failures>:<losses>:<key>`.
            task: task.split('#').next().unwrap_or(task).into(),
            by: if task.contains('#') { by.split_once(':').unwrap_or(("", by)).1 } else { by }
                .into(),
            waiting,
            leader: leaders.first().and_then(|leader| stored_id(queue, leader)),
            due_ms: due.parse().map_or(0, whole),
            others: count.saturating_sub(1),
        }))
    }

    /// Reads the run for which a task of this name waits; `None` if it waits for none. The numbers
    /// are its failures and losses: only tasks that were tried as often run together.
    pub async fn run_wait(
        &self,
        id: &TaskId,
        task: &str,
        by: &str,
        tried: (u32, u32),
    ) -> Result<Option<RunWait>, BrokerError> {
        let name = match tried {
            (0, 0) => format!("{task}:{by}"),
            (failures, losses) => format!("{task}#{failures}:{losses}:{by}"),
        };
        let (keys, stored) = (self.keys(id.queue()), id.stored());
        let key = keys.of(&format!("gather:{name}"));
        let commands = vec![
            get(&["ZSCORE", &key, &stored]),
            get(&["ZSCORE", &keys.of("gathers"), &name]),
            get(&["ZCOUNT", &key, "0", "+inf"]),
            get(&["ZRANGEBYSCORE", &key, "-1", "-1", "LIMIT", "0", "1"]),
        ];
        let mut answers = self.read(commands).await.into_iter();
        let mut next = || answers.next().expect("an answer for each call");
        let (at, due) = (text(next()?)?, text(next()?)?);
        let (waiting, leaders) = (size(&next()?), texts("ZRANGEBYSCORE", next()?)?);
        let (Some(at), Some(due)) = (at, due) else { return Ok(None) };
        if at.starts_with('-') {
            return Ok(None);
        }
        Ok(Some(RunWait {
            others: waiting.saturating_sub(1),
            leader: leaders.first().and_then(|leader| stored_id(id.queue(), leader)),
            due_ms: due.parse().map_or(0, whole),
        }))
    }
}
