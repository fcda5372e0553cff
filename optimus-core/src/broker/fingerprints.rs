//! `fingerprints`: the dead tasks of a queue, by the fingerprints of their last errors.

use super::{Broker, BrokerError, ScriptCall, inspect::whole, scripts};
use crate::id::{QueueName, TaskId};

/// How many tasks one call reads.
const STEP: usize = 500;

/// Dead tasks whose last errors have one fingerprint.
#[derive(Debug)]
pub struct DeadGroup {
    /// The fingerprint, as text; empty if the errors have none.
    pub fingerprint: String,
    /// The word of the reason; empty if it is not known.
    pub reason: String,
    /// How many tasks.
    pub dead: u64,
    /// When the first of them died, in ms.
    pub first_ms: u64,
    /// When the last of them died, in ms.
    pub last_ms: u64,
    /// The last of them.
    pub sample: TaskId,
}

/// The dead tasks of a queue.
#[derive(Debug, Default)]
pub struct DeadGroups {
    /// The groups of each step. A later step may have the same fingerprint again.
    pub groups: Vec<DeadGroup>,
    /// How many tasks were read.
    pub read: u64,
    /// How many tasks are dead.
    pub dead: u64,
}

impl Broker {
    /// Reads up to `most` dead tasks, the oldest first, in steps.
    pub async fn dead_groups(
        &self,
        queue: &QueueName,
        most: u64,
    ) -> Result<DeadGroups, BrokerError> {
        let mut found = DeadGroups::default();
        let (mut after, mut after_ms) = (String::new(), String::new());
        loop {
            let call = ScriptCall::new(&scripts::FINGERPRINTS, &self.keys(queue), "")
                .arg(&after)
                .arg(&after_ms)
                .arg(STEP);
            let mut reply = self.run_read(call).await?;
            found.dead = reply.number()?;
            let read: u64 = reply.number()?;
            found.read += read;
            (after, after_ms) = (reply.text()?, reply.text()?);
            while !reply.is_empty() {
                let (fingerprint, reason) = (reply.text()?, reply.text()?);
                let dead = reply.number()?;
                let ms = |text: String| text.parse().map_or(0, whole);
                let (first_ms, last_ms) = (ms(reply.text()?), ms(reply.text()?));
                if let Ok(sample) = TaskId::from_stored(queue.clone(), &reply.text()?) {
                    let group = DeadGroup { fingerprint, reason, dead, first_ms, last_ms, sample };
                    found.groups.push(group);
                }
            }
            if read == 0 || found.read >= most || found.read >= found.dead {
                return Ok(found);
            }
        }
    }
}
