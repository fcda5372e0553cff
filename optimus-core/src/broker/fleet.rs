//! `attend` and `wish`: the processes of a namespace.

use std::time::Duration;

use super::{
    Broker, BrokerError, ScriptCall,
    inspect::{get, texts},
    scripts,
};
use crate::id::{QueueName, WorkerId};

/// What a process says of itself.
#[derive(Debug, Clone, Copy)]
pub struct Attendance<'a> {
    /// The id of the process.
    pub id: &'a WorkerId,
    /// When it counts as gone unless it attends again.
    pub gone_after: Duration,
    /// What does not change, as JSON.
    pub description: &'a str,
    /// What it does now, as JSON.
    pub doing: &'a str,
}

/// A process as it is stored.
#[derive(Debug)]
pub struct ProcessSeen {
    /// The id of the process.
    pub id: WorkerId,
    /// When it attended last, in ms.
    pub seen_ms: u64,
    /// What does not change, as JSON.
    pub description: String,
    /// What it does, as JSON.
    pub doing: String,
}

impl Broker {
    /// Returns the place of the keys of all processes of a namespace. No queue can have this name.
    pub fn fleet() -> QueueName {
        QueueName::of_slot("@fleet")
    }

    /// Says that a process is there. Returns the number of the last wish, and the wish.
    pub async fn attend(
        &self,
        fleet: &QueueName,
        attendance: Attendance<'_>,
    ) -> Result<(u64, String), BrokerError> {
        let Attendance { id, gone_after, description, doing } = attendance;
        let call = self
            .call(&scripts::ATTEND, fleet, id.as_str())
            .arg(id)
            .arg(gone_after.as_millis())
            .arg(description)
            .arg(doing);
        let mut reply = self.run(call).await?;
        Ok((reply.number()?, reply.text()?))
    }

    /// Says that a process leaves.
    pub async fn leave_fleet(&self, fleet: &QueueName, id: &WorkerId) -> Result<(), BrokerError> {
        let call = self.call(&scripts::ATTEND, fleet, id.as_str());
        self.run(call.arg(id).arg("").arg("").arg("")).await.map(drop)
    }

    /// Asks a process to do something.
    pub async fn wish(
        &self,
        fleet: &QueueName,
        id: &WorkerId,
        wish: &str,
    ) -> Result<(), BrokerError> {
        let call = ScriptCall::new(&scripts::WISH, &self.keys(fleet), id.as_str()).arg(wish);
        self.run_surely(call).await.map(drop)
    }

    /// Reads up to `limit` processes in the order of their ids, those after `after`. Returns
    /// whether there are more, and how many processes there are.
    pub async fn processes(
        &self,
        fleet: &QueueName,
        after: &str,
        limit: usize,
    ) -> Result<(Vec<ProcessSeen>, bool, usize), BrokerError> {
        let keys = self.keys(fleet);
        let range = get(&["ZRANGE", &keys.of("fleet"), "0", "-1"]);
        let mut ids = texts("ZRANGE", self.read_one(range).await?)?;
        let all = ids.len();
        ids.retain(|id| id.as_str() > after);
        ids.sort();
        let has_more = ids.len() > limit;
        ids.truncate(limit);
        // A process that has gone meanwhile has no fields.
        let rows = self.processes_of(fleet, &ids).await?.into_iter().flatten().collect();
        Ok((rows, has_more, all))
    }

    /// Reads the processes with these ids; `None` for each that is not there.
    pub async fn processes_of<T: AsRef<str>>(
        &self,
        fleet: &QueueName,
        ids: &[T],
    ) -> Result<Vec<Option<ProcessSeen>>, BrokerError> {
        let keys = self.keys(fleet);
        let fields =
            |id: &T| get(&["HMGET", &keys.process(id.as_ref()), "seen", "description", "doing"]);
        let mut rows = Vec::with_capacity(ids.len());
        for (id, answer) in ids.iter().zip(self.read(ids.iter().map(fields).collect()).await) {
            let found = texts("HMGET", answer?)?;
            rows.push(match &found[..] {
                [seen, description, doing] => seen.parse().ok().map(|seen_ms| ProcessSeen {
                    id: WorkerId::from_stored(id.as_ref()),
                    seen_ms,
                    description: description.clone(),
                    doing: doing.clone(),
                }),
                _ => None,
            });
        }
        Ok(rows)
    }
}
