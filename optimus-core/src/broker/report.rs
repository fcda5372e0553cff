//! `complete`, `fail`, `release`: how attempts end.

use std::{borrow::Borrow, collections::HashMap, time::Duration};

use super::{
    Broker, BrokerError, Reply, ScriptCall, keys::Keys, member_words::member_words,
    script_call::write_number, scripts, submit::lane_words,
};
use crate::{
    gate::ShutScope,
    group::Member,
    id::{QueueName, TaskId, WorkerId},
    lane::Lane,
    lease::{Lease, Token},
    record_json::millis,
};

/// How many keys of `complete` a call without extras but lanes passes.
const PLAIN_KEYS: usize = 4;

/// An attempt that succeeded.
#[derive(Debug, Clone)]
pub struct Completion {
    /// The lease under which the attempt ran.
    pub lease: Lease,
    /// The task's name.
    pub task: &'static str,
    /// The task's biz id, if it has one.
    pub biz_id: Option<String>,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// How long the attempt ran.
    pub took: Duration,
    /// When the attempt ended, in ms by Redis' clock.
    pub ended_ms: u64,
    /// Its lane, whose permit goes to the next task.
    pub lane: Option<Lane>,
    /// How long its success is remembered for tasks that wait for it.
    pub outcome_ttl: Option<Duration>,
    /// The group that counts it, if it is a member of one.
    pub member: Option<Member>,
    /// The result of the handler and how long to keep it. Zero only hands it on to the group.
    pub result: Option<(Vec<u8>, Duration)>,
    /// Whether tries, a blob or a priority are stored apart from the record; they are removed with
    /// it.
    pub has_sides: bool,
}

impl Completion {
    /// Returns whether the attempt has no result, and the task has no biz id and no data apart from
    /// its record. Such a report costs Redis little.
    fn is_plain_but_for_a_lane(&self) -> bool {
        self.kept_result().is_none()
            && self.biz_id.is_none()
            && !self.has_sides
            && self.outcome_ttl.is_none()
    }

    /// The group that counts it.
    pub(super) fn group(&self) -> Option<&TaskId> {
        self.member.as_ref().map(|member| &member.group)
    }

    /// The result that its group gets.
    pub(super) fn handed_on(&self) -> &[u8] {
        self.result.as_ref().map_or(b"null", |(bytes, _)| bytes)
    }

    /// The result, if it is kept.
    fn kept_result(&self) -> Option<(&[u8], Duration)> {
        let (bytes, keep) = self.result.as_ref()?;
        (!keep.is_zero()).then_some((bytes, *keep))
    }

    /// Writes the attempt's entry in the list of the last successes.
    fn write_summary(&self, bytes: &mut Vec<u8>) {
        let Self { lease, task, attempt, ended_ms, took, .. } = self;
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        bytes.extend_from_slice(&lease.id.stored_bytes());
        bytes.push(b' ');
        write_number(bytes, *ended_ms);
        bytes.push(b' ');
        bytes.extend_from_slice(task.as_bytes());
        bytes.push(b' ');
        write_number(bytes, *attempt);
        bytes.push(b' ');
        write_number(bytes, took_ms);
        bytes.push(b' ');
        bytes.extend_from_slice(lease.worker.as_str().as_bytes());
    }
}

/// An attempt that did not succeed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The lease under which the attempt ran.
    pub lease: Lease,
    /// What happens to the task.
    pub outcome: FailureOutcome,
    /// The gate that pauses, because its handler asked for it.
    pub shut: Option<Shutting>,
    /// The entry for its error history, as JSON; empty for none.
    pub error: String,
}

/// A pause that a handler asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shutting {
    /// What pauses.
    pub scope: ShutScope,
    /// For how long.
    pub wait: Duration,
    /// Why, for people who read about the pause.
    pub why: String,
}

/// What happens to a task whose attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureOutcome {
    /// The task gets another attempt after this wait.
    Retry(Duration),
    /// The task gets no further attempt.
    Dead,
    /// The task ends as Dead, because no worker started it in time. It never blocks its lane.
    Expired,
    /// The task is cancelled.
    Cancelled,
    /// The task is cancelled, because no worker started it in time. Its source finds its row again.
    Unstarted,
    /// The attempt was lost, because the process of its worker was stopped for so long that its
    /// lease may have been over. The task gets another attempt at once, unless it ran alone and may
    /// have no more losses: then it is Dead.
    Lost,
}

/// A task that is released without an outcome.
#[derive(Debug, Clone)]
pub struct Release {
    /// The lease under which the task was held.
    pub lease: Lease,
    /// How the task is released.
    pub give: Give,
}

/// How a task is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Give {
    /// The task goes to the head of the ready list; it was not started.
    Head,
    /// The task goes to the head of the ready list, after it was started.
    Interrupted,
    /// The task becomes ready after this wait.
    Snooze(Duration),
    /// The task becomes ready after this wait, and counts as a misfit.
    Misfit(Duration),
}

/// The answer to a call of reports: the positions, from 0, of those that did something else.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reported {
    /// They changed nothing: their lease had passed to another worker.
    pub stale: Vec<usize>,
    /// Their tasks were asked to stop, so they are cancelled, although the report does not say so.
    pub cancelled: Vec<usize>,
    /// Their tasks are Dead, because their attempts were lost too often.
    pub dead: Vec<usize>,
    /// Effects on other queues were posted, for a relay.
    pub posted: bool,
}

impl Broker {
    /// Returns the call that ends attempts of one worker in one queue that succeeded.
    pub fn complete_call(
        &self,
        queue: &QueueName,
        worker: &WorkerId,
        done: &[impl Borrow<Completion>],
    ) -> ScriptCall {
        let keys = self.keys(queue);
        let is_plain_but_for_lanes = done.iter().all(|d| d.borrow().is_plain_but_for_a_lane());
        let is_plain = is_plain_but_for_lanes
            && done.iter().map(Borrow::borrow).all(|d| d.lane.is_none() && d.member.is_none());
        let key_count =
            if is_plain_but_for_lanes { PLAIN_KEYS } else { scripts::COMPLETE.keys.len() };
        let mut call = ScriptCall::short(&scripts::COMPLETE, key_count, &keys, worker.as_str())
            .text(&self.now);
        let is_short = is_plain || is_plain_but_for_lanes && is_one_in_a_narrow_lane(done);
        let rest = if is_short { Rest::Columns } else { Rest::ColumnsAndExtras };
        push_leases(&mut call, done.iter().map(|d| &d.borrow().lease), rest);
        for completion in done.iter().map(Borrow::borrow) {
            call.push_with(|bytes| completion.write_summary(bytes));
        }
        if !is_plain {
            push_extras(&mut call, &keys, queue, done);
        }
        call
    }

    /// Returns the call that ends attempts of one worker in one queue that did not succeed.
    pub fn fail_call(
        &self,
        queue: &QueueName,
        worker: &WorkerId,
        failed: &[impl Borrow<Failure>],
    ) -> ScriptCall {
        let mut call = self.call(&scripts::FAIL, queue, worker.as_str());
        push_leases(&mut call, failed.iter().map(|f| &f.borrow().lease), Rest::Columns);
        for failure in failed.iter().map(Borrow::borrow) {
            let outcome = match failure.outcome {
                FailureOutcome::Retry(wait) => millis(wait).to_string(),
                FailureOutcome::Dead => "dead".to_owned(),
                FailureOutcome::Expired => "expired".to_owned(),
                FailureOutcome::Cancelled => "cancelled".to_owned(),
                FailureOutcome::Unstarted => "unstarted".to_owned(),
                FailureOutcome::Lost => "lost".to_owned(),
            };
            match &failure.shut {
                None => call.push(outcome),
                Some(Shutting { scope, wait, why }) => {
                    let (scope, wait, task) = (scope.word(), millis(*wait), &failure.lease.id);
                    call.push(format_args!("{outcome};{scope}:{wait}:{task}\n{why}"));
                }
            }
        }
        for failure in failed.iter().map(Borrow::borrow) {
            call.push(&failure.error);
        }
        call
    }

    /// Returns the call that releases tasks of one worker in one queue.
    pub fn release_call(
        &self,
        queue: &QueueName,
        worker: &WorkerId,
        given: &[impl Borrow<Release>],
    ) -> ScriptCall {
        let mut call = self.call(&scripts::RELEASE, queue, worker.as_str());
        push_leases(&mut call, given.iter().map(|g| &g.borrow().lease), Rest::Columns);
        for release in given.iter().map(Borrow::borrow) {
            match release.give {
                Give::Head => call.push("head:"),
                Give::Interrupted => call.push("interrupted:"),
                Give::Snooze(wait) => call.push(format_args!("snooze:{}", millis(wait))),
                Give::Misfit(wait) => call.push(format_args!("misfit:{}", millis(wait))),
            }
        }
        call
    }

    /// Reads the answer to any report.
    pub fn read_report(reply: Reply) -> Result<Reported, BrokerError> {
        let mut reported = Reported::default();
        let mut items = reply.rest()?;
        reported.posted = items.pop_if(|word| word == "out").is_some();
        for item in items {
            let (position, positions) = match item.split_once('=') {
                Some((position, "cancelled")) => (position, &mut reported.cancelled),
                Some((position, "dead")) => (position, &mut reported.dead),
                _ => (&*item, &mut reported.stale),
            };
            let position = position.parse::<usize>().ok().and_then(|one| one.checked_sub(1));
            let wrong = || BrokerError::UnexpectedReply(format!("a report answered {item:?}"));
            positions.push(position.ok_or_else(wrong)?);
        }
        Ok(reported)
    }

    /// Sends one report.
    pub async fn report(&self, call: ScriptCall) -> Result<Reported, BrokerError> {
        Self::read_report(self.run(call).await?)
    }
}

/// Returns whether the call has one task, in a lane of one permit and in no group.
fn is_one_in_a_narrow_lane(done: &[impl Borrow<Completion>]) -> bool {
    let [one] = done else { return false };
    let Completion { lane, member, .. } = one.borrow();
    member.is_none() && lane.as_ref().is_some_and(|lane| lane.width.get() == 1)
}

/// What a call of reports has after the leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Columns,
    ColumnsAndExtras,
}

/// Pushes the part that all reports share: runs of equal tokens, then the ids. If all tokens are
/// equal, all ids differ and only columns follow, the script needs no count.
fn push_leases<'a>(
    call: &mut ScriptCall,
    leases: impl ExactSizeIterator<Item = &'a Lease> + Clone,
    rest: Rest,
) {
    let mut runs: Vec<(Token, usize)> = Vec::new();
    for lease in leases.clone() {
        match runs.last_mut() {
            Some((token, length)) if *token == lease.token => *length += 1,
            _ => runs.push((lease.token, 1)),
        }
    }
    let repeats = !all_differ(leases.clone().map(|lease| &lease.id));
    if let (Rest::Columns, [(token, _)], false) = (rest, &runs[..], repeats) {
        call.push_token(*token);
    } else {
        call.push(format_args!("{}{}", if repeats { "=" } else { "" }, runs.len()));
        for (token, length) in runs {
            call.push_token(token);
            call.push_number(length);
        }
    }
    for lease in leases {
        call.push_id(&lease.id);
    }
}

/// Returns whether no id is there twice. All are of one queue. They are almost in order, because
/// attempts begin in the order of their ids, and to sort such a list takes much less than a set.
fn all_differ<'a>(ids: impl Iterator<Item = &'a TaskId>) -> bool {
    let mut ids: Vec<u128> = ids.map(|id| id.uuid().as_u128()).collect();
    ids.sort_unstable();
    ids.is_sorted_by(|one, next| one < next)
}

/// Pushes the number of extras, the extras, and the results.
fn push_extras(
    call: &mut ScriptCall,
    keys: &Keys,
    queue: &QueueName,
    done: &[impl Borrow<Completion>],
) {
    let (mut extras, mut bodies) = (Vec::new(), Vec::new());
    // A key must not be declared twice, even if two tasks with one biz id are never live at the
    // same time.
    let (mut declared, mut sided): (_, Vec<(usize, usize)>) = (HashMap::new(), Vec::new());
    for (at, completion) in done
        .iter()
        .map(Borrow::borrow)
        .enumerate()
        .filter(|(_, done)| !done.is_plain_but_for_a_lane())
    {
        let position = at + 1;
        if completion.kept_result().is_none() && completion.biz_id.is_none() {
            match sided.last_mut() {
                Some((_, last)) if *last + 1 == position => *last = position,
                _ => sided.push((position, position)),
            }
            continue;
        }
        let (mut result, mut ttl, mut body) = (0, 0, 0);
        if let Some((bytes, keep)) = completion.kept_result() {
            result = call.extra_key(&keys.result(&completion.lease.id));
            bodies.push(bytes);
            (ttl, body) = (millis(keep).max(1), bodies.len());
        }
        let mut is_next = false;
        let biz = completion.biz_id.as_ref().map_or(0, |id| {
            let key = keys.biz(completion.task, id);
            *declared.entry(key).or_insert_with_key(|key| {
                is_next = true;
                call.extra_key(key)
            })
        });
        let has_sides = completion.has_sides;
        extras.push(if is_next && result == 0 && !has_sides {
            format!("-{position}")
        } else {
            format!("{position};{};{result};{ttl};{body};{biz}", u8::from(has_sides))
        });
    }
    extras.extend(sided.into_iter().map(|(first, last)| {
        if first == last { first.to_string() } else { format!("{first}:{last}") }
    }));
    extras.extend(done.iter().map(Borrow::borrow).zip(1..).filter_map(|(done, position)| {
        Some(format!("%{position};{}", millis(done.outcome_ttl?).max(1)))
    }));
    let members = member_words(queue, done);
    let lanes = lane_words(done.iter().map(|done| done.borrow().lane.as_ref()));
    call.push(extras.len() + members.len() + lanes.len());
    for extra in extras {
        call.push(extra);
    }
    for word in members {
        call.push_bytes(&word);
    }
    for lane in lanes {
        call.push(lane);
    }
    for body in bodies {
        call.push_bytes(body);
    }
}
