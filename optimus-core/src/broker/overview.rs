//! Reads what operators watch of many queues, in few writes.

use redis::Value;

use super::{
    Broker, BrokerError, Counts, Totals,
    inspect::{get, size, texts, whole},
    overview_keys::{KeyReads, KnownKeys},
    overview_look::{Look, ready_since_ms},
    reply::plain_bytes,
};
use crate::{
    id::{QueueName, TaskId},
    schedule_details::ORPHANED_AFTER_MS,
    state::TaskState,
    stats::{Stats, StatsUnit, StoredRows},
};

/// How many queues one write reads. Redis answers other clients between two writes, and after each
/// 16 KiB of one.
const QUEUES_A_WRITE: usize = 50;
/// The hours whose statistics are read: the present one and the one before.
const HOURS: u32 = 2;
/// The last of the ranked tasks that are read: 100.
const LAST_RANKED: &str = "99";
/// The cursor before the first task without a priority.
const FIRST_WITHOUT_PRIORITY: &str = "-1 ";
/// What operators watch of a queue.
#[derive(Debug, Clone)]
pub struct QueueSeen {
    /// How many tasks are in each state.
    pub counts: Counts,
    /// What ended so far.
    pub totals: Totals,
    /// Since when the oldest of the first ready tasks is ready, in ms.
    pub first_ready_ms: Option<u64>,
    /// When the first schedule is due that a worker could tick, in ms.
    pub next_schedule_ms: Option<u64>,
    /// What ended in the present hour and in the one before.
    pub stats: Stats,
    /// No task and no run of the queue is due before this time, in ms; `None` if there is none.
    pub due_ms: Option<u64>,
    /// Whether the queue has limits, or a task has paused a part of it.
    pub is_limited: bool,
    /// The clock of Redis at the read.
    pub now_ms: u64,
}

impl Broker {
    /// Reads these queues: one command for `meta`, one for each other key that the queue has, and
    /// two for its ready list; one for up to 50 queues asks for all their other keys; then one for
    /// each worker of a queue. If a queue has a key that is not among `known`, each of the 50 is
    /// asked for its keys first.
    /// A queue that Redis can't read, because a key has another type, has that error, and the
    /// others are read.
    ///
    /// # Errors
    /// Those that are about all queues, such as an outage.
    pub async fn overview(
        &self,
        queues: &[QueueName],
        known: &mut KnownKeys,
    ) -> Result<Vec<Result<QueueSeen, BrokerError>>, BrokerError> {
        let mut seen = Vec::with_capacity(queues.len());
        for part in queues.chunks(QUEUES_A_WRITE) {
            seen.extend(self.queues_seen(part, known).await?);
        }
        Ok(seen)
    }

    async fn queues_seen(
        &self,
        queues: &[QueueName],
        known: &mut KnownKeys,
    ) -> Result<Vec<Result<QueueSeen, BrokerError>>, BrokerError> {
        let (now_ms, mut looks) = self.looks(queues, known).await?;
        let ranked = self.look_closer(queues, &mut looks).await?;
        let mut seen = Vec::with_capacity(queues.len());
        for ((queue, look), ranked) in queues.iter().zip(looks).zip(ranked) {
            seen.push(match look {
                Ok(look) => of_one_queue(self.queue_seen(queue, look, ranked, now_ms).await)?,
                Err(problem) => Err(problem),
            });
        }
        Ok(seen)
    }

    /// Reads the keys that the queues are known to have, and asks for the others. If any queue has
    /// others, a second write finds whose they are, and a third one reads them.
    async fn looks(
        &self,
        queues: &[QueueName],
        known: &mut KnownKeys,
    ) -> Result<(u64, Vec<Result<Look, BrokerError>>), BrokerError> {
        let (now_ms, mut reads) = self.read_known(queues, known).await?;
        let mut others = Vec::new();
        for (queue, read) in queues.iter().zip(&mut reads) {
            let Ok(read) = read else { continue };
            others.extend(read.second(known.of(queue)));
        }
        let mut answers = self.read(others).await.into_iter();
        let mut looks = Vec::with_capacity(queues.len());
        for (queue, read) in queues.iter().zip(reads) {
            looks.push(match read {
                Ok(read) => {
                    let kept = known.of(queue);
                    let found = read.end(kept, &mut answers);
                    of_one_queue(found.and_then(|found| Look::read(queue, found, kept)))?
                }
                Err(problem) => Err(problem),
            });
        }
        Ok((now_ms, looks))
    }

    /// Reads the keys that the queues are known to have, and finds out which queues have others.
    async fn read_known(
        &self,
        queues: &[QueueName],
        known: &mut KnownKeys,
    ) -> Result<(u64, Vec<Result<KeyReads, BrokerError>>), BrokerError> {
        let mut commands = vec![get(&["TIME"])];
        let mut reads = Vec::with_capacity(queues.len());
        for queue in queues {
            let read = KeyReads::new(self.keys(queue), known.of(queue));
            commands.extend(read.first());
            reads.push(Ok(read));
        }
        commands.extend(KeyReads::asks(reads.iter().flatten()));
        let mut answers = self.read(commands).await.into_iter();
        let now_ms = self.time_ms(answers.next().expect("an answer for each command")?)?;
        for (queue, place) in queues.iter().zip(&mut reads) {
            let Ok(read) = place else { continue };
            let taken = read.take_first(known.of(queue), &mut answers);
            if let Err(problem) = of_one_queue(taken)? {
                *place = Err(problem);
            }
        }
        // Redis may refuse to answer about several queues at once: they are in different slots.
        let has_others = |answer: Result<Value, _>| answer.map_or(true, |count| size(&count) > 0);
        if answers.next().is_some_and(has_others) {
            self.ask_each(&mut reads).await?;
        }
        Ok((now_ms, reads))
    }

    /// Asks each queue for the keys that it is not known to have.
    async fn ask_each(
        &self,
        reads: &mut [Result<KeyReads, BrokerError>],
    ) -> Result<(), BrokerError> {
        let asks = reads.iter().flatten().filter_map(|read| KeyReads::asks([read]));
        let mut answers = self.read(asks.collect()).await.into_iter();
        for place in reads {
            let Ok(read) = place else { continue };
            if KeyReads::asks([&*read]).is_none() {
                continue;
            }
            let answer = answers.next().expect("an answer for each command");
            if let Err(problem) = of_one_queue(read.take_asked(answer))? {
                *place = Err(problem);
            }
        }
        Ok(())
    }

    /// Counts what workers hold, and returns the first ranked tasks of each queue: in one write, if
    /// any queue has workers or ranked tasks.
    async fn look_closer(
        &self,
        queues: &[QueueName],
        looks: &mut [Result<Look, BrokerError>],
    ) -> Result<Vec<Vec<TaskId>>, BrokerError> {
        let mut commands = Vec::new();
        for (queue, look) in queues.iter().zip(&*looks) {
            let (Ok(look), keys) = (look, self.keys(queue)) else { continue };
            commands.extend(look.workers.iter().map(|name| get(&["HLEN", &keys.working(name)])));
            if look.ranked > 0 {
                commands.push(get(&["ZRANGE", &keys.of("priority"), "0", LAST_RANKED]));
            }
        }
        let mut answers = self.read(commands).await.into_iter();
        let mut ranked = vec![Vec::new(); queues.len()];
        for ((queue, look), ranked) in queues.iter().zip(looks).zip(&mut ranked) {
            let Ok(found) = look else { continue };
            let answers: Vec<_> = answers
                .by_ref()
                .take(found.workers.len() + usize::from(found.ranked > 0))
                .collect();
            match of_one_queue(found.add(queue, answers))? {
                Ok(ids) => *ranked = ids,
                Err(problem) => *look = Err(problem),
            }
        }
        Ok(ranked)
    }

    async fn queue_seen(
        &self,
        queue: &QueueName,
        look: Look,
        ranked: Vec<TaskId>,
        now_ms: u64,
    ) -> Result<QueueSeen, BrokerError> {
        let first_ready_ms = self.first_ready_ms(queue, &look, ranked).await?;
        let of_code = self.due_of_code(queue, look.next_of_code, now_ms).await?;
        let stored = StoredRows { now_ms, open: look.open_rows, finished: look.finished };
        Ok(QueueSeen {
            counts: look.counts,
            totals: look.totals,
            first_ready_ms,
            next_schedule_ms: look.next_schedule.into_iter().chain(of_code).min(),
            stats: Stats::of(StatsUnit::Hour, HOURS, &stored),
            due_ms: look.due_ms,
            is_limited: look.is_limited,
            now_ms,
        })
    }

    /// Returns since when the oldest of the first ready tasks is ready: the first one without a
    /// priority, and the first ones with one, which count since their submit. These come in the
    /// order of their priorities, so the first may be the youngest.
    async fn first_ready_ms(
        &self,
        queue: &QueueName,
        look: &Look,
        ranked: Vec<TaskId>,
    ) -> Result<Option<u64>, BrokerError> {
        let mut first = look.first_ready_ms;
        if look.counts.ready <= look.ranked {
            // All entries belong to tasks that were cancelled.
            first = None;
        } else if look.tombstones > 0 {
            first = self.first_ready(queue, look.tombstones).await?;
        }
        Ok(ranked.iter().filter_map(created_ms).chain(first).min())
    }

    /// Returns since when the first ready task without a priority is ready. If up to 1,000 entries
    /// of cancelled tasks are before it, or all such entries are, this is exact. Otherwise it may
    /// be ready for longer.
    async fn first_ready(
        &self,
        queue: &QueueName,
        tombstones: u64,
    ) -> Result<Option<u64>, BrokerError> {
        let page = self.list(queue, TaskState::Ready, 1, FIRST_WITHOUT_PRIORITY).await?;
        if let Some(row) = page.rows.first() {
            return Ok(row.at_ms.or_else(|| created_ms(&row.id)));
        }
        // Of one entry more than there are tombstones, at least one is that of a ready task.
        let key = self.keys(queue).of("ready");
        let entry = self.read_one(get(&["LINDEX", &key, &tombstones.to_string()])).await?;
        let entry = plain_bytes("LINDEX", entry)?.unwrap_or_default();
        Ok(ready_since_ms(queue, &String::from_utf8_lossy(&entry)))
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

/// Keeps a problem that is that of a queue, and returns one that is of all.
pub(super) fn of_one_queue<T>(
    read: Result<T, BrokerError>,
) -> Result<Result<T, BrokerError>, BrokerError> {
    match read {
        Err(problem) if !is_of_one_queue(&problem) => Err(problem),
        read => Ok(read),
    }
}

/// Returns whether a problem is that of a queue, and not of all: Redis has a key that this program
/// can't read, or a newer program has changed it.
fn is_of_one_queue(problem: &BrokerError) -> bool {
    use BrokerError::{Refused, Rejected, UnexpectedReply};
    matches!(problem, Rejected(_) | UnexpectedReply(_) | Refused(..))
}

/// Reads the score of the first member of an index of schedules.
pub(super) fn first_due(first: Value) -> Result<Option<u64>, BrokerError> {
    let first = texts("ZRANGE", first)?;
    Ok(first.get(1).and_then(|score| score.parse().ok()).map(whole))
}

pub(super) fn created_ms(id: &TaskId) -> Option<u64> {
    id.created().and_then(|created| u64::try_from(created.timestamp_millis()).ok())
}
