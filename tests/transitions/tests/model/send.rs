//! Sends a call to the store through the broker, and reads the answer.

use std::{collections::BTreeMap, num::NonZeroU16, time::Duration};

use optimus_core::{
    Submission, TaskId, TaskRecord, TaskState, WorkerId,
    broker::{
        Applied, Batch, Broker, BrokerError, Claimed, KnownKeys, Lost, Outgoing, Purged, QueueSeen,
        Reaped, Reasked, Receipt, Renewed, Resized, Returned, StoredBy,
    },
};

use crate::{
    answer::{Answer, Found, Grant, Granted, NotAdmitted, Record, Seen, lane_words},
    bench::{Bench, START},
    call::{Call, LEDGER_IDLE_MS, SubmitCall, Wait, Wanted},
};

/// The size of a page, which is small so that a read takes several pages.
const PAGE: usize = 7;

/// Makes the call at this time. A refusal is an answer, and so is a full store; anything else is an
/// error.
pub(crate) async fn send(bench: &Bench, now: u64, call: &Call) -> Result<Answer, String> {
    match answer(bench, &bench.at(now - START), now, call).await {
        Ok(answer) => Ok(answer),
        Err(BrokerError::Refused(refusal, detail)) => Ok(Answer::Refused(refusal, detail)),
        Err(BrokerError::Full) => Ok(Answer::Full),
        Err(problem) => Err(format!("the call fails: {problem:?}")),
    }
}

async fn answer(
    bench: &Bench,
    broker: &Broker,
    now: u64,
    call: &Call,
) -> Result<Answer, BrokerError> {
    let queue = &bench.queue;
    Ok(match call {
        Call::Submit(submit_call) => submit(bench, broker, now, submit_call).await?,
        Call::Claim { worker, seq, alone: true, .. } => {
            granted(broker.claim_alone(queue, worker, *seq).await?)
        }
        Call::Claim { worker, seq, want, .. } => {
            granted(broker.claim(queue, worker, *seq, *want).await?)
        }
        Call::Complete { worker, done } => {
            Answer::Reported(broker.report(broker.complete_call(queue, worker, done)).await?)
        }
        Call::Fail { worker, failed } => {
            Answer::Reported(broker.report(broker.fail_call(queue, worker, failed)).await?)
        }
        Call::Release { worker, given } => {
            Answer::Reported(broker.report(broker.release_call(queue, worker, given)).await?)
        }
        Call::Register { worker, lease_ms } => {
            let lease = Duration::from_millis(*lease_ms);
            let registered = broker.register(queue, worker, lease, "{}").await?;
            Answer::Alive { next_expiry_ms: registered.next_expiry.map(ms) }
        }
        Call::Renew { worker, lease_ms } => {
            as_answer(broker.renew(queue, worker, Duration::from_millis(*lease_ms)).await?)
        }
        Call::Reap { worker, lease_ms, limit } => {
            let lease = Duration::from_millis(*lease_ms);
            reaped(broker.reap(queue, worker, lease, *limit).await?)
        }
        Call::Leave { worker } => Answer::Holds(broker.leave(queue, worker).await?),
        Call::Cancel { ids } => {
            Answer::Cancelled(broker.cancel_all(queue, &ids.iter().collect::<Vec<_>>()).await?)
        }
        Call::Requeue { id } => broker.requeue(id).await.map(|_| Answer::Done)?,
        Call::Pause { paused: true } => broker.pause(queue).await.map(|_| Answer::Done)?,
        Call::Pause { paused: false } => broker.resume(queue).await.map(|_| Answer::Done)?,
        Call::Resize { lane, width } => resized(broker.resize(queue, lane, *width).await?),
        Call::Delete { ids } => {
            Answer::Deleted(broker.delete_all(queue, &ids.iter().collect::<Vec<_>>()).await?)
        }
        Call::Purge { keep } => {
            purged(broker.purge(queue, *keep, Duration::from_millis(LEDGER_IDLE_MS)).await?)
        }
        Call::Retire { idle_ms } => {
            Answer::Retired(broker.retire(queue, Duration::from_millis(*idle_ms)).await?)
        }
        Call::Await(wait) => wait_for_end(broker, wait).await?,
        Call::State { id, stored_by } => {
            Answer::State(broker.state_of(id, stored_by.as_ref().map(stored)).await?)
        }
        Call::Inspect { id } => inspect(broker, id).await?,
        Call::Read => read(bench, broker).await?,
        Call::Apply { effects } => apply(bench, broker, effects).await?,
        Call::Reask => {
            let Reasked { tasks, posted, next } = broker.reask(queue).await?;
            Answer::Reasked { tasks, posted, next_ms: next.map(ms) }
        }
    })
}

async fn wait_for_end(broker: &Broker, wait: &Wait) -> Result<Answer, BrokerError> {
    let Wait { id, client, stored_by, along } = wait;
    let stored_by = stored_by.as_ref().map(stored);
    let ends = broker.wait_with_next(id, client, stored_by, along).await?;
    let end = ends.end.map(|end| (end.state, json(end.returned)));
    let succeeded = |returned| (TaskState::Success, json(returned));
    let next = ends.next.into_iter().map(|returned| returned.map(succeeded));
    Ok(Answer::Ended(end, next.collect()))
}

/// Applies effects of the queue on itself, and removes them, as a relay does.
async fn apply(bench: &Bench, broker: &Broker, effects: &[String]) -> Result<Answer, BrokerError> {
    let (source, target) = (bench.queue.clone(), bench.queue.clone());
    let outgoing = Outgoing { source, target, effects: effects.to_vec() };
    let Applied { last, posted } = broker.apply(&outgoing).await?;
    Ok(Answer::Applied { last, posted, left: broker.relayed(&outgoing, last).await? })
}

fn reaped(reaped: Reaped) -> Answer {
    let lapsed = reaped.lapsed.iter().map(|worker| WorkerId::from_stored(worker)).collect();
    let next_expiry_ms = reaped.next_expiry.map(ms);
    let row = |lost: Lost| (lost.id, (lost.worker, lost.attempt, lost.state));
    let lost = reaped.lost.into_iter().map(row).collect();
    let (tasks, more) = (reaped.tasks, reaped.more);
    Answer::Reaped { tasks, more, next_expiry_ms, lapsed, lost }
}

fn resized(Resized { before, more }: Resized) -> Answer {
    Answer::Resized { before: before.map(NonZeroU16::get), more }
}

fn purged(purged: Purged) -> Answer {
    let Purged { tasks, more, workers, above_count, above_bytes } = purged;
    Answer::Purged { tasks, more, workers, above_count, above_bytes }
}

async fn submit(
    bench: &Bench,
    broker: &Broker,
    now: u64,
    submit_call: &SubmitCall,
) -> Result<Answer, BrokerError> {
    let SubmitCall { client, number, since, keep, .. } = submit_call;
    let tasks: Vec<Submission> = submit_call.tasks.iter().map(Wanted::submission).collect();
    let here = now.checked_add_signed(submit_call.ahead_ms).expect("the clocks are close");
    let (queue, number, since, keep) = (&bench.queue, *number, *since, *keep);
    let batch = Batch { queue, client, number, since, keep, tasks: &tasks };
    let submitted = broker.here(here).submit(&batch).await?;
    let why = |receipt| match receipt {
        Receipt::Created => None,
        Receipt::Duplicate(owner) => Some(NotAdmitted::Owner(owner)),
        Receipt::WaitsForItself(path) => Some(NotAdmitted::Cycle(path)),
    };
    Ok(Answer::Receipts(submitted.receipts.into_iter().map(why).collect(), submitted.lost))
}

fn json(returned: Returned) -> Option<Vec<u8>> {
    match returned {
        Returned::Json(json) => Some(json),
        Returned::Nothing | Returned::Elsewhere => None,
    }
}

fn stored((client, number): &(String, u64)) -> StoredBy<'_> {
    StoredBy { client, number: *number }
}

fn granted(claimed: Claimed) -> Answer {
    let grant = |grant: optimus_core::broker::Grant| Grant {
        id: grant.id,
        tries: grant.tries,
        was_tried: grant.was_tried,
        start_by: grant.start_by,
        record: record(grant.record),
    };
    Answer::Granted(Granted {
        token: claimed.token,
        more: claimed.more,
        next_due_ms: claimed.next_due.map(ms),
        grants: claimed.grants.into_iter().map(grant).collect(),
    })
}

fn record(stored: Vec<u8>) -> Record {
    let record = TaskRecord::decode(stored).expect("the stored record is valid");
    Record {
        task: record.task,
        biz: record.biz_id,
        priority: record.priority,
        accepted_ms: record.accepted_ms,
        has_blob: record.has_blob,
        lane: record.lane.as_ref().map(lane_words),
    }
}

async fn inspect(broker: &Broker, id: &TaskId) -> Result<Answer, BrokerError> {
    let found = broker.inspect(id).await?;
    let record = (!found.record.is_empty()).then(|| record(found.record));
    let blob = broker.blobs(id.queue(), &[id]).await?.remove(0);
    let has_blob = record.as_ref().is_some_and(|record| record.has_blob);
    if has_blob != blob.is_some() || blob.unwrap_or_default() != found.blob {
        return Err(BrokerError::UnexpectedReply(format!(
            "the payload of {id} is not where its record says"
        )));
    }
    Ok(Answer::Found(Found {
        state: found.state,
        worker: found.worker,
        at_ms: found.at_ms,
        record,
        tries: found.tries,
        errors: found.errors,
        summary: found.summary,
        result: broker.result(id).await?,
        cancel_ms: found.cancel_ms,
    }))
}

async fn read(bench: &Bench, broker: &Broker) -> Result<Answer, BrokerError> {
    let queue = &bench.queue;
    let mut pages = BTreeMap::new();
    for state in TaskState::ALL {
        let mut page = all_of(bench, broker, state).await?;
        if matches!(state, TaskState::Blocked | TaskState::Ready | TaskState::Working) {
            page.sort();
            // A requeued task may be after its own tombstone, on another page.
            page.dedup();
        }
        pages.insert(state.as_str(), page);
    }
    let workers = broker.workers(queue).await?.into_iter();
    let workers = workers.map(|w| (w.id, (w.lease_until_ms, w.running.into_iter().collect())));
    let (counts, totals) = (broker.counts(queue).await?, broker.totals(queue).await?);
    let seen = overview(bench, broker).await?;
    assert_eq!((&seen.counts, &seen.totals), (&counts, &totals), "what the overview shows");
    let ready: Vec<_> = pages[TaskState::Ready.as_str()].iter().map(TaskId::created).collect();
    if ready.iter().all(Option::is_some) {
        assert_eq!(seen.first_ready_ms.is_some(), !ready.is_empty(), "a first task is ready");
    }
    if let Some(first) = seen.first_ready_ms {
        let ready = since_ready(bench, broker).await?;
        assert!(ready.contains(&first), "it is the time of a ready task");
    }
    Ok(Answer::Seen(Seen { counts, totals, pages, workers: workers.collect() }))
}

/// Returns since when each ready task is ready.
async fn since_ready(bench: &Bench, broker: &Broker) -> Result<Vec<u64>, BrokerError> {
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let page = broker.list(&bench.queue, TaskState::Ready, PAGE, &after).await?;
        all.extend(page.rows.iter().map(|row| row.at_ms.unwrap_or_else(|| row.id.made_ms())));
        if page.next.is_empty() {
            return Ok(all);
        }
        after = page.next;
    }
}

/// Reads what operators watch, without and with what is known of the read before.
async fn overview(bench: &Bench, broker: &Broker) -> Result<QueueSeen, BrokerError> {
    let queues = std::slice::from_ref(&bench.queue);
    let seen = broker.overview(queues, &mut KnownKeys::default()).await?.remove(0)?;
    let mut known = bench.take_known();
    let again = broker.overview(queues, &mut known).await?.remove(0)?;
    bench.keep_known(known);
    let shown = |seen: &QueueSeen| {
        let QueueSeen { counts, totals, first_ready_ms, next_schedule_ms, due_ms, .. } = seen;
        format!("{counts:?} {totals:?} {first_ready_ms:?} {next_schedule_ms:?} {due_ms:?}")
    };
    assert_eq!(shown(&again), shown(&seen), "what is known of the read before");
    Ok(seen)
}

/// Reads the ids in a state, page by page.
async fn all_of(
    bench: &Bench,
    broker: &Broker,
    state: TaskState,
) -> Result<Vec<TaskId>, BrokerError> {
    let (mut ids, mut cursor) = (Vec::new(), String::new());
    loop {
        let listed = broker.list(&bench.queue, state, PAGE, &cursor).await?;
        ids.extend(listed.rows.into_iter().map(|row| row.id));
        cursor = listed.next;
        if cursor.is_empty() {
            return Ok(ids);
        }
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).expect("the time is short")
}

fn as_answer(renewed: Renewed) -> Answer {
    let (next_expiry_ms, workers) = (renewed.next_expiry.map(ms), renewed.workers);
    let held = renewed.held.into_iter().collect();
    let stop = renewed.stopping.into_iter().collect();
    Answer::Renewed { next_expiry_ms, workers, lease_ms: ms(renewed.lease), held, stop }
}
