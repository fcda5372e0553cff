//! Reads what operators watch of many queues, in few writes.

use redis::{Cmd, Value};

use super::{
    Broker, BrokerError, Counts, Totals,
    inspect::{get, size, texts, whole},
    keys::Keys,
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
/// How many rows are read if the first entry has none.
const ROWS_BEHIND: usize = 100;
/// The last of the ranked tasks that are read: 100.
const LAST_RANKED: &str = "99";
/// The cursor before the first task without a priority.
const FIRST_WITHOUT_PRIORITY: &str = "-1 ";
/// The fields of `meta` that are read, in the order of [`Look::read`].
const NOTED: [&str; 11] = [
    "tombstones",
    "blocked",
    "dead_bytes",
    "cancelled_bytes",
    "purged",
    "paused",
    "cut_successes",
    "retries",
    "losses",
    "deaths",
    "cancels",
];
/// The keys of which only the size is read, in the order of [`Look::read`].
const SIZED: [(&str, &str); 8] = [
    ("LLEN", "ready"),
    ("ZCARD", "priority"),
    ("ZCARD", "delayed"),
    ("HLEN", "unmet"),
    ("ZCARD", "retry"),
    ("ZCARD", "dead"),
    ("ZCARD", "cancelled"),
    ("LLEN", "success"),
];
/// How many commands read a queue: also `meta`, `tally`, its finished hours, its first ready task,
/// its workers and the two indexes of schedules.
const COMMANDS: usize = SIZED.len() + 7;
/// An id, and what comes before it in the entry of a task that is ready since a later instant.
const ID_BYTES: usize = 22;
const STAMP_BYTES: usize = 9;

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

/// What the commands about a queue have answered.
struct Look {
    counts: Counts,
    totals: Totals,
    tombstones: u64,
    ranked: u64,
    workers: Vec<String>,
    open_rows: [String; 3],
    finished: Vec<String>,
    first_ready: Option<TaskId>,
    next_schedule: Option<u64>,
    next_of_code: Option<u64>,
}

/// Returns the commands that read a queue. They are plain ones: a script that calls them costs
/// Redis half as much again.
fn commands_of(keys: &Keys) -> impl Iterator<Item = Cmd> {
    let words = |words: &[&str], key: &str, rest: &[&str]| {
        let key = keys.of(key);
        get(&[words, &[&key], rest].concat())
    };
    let sizes = SIZED.map(|(verb, key)| words(&[verb], key, &[]));
    let others = [
        words(&["HMGET"], "meta", &NOTED),
        words(&["HMGET"], "tally", &["minute", "hour"]),
        words(&["LRANGE"], StatsUnit::Hour.key(), &["-1", "-1"]),
        words(&["LRANGE"], "ready", &["0", "0"]),
        words(&["ZRANGE"], "workers", &["0", "-1"]),
        words(&["ZRANGE"], "schedules", &["0", "0", "WITHSCORES"]),
        words(&["ZRANGE"], "code_schedules", &["0", "0", "WITHSCORES"]),
    ];
    sizes.into_iter().chain(others)
}

impl Look {
    /// Reads the answers to [`commands_of`] a queue.
    fn read(
        queue: &QueueName,
        answers: impl Iterator<Item = Result<Value, BrokerError>>,
    ) -> Result<Self, BrokerError> {
        // All answers of the queue are taken, also if one of them is an error.
        let answers: Vec<_> = answers.collect();
        let mut answers = answers.into_iter();
        let mut next = || answers.next().expect("an answer for each command");
        let mut sizes = [0; SIZED.len()];
        for place in &mut sizes {
            *place = size(&next()?);
        }
        let [listed, ranked, delayed, unmet, retry, dead, cancelled, summaries] = sizes;
        let noted = texts("HMGET", next()?)?;
        let note = |at: usize| noted.get(at).and_then(|text| text.parse().ok()).unwrap_or(0);
        let (tombstones, blocked) = (note(0), note(1));
        let open = texts("HMGET", next()?)?;
        let open = |at: usize| open.get(at).cloned().unwrap_or_default();
        let finished = texts("LRANGE", next()?)?;
        let first = texts("LRANGE", next()?)?;
        Ok(Self {
            counts: Counts {
                ready: (listed + ranked).saturating_sub(tombstones),
                delayed,
                blocked: blocked + unmet,
                retry,
                working: 0,
                dead,
                cancelled,
                recent_successes: summaries,
                dead_bytes: note(2),
                cancelled_bytes: note(3),
                purged: note(4),
                paused: noted.get(5).is_some_and(|since| !since.is_empty()),
            },
            totals: Totals {
                successes: note(6) + summaries,
                retries: note(7),
                losses: note(8),
                deaths: note(9),
                cancels: note(10),
            },
            tombstones,
            ranked,
            open_rows: [open(0), open(1), String::new()],
            finished,
            first_ready: first.first().and_then(|entry| id_of_entry(queue, entry)),
            workers: texts("ZRANGE", next()?)?,
            next_schedule: first_due(next()?)?,
            next_of_code: first_due(next()?)?,
        })
    }
}

impl Broker {
    /// Reads these queues: 15 commands each, and one for each worker of a queue. A queue that Redis
    /// can't read, because a key has another type, has that error, and the others are read.
    ///
    /// # Errors
    /// Those that are about all queues, such as an outage.
    pub async fn overview(
        &self,
        queues: &[QueueName],
    ) -> Result<Vec<Result<QueueSeen, BrokerError>>, BrokerError> {
        let mut seen = Vec::with_capacity(queues.len());
        for part in queues.chunks(QUEUES_A_WRITE) {
            seen.extend(self.queues_seen(part).await?);
        }
        Ok(seen)
    }

    async fn queues_seen(
        &self,
        queues: &[QueueName],
    ) -> Result<Vec<Result<QueueSeen, BrokerError>>, BrokerError> {
        let mut commands = vec![get(&["TIME"])];
        for queue in queues {
            commands.extend(commands_of(&self.keys(queue)));
        }
        let mut answers = self.read(commands).await.into_iter();
        let now_ms = self.time_ms(answers.next().expect("an answer for each command")?)?;
        let mut looks = Vec::with_capacity(queues.len());
        for queue in queues {
            let look = Look::read(queue, answers.by_ref().take(COMMANDS));
            looks.push(of_one_queue(look)?);
        }
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
            now_ms,
        })
    }

    /// Returns when the oldest of the first ready tasks was submitted: the first one without a
    /// priority, and the first ones with one. These come in the order of their priorities, so the
    /// first may be the youngest.
    async fn first_ready_ms(
        &self,
        queue: &QueueName,
        look: &Look,
        ranked: Vec<TaskId>,
    ) -> Result<Option<u64>, BrokerError> {
        let mut first = look.first_ready.clone();
        if look.counts.ready <= look.ranked {
            // All entries belong to tasks that were cancelled.
            first = None;
        } else if look.tombstones > 0 {
            let after = FIRST_WITHOUT_PRIORITY;
            let ready = self.list(queue, TaskState::Ready, ROWS_BEHIND, after).await?;
            first = ready.rows.into_iter().next().map(|row| row.id);
        }
        Ok(first.iter().chain(&ranked).filter_map(created_ms).min())
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

impl Look {
    /// Adds what workers hold. Returns the ranked tasks.
    fn add(
        &mut self,
        queue: &QueueName,
        answers: Vec<Result<Value, BrokerError>>,
    ) -> Result<Vec<TaskId>, BrokerError> {
        let mut answers = answers.into_iter();
        for held in answers.by_ref().take(self.workers.len()) {
            // One field holds the worker's last claim.
            self.counts.working += size(&held?).saturating_sub(1);
        }
        let ranked = answers.next().map_or(Ok(Vec::new()), |found| texts("ZRANGE", found?))?;
        Ok(ranked.iter().filter_map(|id| id_of_entry(queue, id)).collect())
    }
}

/// Keeps a problem that is that of a queue, and returns one that is of all.
fn of_one_queue<T>(read: Result<T, BrokerError>) -> Result<Result<T, BrokerError>, BrokerError> {
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
fn first_due(first: Value) -> Result<Option<u64>, BrokerError> {
    let first = texts("ZRANGE", first)?;
    Ok(first.get(1).and_then(|score| score.parse().ok()).map(whole))
}

/// Reads an entry of the ready list, as `lua/include/ready_entry.lua` describes it.
fn id_of_entry(queue: &QueueName, entry: &str) -> Option<TaskId> {
    let is_stamped = entry.len() == ID_BYTES + STAMP_BYTES;
    let stored = if is_stamped { entry.get(STAMP_BYTES..)? } else { entry };
    TaskId::from_stored(queue.clone(), stored).ok()
}

fn created_ms(id: &TaskId) -> Option<u64> {
    id.created().and_then(|created| u64::try_from(created.timestamp_millis()).ok())
}
