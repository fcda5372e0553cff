//! Buffers with reports that Redis refuses, all or some of them.

use std::time::Duration;

use optimus_core::{
    Lease, QueueName, Reason, TaskId, Token, WorkerId,
    broker::{FailureOutcome, Give, Release},
};

use super::*;
use crate::decide_outcome;

fn lease() -> Lease {
    let id = TaskId::new(QueueName::new("q").unwrap());
    Lease { id, worker: WorkerId::generate("test", 1), token: Token { seq: 1, fence: 1 } }
}

fn leases(count: usize) -> Vec<Lease> {
    let first = lease();
    let mut all: Vec<Lease> =
        (0..count).map(|_| Lease { id: lease().id, ..first.clone() }).collect();
    all[0] = first;
    all
}

fn failure(lease: &Lease) -> Report {
    decide_outcome::mark_dead(lease.clone(), (None, 7), Reason::Failed, "its own message")
}

/// Sends all that may be sent. Redis refuses the report of one lease. Returns the sizes of the
/// batches, and the reports that were found to be the cause.
fn send(
    report_buffer: &mut ReportBuffer,
    now: Instant,
    refused: &Lease,
) -> (Vec<usize>, Vec<ReportBatch>) {
    let (mut sent, mut causes, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(report_batch) = report_buffer.take(now) {
        sizes.push(report_batch.len());
        sent.push(report_batch);
    }
    for report_batch in sent {
        if report_batch.leases().any(|lease| lease.id == refused.id) {
            if let Refused::Unreportable(report_batch) = report_buffer.refuse(report_batch, now) {
                causes.push(report_batch);
            }
        } else {
            report_buffer.pass(report_batch.len());
        }
    }
    (sizes, causes)
}

#[test]
fn of_a_refused_batch_only_the_cause_stays_and_is_found_once_others_pass() {
    let (mut report_buffer, all, now) = (ReportBuffer::default(), leases(10), Instant::now());
    for lease in &all {
        report_buffer.push(failure(lease));
    }
    assert_eq!(send(&mut report_buffer, now, &all[3]).0, [10]);
    assert_eq!(send(&mut report_buffer, now, &all[3]).0, [1; 10]);
    assert_eq!(report_buffer.held, 1);
    let mut later = now;
    for _ in 0..REFUSALS_MAX {
        later += Duration::from_secs(5);
        report_buffer.push(failure(&lease()));
        let (_, mut causes) = send(&mut report_buffer, later, &all[3]);
        if let Some(found) = causes.pop() {
            assert_eq!(found.leases().next().unwrap().id, all[3].id);
            assert_eq!(report_buffer.held, 0);
            let dead = found.into_dead("WRONGTYPE").unwrap();
            assert_eq!((dead.kind, dead.len()), (crate::report_batch::Kind::Fail, 1));
            assert!(dead.into_dead("again").is_err(), "there is no other report");
            return;
        }
    }
    panic!("the report is still sent");
}

#[test]
fn a_buffer_whose_reports_are_all_refused_loses_none_and_sends_them_one_by_one() {
    let (mut report_buffer, all, now) = (ReportBuffer::default(), leases(300), Instant::now());
    for lease in &all {
        report_buffer.push(failure(lease));
    }
    let mut at = now;
    for turn in 0..50 {
        while let Some(report_batch) = report_buffer.take(at) {
            assert!(turn < 2 || report_batch.len() == 1);
            assert!(
                !matches!(report_buffer.refuse(report_batch, at), Refused::Unreportable(_)),
                "no report has passed"
            );
        }
        at = report_buffer.ready_at().unwrap().max(at);
    }
    assert_eq!(report_buffer.held, 300);
    assert!(at > now + Duration::from_secs(60), "the buffer waits longer each time");
    let mut calls = 0;
    while let Some(report_batch) = report_buffer.take(at) {
        calls += 1;
        report_buffer.pass(report_batch.len());
    }
    assert_eq!((report_buffer.held, report_buffer.ready_at(), calls), (0, None, 300));
}

#[test]
fn a_report_that_is_refused_alone_does_not_delay_later_ones() {
    let (mut report_buffer, all, now) = (ReportBuffer::default(), leases(1), Instant::now());
    report_buffer.push(failure(&all[0]));
    assert_eq!(send(&mut report_buffer, now, &all[0]).0, [1]);
    report_buffer.push(failure(&lease()));
    let later = report_buffer.ready_at().unwrap();
    assert!(later <= now + BACKOFF_MAX);
    assert_eq!(send(&mut report_buffer, later, &all[0]).0, [1]);
    assert_eq!(report_buffer.held, 1, "the other report has passed");
}

#[test]
fn reports_without_an_answer_are_sent_again_and_a_release_never_marks_its_task_dead() {
    let (mut report_buffer, now) = (ReportBuffer::default(), Instant::now());
    report_buffer.push(Report::Release(Release { lease: lease(), give: Give::Head }));
    let report_batch = report_buffer.take(now).unwrap();
    assert!(report_buffer.take(now).is_none());
    report_buffer.give_back(report_batch);
    let report_batch = report_buffer.take(Instant::now()).unwrap();
    report_buffer.park(report_batch.into_dead("why").unwrap_err(), now);
    assert_eq!(report_buffer.ready_at(), Some(now + PARKED));
    assert!(matches!(failure(&lease()), Report::Fail(f) if f.outcome == FailureOutcome::Dead));
}
