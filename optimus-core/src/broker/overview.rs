//! Reads what operators watch of many queues, in few writes.

use super::{
    Broker, BrokerError, Counts, ScriptCall, Totals,
    inspect::{get, texts, whole},
    scripts,
};
use crate::{
    id::QueueName,
    state::TaskState,
    stats::{Stats, StatsUnit},
};

/// How many queues one write reads. Redis answers other clients between two writes.
const QUEUES_A_WRITE: usize = 50;
/// The hours whose statistics are read: the present one and the one before.
const HOURS: u32 = 2;
/// How many rows are read if the first entry has none.
const ROWS_BEHIND: usize = 100;
/// The indices of the schedules of a queue.
const INDICES: [&str; 2] = ["schedules", "code_schedules"];

/// What operators watch of a queue.
#[derive(Debug, Clone)]
pub struct QueueSeen {
    /// How many tasks are in each state.
    pub counts: Counts,
    /// What ended so far.
    pub totals: Totals,
    /// When the first ready task was submitted, in ms.
    pub first_ready_ms: Option<u64>,
    /// When the first schedule is due, in ms.
    pub next_schedule_ms: Option<u64>,
    /// What ended in the present hour and in the one before.
    pub stats: Stats,
    /// The clock of Redis at the read.
    pub now_ms: u64,
}

impl Broker {
    /// Reads these queues: five commands each.
    pub async fn overview(&self, queues: &[QueueName]) -> Result<Vec<QueueSeen>, BrokerError> {
        let mut seen = Vec::with_capacity(queues.len());
        for part in queues.chunks(QUEUES_A_WRITE) {
            seen.extend(self.overview_part(part).await?);
        }
        Ok(seen)
    }

    async fn overview_part(&self, queues: &[QueueName]) -> Result<Vec<QueueSeen>, BrokerError> {
        let (mut calls, mut commands) = (Vec::new(), Vec::new());
        for queue in queues {
            let keys = self.keys(queue);
            calls.push(ScriptCall::new(&scripts::COUNT, &keys, ""));
            calls.push(self.list_call(queue, TaskState::Ready, 1, ""));
            calls.push(self.stats_call(queue, StatsUnit::Hour, 0, HOURS - 1));
            let first = |index| get(&["ZRANGE", &keys.of(index), "0", "0", "WITHSCORES"]);
            commands.extend(INDICES.map(first));
        }
        let mut answers = self.run_all(calls).await.into_iter();
        let mut firsts = self.read(commands).await.into_iter();
        let mut seen = Vec::with_capacity(queues.len());
        for queue in queues {
            let mut next = || answers.next().expect("an answer for each call");
            let mut count = next()?;
            let (counts, totals) = (Self::read_states(&mut count)?, Self::read_totals(&mut count)?);
            let mut ready = Self::read_list(queue, next()?)?;
            if ready.rows.is_empty() && counts.ready > 0 {
                // The first entries belong to tasks that were cancelled.
                ready = self.list(queue, TaskState::Ready, ROWS_BEHIND, &ready.next).await?;
            }
            let created = ready.rows.first().and_then(|row| row.id.created());
            let (now_ms, open, finished) = Self::read_stats_page(next()?)?;
            let mut next_schedule_ms: Option<u64> = None;
            for _ in INDICES {
                let first = firsts.next().expect("an answer for each command")?;
                let first = texts("ZRANGE", first)?;
                let due_ms = first.get(1).and_then(|score| score.parse().ok()).map(whole);
                let both = next_schedule_ms.into_iter().chain(due_ms);
                next_schedule_ms = both.min();
            }
            seen.push(QueueSeen {
                counts,
                totals,
                first_ready_ms: created
                    .and_then(|created| u64::try_from(created.timestamp_millis()).ok()),
                next_schedule_ms,
                stats: Stats::of(StatsUnit::Hour, HOURS, now_ms, open, &finished),
                now_ms,
            });
        }
        Ok(seen)
    }
}
