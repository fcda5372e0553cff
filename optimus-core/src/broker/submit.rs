//! `submit`: ∅ → Ready | Delayed | Blocked.

use std::collections::HashSet;

use super::{
    Broker, BrokerError, Reply, ScriptCall, inspect::get, keys::Keys,
    prerequisite_words::prerequisite_words, reply::plain_list, scripts, traces::trace_words,
};
use crate::{
    gate::Gate,
    gather::Gather,
    id::{QueueName, TaskId},
    lane::Lane,
    options::Due,
    record_json::millis,
    submission::Submission,
};

/// The number of slots of a client's ledger, and so of calls that may be unanswered. The slot of a
/// call is its number modulo this constant. The next call of a slot is sent once the previous one
/// is answered.
pub const LEDGER_SLOTS: u64 = 16;

/// How many keys a call passes if all its tasks are plain but for their lanes and limits.
const PLAIN_KEYS: usize = 4;

/// Bytes of a stored id and a short header, to reserve room.
const RECORD_BYTES: usize = 64;

/// Tasks of one queue in one call.
#[derive(Clone, Copy)]
pub struct Batch<'a> {
    /// The queue of all these tasks.
    pub queue: &'a QueueName,
    /// The name of the client.
    pub client: &'a str,
    /// The number of the call, under which it can be sent again.
    pub number: u64,
    /// The last answered call of the same slot; 0 if there is none.
    pub since: u64,
    /// Whether to keep the ledger for another hour.
    pub keep: bool,
    /// The tasks, up to 1,000.
    pub tasks: &'a [Submission],
}

/// The answer for one task of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Receipt {
    /// The task is stored.
    Created,
    /// Nothing was added: this task has the same biz id, or it is the same task, stored before.
    Duplicate(TaskId),
    /// Nothing was added: the task would wait for itself. It waits for the first of these tasks,
    /// each of them for the next, and the last for it.
    WaitsForItself(Vec<TaskId>),
}

/// The answer for a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submitted {
    /// The receipt of each task, in order.
    pub receipts: Vec<Receipt>,
    /// Whether Redis has lost answered calls of this client, because it restarted with an older
    /// state or empty. Then the results of one-time requests are gone, too.
    pub lost: bool,
    /// Whether effects on other queues were posted, for a relay.
    pub posted: bool,
}

/// The call that stored a task. Redis can check whether it still has that call.
#[derive(Debug, Clone, Copy)]
pub struct StoredBy<'a> {
    /// The client that has the ledger.
    pub client: &'a str,
    /// The number of the call.
    pub number: u64,
}

impl Broker {
    /// Stores the tasks of a batch. A repetition under the same number returns the same answer and
    /// changes nothing.
    pub async fn submit(&self, batch: &Batch<'_>) -> Result<Submitted, BrokerError> {
        let reply = self.run(self.submit_call(batch)).await?;
        Self::read_submit(batch.queue, batch.tasks.len(), reply)
    }

    /// Reads the answer to a batch of this many tasks.
    pub fn read_submit(
        queue: &QueueName,
        tasks: usize,
        reply: Reply,
    ) -> Result<Submitted, BrokerError> {
        let mut answers = reply.rest()?;
        let posted = answers.pop_if(|word| word == "out").is_some();
        let mut receipts = vec![Receipt::Created; tasks];
        let lost = answers.first().is_some_and(|word| word == "lost");
        for answer in answers.into_iter().skip(usize::from(lost)) {
            let (position, receipt) = read_refused(queue, &answer)
                .filter(|(position, _)| (1..=receipts.len()).contains(position))
                .ok_or_else(|| {
                    BrokerError::UnexpectedReply(format!("submit answered {answer:?}"))
                })?;
            receipts[position - 1] = receipt;
        }
        Ok(Submitted { receipts, lost, posted })
    }

    /// Returns the call of [`submit`](Self::submit).
    pub fn submit_call(&self, batch: &Batch<'_>) -> ScriptCall {
        self.submit_call_since(batch, None)
    }

    /// Returns the call of a batch; with a mark, the ledger must have it.
    pub(super) fn submit_call_since(&self, batch: &Batch<'_>, mark: Option<&str>) -> ScriptCall {
        let keys = self.keys(batch.queue);
        let is_next = batch.since == batch.number.saturating_sub(LEDGER_SLOTS);
        let may_exist = batch.tasks.iter().any(|task| task.may_exist);
        let has_few_keys =
            !batch.keep && !may_exist && is_next && batch.tasks.iter().all(has_no_option);
        let is_plain = has_few_keys
            && batch.tasks.iter().all(|task| task.lane.is_none() && task.limits.is_empty());
        let here_ms = self.here_ms();
        let ids_have_time = batch.tasks.iter().all(|task| task.id_has_submit_time(here_ms));
        let key_count = if has_few_keys { PLAIN_KEYS } else { scripts::SUBMIT.keys.len() };
        let mut call = ScriptCall::short(&scripts::SUBMIT, key_count, &keys, batch.client)
            .text(&self.now)
            .number(batch.number)
            .number(batch.number % LEDGER_SLOTS);
        if ids_have_time {
            call.push_number(here_ms);
        } else {
            call.push_bytes(b"");
        }
        if is_plain {
            call.push_bytes(b"");
        } else {
            call.push_number(batch.tasks.len());
        }
        let bytes: usize = batch.tasks.iter().map(Submission::bytes).sum();
        call.reserve(2 * batch.tasks.len(), bytes + batch.tasks.len() * RECORD_BYTES);
        for task in batch.tasks {
            call.push_id(&task.id);
            call.push_with(|bytes| task.encode(bytes));
        }
        if !is_plain {
            call.push(if batch.keep { batch.client } else { "" });
            match mark {
                Some(mark) => call.push(mark),
                None => call.push(batch.since),
            }
            push_options(&mut call, &keys, batch.tasks, existence_word(batch.tasks));
        }
        call
    }

    /// Keeps the ledgers of a client in these queues for another hour, as a submit with
    /// [`Batch::keep`] does, by the clock of Redis. Ledgers that were removed are not created
    /// again.
    pub async fn keep_ledgers(
        &self,
        queues: &[QueueName],
        client: &str,
    ) -> Result<(), BrokerError> {
        let time = self.read_one(get(&["TIME"])).await?;
        let time: Vec<u64> = plain_list("TIME", time)?.iter().map(|part| digits(part)).collect();
        let [seconds, micros] = time[..] else {
            return Err(BrokerError::UnexpectedReply(format!("TIME answered {time:?}")));
        };
        let now_ms = (seconds * 1000 + micros / 1000).to_string();
        let keep = |queue| {
            let ledgers = self.keys(queue).of("ledgers");
            get(&["ZADD", &ledgers, "XX", &now_ms, client])
        };
        self.send(queues.iter().map(keep).collect()).await.into_iter().try_for_each(|a| a.map(drop))
    }

    /// Lets the next purge remove the ledgers of a client in these queues. No handle may still use
    /// them, and no call may be in progress.
    pub async fn leave_ledgers(
        &self,
        queues: &[QueueName],
        client: &str,
    ) -> Result<(), BrokerError> {
        let leave = |queue| get(&["ZADD", &self.keys(queue).of("ledgers"), "XX", "0", client]);
        let commands = queues.iter().map(leave).collect();
        self.send(commands).await.into_iter().try_for_each(|answer| answer.map(drop))
    }

    /// Adds a queue to the set that inspectors read. The call is safe to repeat.
    pub async fn announce(&self, queue: &QueueName) -> Result<(), BrokerError> {
        let mut command = redis::cmd("SADD");
        command.arg(super::keys::queues(&self.namespace)).arg(queue.as_str());
        self.send(vec![command]).await.pop().expect("an answer for each call").map(drop)
    }
}

/// Reads a number; 0 if the text is not one.
fn digits(text: &[u8]) -> u64 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Reads why a task was not admitted.
fn read_refused(queue: &QueueName, answer: &str) -> Option<(usize, Receipt)> {
    let (position, why) = answer.split_once('=')?;
    let id = |stored: &str| TaskId::from_stored(queue.clone(), stored).ok();
    let receipt = match why.strip_prefix('*') {
        Some(path) => {
            let path = path.split(',').filter(|id| !id.is_empty()).map(id);
            Receipt::WaitsForItself(path.collect::<Option<_>>()?)
        }
        None => Receipt::Duplicate(id(why)?),
    };
    Some((position.parse().ok()?, receipt))
}

/// Returns whether older scripts would not count the task in its group, or not hand it a result.
fn needs_flow(task: &Submission) -> bool {
    task.member.is_some() || task.after.as_ref().is_some_and(|after| after.input.is_some())
}

/// Returns whether the task has no blob, and no options apart from a lane and limits, which have
/// words of their own. Such a task costs Redis little.
fn has_no_option(task: &Submission) -> bool {
    let has_options = task.options.priority != 0 || task.is_stamped();
    task.due == Due::Now
        && !has_options
        && task.biz_id.is_none()
        && task.blob().is_none()
        && task.after.is_none()
        && task.member.is_none()
        && task.gather.is_none()
}

/// Returns whether the task has a biz id without a window, and nothing else that [`is_plain`]
/// excludes.
fn is_unique(task: &Submission) -> bool {
    let has_options =
        task.options.priority != 0 || task.is_stamped() || task.options.biz_window.is_some();
    task.due == Due::Now && !has_options && task.biz_id.is_some() && task.blob().is_none()
}

/// Returns the lanes of tasks as words of a call: for each run of tasks with lanes of one width
/// `@<first>:<last>;<width>`, with positions from 1, and then the key of each.
pub(super) fn lane_words<'a>(lanes: impl Iterator<Item = Option<&'a Lane>>) -> Vec<String> {
    let lanes: Vec<(usize, Option<&Lane>)> = (1..).zip(lanes).collect();
    let runs = lanes
        .chunk_by(|(_, one), (_, next)| one.map(|lane| lane.width) == next.map(|lane| lane.width));
    let mut words = Vec::new();
    for run in runs {
        let (Some((first, Some(lane))), Some((last, _))) = (run.first(), run.last()) else {
            continue;
        };
        words.push(format!("@{first}:{last};{}", lane.width));
        words.extend(run.iter().filter_map(|(_, lane)| Some((*lane)?.key.clone())));
    }
    words
}

/// Returns whether ids may exist: nothing if all are new, `1` if they differ from each other, `2`
/// if several tasks of the call may have one id.
fn existence_word(tasks: &[Submission]) -> &'static str {
    if !tasks.iter().any(|task| task.may_exist) {
        return "";
    }
    let mut seen = HashSet::with_capacity(tasks.len());
    if tasks.iter().all(|task| seen.insert(&task.id)) { "1" } else { "2" }
}

/// Pushes the number of options, whether ids may exist, the options, and the blobs.
fn push_options(call: &mut ScriptCall, keys: &Keys, tasks: &[Submission], may_exist: &str) {
    let (mut options, mut blobs) = (trace_words(tasks), Vec::new());
    options.extend(prerequisite_words(tasks));
    for (at, task) in tasks.iter().enumerate().filter(|(_, task)| !has_no_option(task)) {
        let biz = task.biz_id.as_ref().map(|id| call.extra_key(&keys.biz(&task.task, id)));
        blobs.extend(task.blob());
        let blob = task.blob().map(|_| blobs.len());
        if has_no_word_of_its_own(task) {
            continue;
        }
        options.push(if is_unique(task) {
            (at + 1).to_string()
        } else {
            option_of(task, at + 1, biz, blob)
        });
    }
    if tasks.iter().any(needs_flow) {
        options.push("+".to_owned());
    }
    options.extend(gather_words(tasks));
    options.extend(gate_words(tasks));
    options.extend(lane_words(tasks.iter().map(|task| task.lane.as_ref())));
    call.push(options.len());
    call.push(may_exist);
    for option in options {
        call.push(option);
    }
    for blob in blobs {
        call.push_bytes(blob);
    }
}

/// Returns whether the task has only options that have words of their own, such as prerequisites.
/// If it waits and somebody may already wait for it, the script looks whether it waits for itself.
fn has_no_word_of_its_own(task: &Submission) -> bool {
    let has_options = task.options.priority != 0 || task.is_stamped();
    let waits_for_itself = task.may_exist && task.after.is_some();
    let is_new = task.biz_id.is_none() && !waits_for_itself;
    task.due == Due::Now && !has_options && is_new && task.blob().is_none()
}

/// Returns the tasks that run together: for each run of tasks with one key
/// `*<first>:<last>;<wait ms>:<max>:<task>:<key>`, with positions from 1.
fn gather_words(tasks: &[Submission]) -> Vec<String> {
    let key = |task: &Submission| {
        let Gather { by, wait, max } = task.gather.as_ref()?;
        Some(format!("{}:{max}:{}:{by}", millis(*wait), task.task))
    };
    let keys: Vec<_> = (1..).zip(tasks.iter().map(key)).collect();
    let runs = keys.chunk_by(|(_, one), (_, next)| one == next);
    let word = |run: &[(usize, Option<String>)]| {
        let (Some((first, Some(key))), Some((last, _))) = (run.first(), run.last()) else {
            return None;
        };
        Some(format!("*{first}:{last};{key}"))
    };
    runs.filter_map(word).collect()
}

/// Returns the gates of tasks with limits: for each run of tasks with the same gates
/// `%<first>:<last>;<gates>`, with positions from 1.
fn gate_words(tasks: &[Submission]) -> Vec<String> {
    let classes = tasks.iter().map(|task| (!task.limits.is_empty()).then(|| class_of(task)));
    let classes: Vec<_> = (1..).zip(classes).collect();
    let runs = classes.chunk_by(|(_, one), (_, next)| one == next);
    let word = |run: &[(usize, Option<String>)]| {
        let (Some((first, Some(class))), Some((last, _))) = (run.first(), run.last()) else {
            return None;
        };
        Some(format!("%{first}:{last};{class}"))
    };
    runs.filter_map(word).collect()
}

/// The gates of a task, as `lua/include/gate_class.lua` finds them in its header.
fn class_of(task: &Submission) -> String {
    let mut names = vec![Gate::Task(task.task.to_string()).stored()];
    names.extend(task.lane.as_ref().map(|lane| Gate::Lane(lane.key.clone()).stored()));
    for limit in &task.limits {
        let name = limit.gate.stored();
        if !names[..].contains(&name) {
            names.push(name);
        }
    }
    names.join("\n")
}

fn option_of(
    task: &Submission,
    position: usize,
    biz: Option<usize>,
    blob: Option<usize>,
) -> String {
    let due = match task.due {
        Due::Now => String::new(),
        Due::In(wait) => format!("in{}", millis(wait)),
        Due::At(at) => format!("at{}", at.timestamp_millis().max(0)),
    };
    let priority = task.options.priority;
    let priority = if priority == 0 { String::new() } else { priority.to_string() };
    let window = task.options.biz_window.map_or(0, millis);
    let stamped = u8::from(task.is_stamped());
    let (biz, blob) = (biz.unwrap_or(0), blob.unwrap_or(0));
    format!("{position};{due};{priority};{biz};{window};{blob};{stamped}")
}
