//! Reads what operators watch of many queues, in few writes.

use redis::Value;

use super::{
    Broker, BrokerError, Counts, Reply, ScriptCall, Totals,
    inspect::{get, size, texts, whole},
    scripts,
};
use crate::{
    id::{QueueName, TaskId},
    schedule_details::ORPHANED_AFTER_MS,
    state::TaskState,
    stats::{Stats, StatsUnit},
};

/// How many queues one write reads. Redis answers other clients between two writes.
const QUEUES_A_WRITE: usize = 50;
/// The hours whose statistics are read: the present one and the one before.
const HOURS: u32 = 2;
/// How many rows are read if the first entry has none, or if it has a priority.
const ROWS_BEHIND: usize = 100;
/// How a cursor of [`Broker::list`] begins behind a task with a priority.
const RANKED: char = 'p';
/// The cursor before the first task without a priority.
const FIRST_WITHOUT_PRIORITY: &str = "-1 ";

/// What operators watch of a queue.
#[derive(Debug, Clone)]
pub struct QueueSeen {
    /// How many tasks are in each state.
    pub counts: Counts,
    /// What ended so far.
    pub totals: Totals,
    /// When the oldest of the first ready tasks was submitted, in ms.
    pub first_ready_ms: Option<u64>,
    /// When the first schedule is due that a worker could tick, in ms.
    pub next_schedule_ms: Option<u64>,
    /// What ended in the present hour and in the one before.
    pub stats: Stats,
    /// The clock of Redis at the read.
    pub now_ms: u64,
}

/// The answers about one queue.
struct Answers {
    count: Result<Reply, BrokerError>,
    ready: Result<Reply, BrokerError>,
    stats: Result<Reply, BrokerError>,
    schedules: Result<Value, BrokerError>,
    code_schedules: Result<Value, BrokerError>,
}

impl Broker {
    /// Reads these queues: five commands each. A queue that Redis can't read, because a key has
    /// another type, has that error, and the others are read.
    ///
    /// # Errors
    /// Those that are about all queues, such as an outage.
    pub async fn overview(
        &self,
        queues: &[QueueName],
    ) -> Result<Vec<Result<QueueSeen, BrokerError>>, BrokerError> {
        let mut seen = Vec::with_capacity(queues.len());
        for part in queues.chunks(QUEUES_A_WRITE) {
            for (queue, answers) in part.iter().zip(self.ask(part).await) {
                match self.queue_seen(queue, answers).await {
                    Err(problem) if !is_of_one_queue(&problem) => return Err(problem),
                    read => seen.push(read),
                }
            }
        }
        Ok(seen)
    }

    async fn ask(&self, queues: &[QueueName]) -> Vec<Answers> {
        let (mut calls, mut commands) = (Vec::new(), Vec::new());
        for queue in queues {
            let keys = self.keys(queue);
            calls.push(ScriptCall::new(&scripts::COUNT, &keys, ""));
            calls.push(self.list_call(queue, TaskState::Ready, 1, ""));
            calls.push(self.stats_call(queue, StatsUnit::Hour, 0, HOURS - 1));
            let first = |index| get(&["ZRANGE", &keys.of(index), "0", "0", "WITHSCORES"]);
            commands.extend(["schedules", "code_schedules"].map(first));
        }
        let mut answers = self.run_all(calls).await.into_iter();
        let mut firsts = self.read(commands).await.into_iter();
        let of_queue = |_| Answers {
            count: answers.next().expect("an answer for each call"),
            ready: answers.next().expect("an answer for each call"),
            stats: answers.next().expect("an answer for each call"),
            schedules: firsts.next().expect("an answer for each command"),
            code_schedules: firsts.next().expect("an answer for each command"),
        };
        queues.iter().map(of_queue).collect()
    }

    async fn queue_seen(
        &self,
        queue: &QueueName,
        answers: Answers,
    ) -> Result<QueueSeen, BrokerError> {
        let mut count = answers.count?;
        let (counts, totals) = (Self::read_states(&mut count)?, Self::read_totals(&mut count)?);
        let (now_ms, open, finished) = Self::read_stats_page(answers.stats?)?;
        let own = first_due(answers.schedules?)?;
        let of_code = self.due_of_code(queue, first_due(answers.code_schedules?)?, now_ms).await?;
        Ok(QueueSeen {
            first_ready_ms: self.first_ready_ms(queue, &counts, answers.ready?).await?,
            counts,
            totals,
            next_schedule_ms: own.into_iter().chain(of_code).min(),
            stats: Stats::of(StatsUnit::Hour, HOURS, now_ms, open, &finished),
            now_ms,
        })
    }

    /// Returns when the oldest of the first ready tasks was submitted: the first one without a
    /// priority, and the first ones with one. These come in the order of their priorities, so the
    /// first may be the youngest.
    async fn first_ready_ms(
        &self,
        queue: &QueueName,
        counts: &Counts,
        ready: Reply,
    ) -> Result<Option<u64>, BrokerError> {
        let mut ready = Self::read_list(queue, ready)?;
        if ready.rows.is_empty() && counts.ready > 0 {
            // The first entries belong to tasks that were cancelled.
            ready = self.list(queue, TaskState::Ready, ROWS_BEHIND, &ready.next).await?;
        } else if ready.next.starts_with(RANKED) {
            let first = self.list(queue, TaskState::Ready, 1, FIRST_WITHOUT_PRIORITY).await?;
            ready = self.list(queue, TaskState::Ready, ROWS_BEHIND, "").await?;
            ready.rows.extend(first.rows);
        }
        Ok(ready.rows.iter().filter_map(|row| created_ms(&row.id)).min())
    }

    /// Returns when the first schedule of code is due that a worker could tick. One that was
    /// removed from the code stays due, and the workers that serve the queue leave it alone.
    async fn due_of_code(
        &self,
        queue: &QueueName,
        first_ms: Option<u64>,
        now_ms: u64,
    ) -> Result<Option<u64>, BrokerError> {
        let orphaned_ms = now_ms.saturating_sub(ORPHANED_AFTER_MS);
        let is_recent = first_ms.is_none_or(|due_ms| due_ms >= orphaned_ms);
        if is_recent || !self.is_served(queue, now_ms).await? {
            return Ok(first_ms);
        }
        let (key, least) = (self.keys(queue).of("code_schedules"), orphaned_ms.to_string());
        let words = ["ZRANGEBYSCORE", &key, &least, "+inf", "WITHSCORES", "LIMIT", "0", "1"];
        first_due(self.read_one(get(&words)).await?)
    }

    /// Returns whether a worker of the queue has a lease.
    async fn is_served(&self, queue: &QueueName, now_ms: u64) -> Result<bool, BrokerError> {
        let workers = self.keys(queue).of("workers");
        let live = self.read_one(get(&["ZCOUNT", &workers, &now_ms.to_string(), "+inf"])).await?;
        Ok(size(&live) > 0)
    }
}

/// Returns whether a problem is that of a queue, and not of all: Redis has a key that this program
/// can't read, or a newer program has changed it.
fn is_of_one_queue(problem: &BrokerError) -> bool {
    use BrokerError::{Refused, Rejected, UnexpectedReply};
    matches!(problem, Rejected(_) | UnexpectedReply(_) | Refused(..))
}

/// Reads the score of the first member of an index of schedules.
fn first_due(first: Value) -> Result<Option<u64>, BrokerError> {
    let first = texts("ZRANGE", first)?;
    Ok(first.get(1).and_then(|score| score.parse().ok()).map(whole))
}

fn created_ms(id: &TaskId) -> Option<u64> {
    id.created().and_then(|created| u64::try_from(created.timestamp_millis()).ok())
}
