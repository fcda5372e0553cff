//! Turns a claimed record into an attempt that can start: [`Prepared`]. If the task can't start,
//! reports the reason.

use std::{mem, sync::Arc, time::Duration};

use optimus_core::{
    AttemptFacts, Backoff, Context, Lease, LogSeat, Reason, RecordError, SOURCE_HEADER,
    TaskDefinition, TaskRecord,
    broker::{FailureOutcome, Give, Release, StartBy},
    log_event, source_that_counts, takes_list,
};
use tokio::time::Instant;

use crate::{
    attempts::Attempt,
    collect,
    decide_outcome::{self, Facts, Report},
    executor,
    marked_dead::Marked,
    misfit, outcome_log,
    quarantine::{needs_quarantine, time_alone},
    run_part::Part,
    shared::Shared,
    slots::Slot,
};

const QUARANTINED: &str = "the workers that ran this task were lost; the task runs alone once the \
                           other tasks of this worker have ended";

/// The parts of an attempt that is ready to start.
pub(crate) struct Prepared {
    pub(crate) attempt: Arc<Attempt>,
    pub(crate) definition: TaskDefinition,
    pub(crate) payload: Payload,
    pub(crate) slot: Slot,
}

/// The arguments, or the place from which they are fetched.
pub(crate) enum Payload {
    Here(Vec<u8>),
    InBlobs,
    /// Either of these, with the handle of a group instead of the list of its results.
    OfGroup(Box<Self>),
}

impl Payload {
    /// Takes the payload of the record, and leaves an empty one.
    fn of(record: &mut TaskRecord) -> Self {
        let here = Self::Here(mem::take(&mut record.payload));
        let payload = if record.has_blob { Self::InBlobs } else { here };
        match record.after.as_ref().and_then(|after| after.input.as_ref()) {
            Some(input) if takes_list(&input.suffix) => Self::OfGroup(Box::new(payload)),
            _ => payload,
        }
    }
}

/// A claimed task, as Redis returned it.
pub(crate) struct Claim {
    pub(crate) lease: Lease,
    pub(crate) record: Vec<u8>,
    /// The number of failures, losses and misfits so far.
    pub(crate) tries: (u32, u32, u32),
    /// Whether Redis keeps tries or an error history of the task.
    pub(crate) was_tried: bool,
    pub(crate) start_by: StartBy,
    /// Redis' clock at the time of the claim, in ms.
    pub(crate) now_ms: u64,
    /// Whether the worker holds no other task.
    pub(crate) alone: bool,
}

/// The reason why a claimed task does not start.
enum Obstacle {
    /// This worker can't run the task.
    Misfit(Box<Report>),
    /// No worker can run the task, or its time has passed. The values are the attempt that the task
    /// does not get and, if it can be read, the task.
    MarkedDead { report: Box<Report>, attempt: u32, task: Option<String> },
    /// The task may have killed a worker.
    Quarantined(QuarantinedTask),
}

/// A task that may have killed a worker.
struct QuarantinedTask {
    lease: Lease,
    task: &'static str,
    attempt: u32,
    losses: u32,
}

/// Finds everything that the task needs. If this worker can't run the task, the task is reported.
/// If the task must run alone, it is held. In both cases its slot is free again.
pub(crate) fn prepare(shared: &Shared, claim: Claim, slot: Slot) -> Option<Prepared> {
    match find(shared, claim, None) {
        Ok((attempt, definition, payload)) => Some(Prepared { attempt, definition, payload, slot }),
        Err(obstacle) => {
            drop(slot);
            report(shared, obstacle);
            None
        }
    }
}

/// Finds what a call needs that follows another one in its run, and reports it in the same way.
pub(crate) fn prepare_call(
    shared: &Shared,
    leader: &Arc<Attempt>,
    claim: Claim,
) -> Option<(Arc<Attempt>, Payload)> {
    match find(shared, claim, Some(leader)) {
        Ok((attempt, _, payload)) => Some((attempt, payload)),
        Err(obstacle) => {
            report(shared, obstacle);
            None
        }
    }
}

fn report(shared: &Shared, obstacle: Obstacle) {
    match obstacle {
        Obstacle::Misfit(report) => shared.reporter.push(*report),
        Obstacle::MarkedDead { report, attempt, task } => {
            shared.marked_dead.insert(report.lease(), Marked { task, attempt });
            shared.reporter.push(*report);
        }
        Obstacle::Quarantined(quarantined) => hold(shared, quarantined),
    }
}

/// Holds a task until it can run alone, or gives it back for a time.
fn hold(shared: &Shared, quarantined: QuarantinedTask) {
    let QuarantinedTask { lease, task, attempt, losses } = quarantined;
    let id = lease.id.clone();
    let later = shared.quarantine.hold(lease, Instant::now(), fastrand::f64());
    if let Some((lease, wait)) = later {
        executor::give_back_for(shared, lease, wait);
        return;
    }
    if !shared.quarantine.is_new(&id) {
        return;
    }
    let (queue, text) = (id.queue().clone(), QUARANTINED);
    log_event!(shared.log, WARN, task, %id, %queue, attempt, losses, "{text}");
}

type Found = Result<(Arc<Attempt>, TaskDefinition, Payload), Obstacle>;

fn find(shared: &Shared, claim: Claim, leader: Option<&Arc<Attempt>>) -> Found {
    let Claim { lease, record, tries, was_tried, start_by, now_ms, alone } = claim;
    let (failures, losses, misfits) = tries;
    let attempt = 1 + failures + losses;
    let mark_dead = |reason, why: &str, task: Option<&str>| {
        let report = decide_outcome::mark_dead(lease.clone(), (task, attempt), reason, why);
        Obstacle::MarkedDead { report: Box::new(report), attempt, task: task.map(str::to_owned) }
    };
    let misfit = |why: &str, task: Option<&str>| {
        if misfit::is_over(misfits, shared.config.misfit_grace) {
            return mark_dead(Reason::Unknown, why, task);
        }
        give_to_another(shared, &lease, misfits, why)
    };
    let mut record = TaskRecord::decode(record).map_err(|problem| match problem {
        RecordError::Newer(_) => misfit(&problem.to_string(), None),
        _ => mark_dead(Reason::Undecodable, &problem.to_string(), None),
    })?;
    let known = known(shared, &record).map_err(|why| misfit(&why, Some(&record.task)));
    let (definition, formula) = known?;
    if let Some(expires_in) = expired(&record, &lease, start_by, now_ms) {
        let why = format!("not started within {expires_in:?}");
        let obstacle = mark_dead(Reason::Expired, &why, Some(&record.task));
        return Err(found_again(shared, obstacle, &record));
    }
    if !alone && needs_quarantine(losses, record.max_losses) {
        return Err(quarantined(lease, definition.name(), attempt, losses));
    }
    if alone {
        shared.quarantine.started(Instant::now(), time_alone(losses, record.max_losses));
    }
    let payload = Payload::of(&mut record);
    let began = Instant::now();
    let begins = AttemptFacts {
        id: lease.id.clone(),
        task: definition.name(),
        number: attempt,
        failures,
        max_retry: record.max_retry,
        fence: lease.token.fence,
        deadline: (began + record.timeout).into_std(),
        age: age(record.accepted_ms, &lease, now_ms),
        lane: record.lane.as_ref().map(|lane| lane.key.clone()),
        member: record.member.clone(),
        tick: record.tick.take(),
        headers: record.headers,
    };
    let ctx = context_of(shared, begins, (began, now_ms));
    let facts = Facts {
        task: definition.name(),
        attempt,
        failures,
        max_retry: record.max_retry,
        backoff: record.backoff.unwrap_or(formula),
        result_ttl: record.result_ttl,
        result_limit: shared.config.result_limit,
        // Who could not run it has made no attempt. A requeue or a snooze before that is not known.
        wait: ctx.age().filter(|_| !was_tried || (misfits > 0 && attempt == 1)),
        biz_id: record.biz_id,
        lane: record.lane,
        outcome_ttl: record.outcome_ttl,
        member: record.member,
        on_lost: record.on_lost,
        has_sides: was_tried || record.has_blob || record.priority != 0,
    };
    let mut attempt = Attempt::new(lease, now_ms, facts, ctx);
    let most = record.gather.map(|gather| collect::most(shared, definition.name(), gather.max));
    attempt.part = part_of(leader, most.map(|most| if alone { 1 } else { most }));
    Ok((Arc::new(attempt), definition, payload))
}

/// Returns the part of a task that follows this leader, or that is gathered with up to `most`.
fn part_of(leader: Option<&Arc<Attempt>>, most: Option<usize>) -> Part {
    match (leader, most) {
        (Some(leader), _) => Part::after(leader),
        (None, Some(most)) => Part::leads(most),
        (None, None) => Part::Alone,
    }
}

/// Returns the definition of a task and its back-off, or what this worker does not know.
fn known(shared: &Shared, record: &TaskRecord) -> Result<(TaskDefinition, Backoff), String> {
    if let Some(name) = source_of(record)
        && shared.sources.get(name).is_none()
    {
        return Err(format!("this worker knows no source {name:?}, which checks its rows"));
    }
    let task = shared.registry.get(&record.task);
    task.ok_or_else(|| format!("this worker knows no task {:?}", record.task))
}

/// Returns the source whose functions run around the task, if there is one.
fn source_of(record: &TaskRecord) -> Option<&str> {
    record.headers.get(SOURCE_HEADER.1)?;
    record.headers.get(SOURCE_HEADER.0).map(String::as_str)
}

fn context_of(shared: &Shared, begins: AttemptFacts, at: (Instant, u64)) -> Context {
    let seat = LogSeat { desk: shared.log_desk.clone(), began: at.0, began_ms: at.1 };
    let worker = (shared.threads.clone(), shared.client.clone(), seat);
    Context::build(begins, shared.data.clone(), Some(worker))
}

/// Gives a task back that another worker may be able to run.
fn give_to_another(shared: &Shared, lease: &Lease, misfits: u32, why: &str) -> Obstacle {
    let next_in = misfit::wait(misfits + 1);
    if let Some((times, text)) = shared.tally.misfits.note(lease.id.queue(), why) {
        let (id, queue) = (lease.id.clone(), lease.id.queue().clone());
        let (next_in_ms, grace) = (outcome_log::millis(next_in), shared.config.misfit_grace);
        log_event!(
            shared.log,
            WARN,
            %id,
            %queue,
            times,
            error = text,
            next_in_ms,
            "this worker can't run tasks and gives them back; each waits for a worker that can, \
             and dies if none has come after {grace:?}. This is said once a minute"
        );
    }
    let release = Release { lease: lease.clone(), give: Give::Misfit(next_in) };
    Obstacle::Misfit(Box::new(Report::Release(release)))
}

/// Cancels the task of a row that was not started in time, instead of marking it Dead, if its
/// source tries rows again: a dead task would keep the biz id of its row.
fn found_again(shared: &Shared, mut obstacle: Obstacle, record: &TaskRecord) -> Obstacle {
    if let Obstacle::MarkedDead { report, .. } = &mut obstacle
        && let Report::Fail(failure) = &mut **report
        && let Some(source) = source_that_counts(record)
    {
        failure.outcome = FailureOutcome::Unstarted;
        let (id, source) = (failure.lease.id.clone(), source.to_owned());
        let text = "a task of a source was not started in time and is cancelled; a later page \
                    finds its row again";
        log_event!(shared.log, WARN, source, %id, "{text}");
    }
    obstacle
}

fn quarantined(lease: Lease, task: &'static str, attempt: u32, losses: u32) -> Obstacle {
    Obstacle::Quarantined(QuarantinedTask { lease, task, attempt, losses })
}

/// Returns how long the task was allowed to wait for its first start, if it waited longer.
fn expired(record: &TaskRecord, lease: &Lease, start_by: StartBy, now_ms: u64) -> Option<Duration> {
    let expires_in = record.expires_in?;
    let start_by_ms = match start_by {
        StartBy::Started => return None,
        StartBy::At(ms) => ms,
        StartBy::AsSubmitted => {
            let accepted_ms = submitted_ms(record.accepted_ms, lease)?;
            accepted_ms.saturating_add(u64::try_from(expires_in.as_millis()).unwrap_or(u64::MAX))
        }
    };
    (now_ms > start_by_ms).then_some(expires_in)
}

/// Returns when the task was submitted: by Redis' clock if that time is stored, otherwise by the
/// client's clock.
fn submitted_ms(accepted_ms: Option<u64>, lease: &Lease) -> Option<u64> {
    accepted_ms.or_else(|| Some(lease.id.made_ms()).filter(|ms| *ms > 0))
}

/// Returns the time from the submit to the claim, including the delay of the task.
fn age(accepted_ms: Option<u64>, lease: &Lease, now_ms: u64) -> Option<Duration> {
    let submitted_ms = submitted_ms(accepted_ms, lease)?;
    Some(Duration::from_millis(now_ms.saturating_sub(submitted_ms)))
}
