//! Lanes that Redis refuses, wholly or in part.

use std::time::Duration;

use optimus_core::{
    Lease, QueueName, Reason, TaskId, Token, WorkerId,
    broker::{Give, Release, Verdict},
};

use super::*;
use crate::judge;

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
    judge::bury(lease.clone(), 7, Reason::Failed, "its own message")
}

/// Sends all that may be sent; Redis refuses the one lease. What it was asked for.
fn send(lane: &mut Lane, now: Instant, refused: &Lease) -> (Vec<usize>, Vec<Group>) {
    let (mut sent, mut culprits, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(group) = lane.take(now) {
        sizes.push(group.len());
        sent.push(group);
    }
    for group in sent {
        if group.leases().any(|lease| lease.id == refused.id) {
            if let Refused::Culprit(group) = lane.refuse(group, now) {
                culprits.push(group);
            }
        } else {
            lane.pass(group.len());
        }
    }
    (sizes, culprits)
}

#[test]
fn of_a_refused_group_only_the_culprit_remains_and_is_told_apart_by_what_passes() {
    let (mut lane, all, now) = (Lane::default(), leases(10), Instant::now());
    for lease in &all {
        lane.push(failure(lease));
    }
    assert_eq!(send(&mut lane, now, &all[3]).0, [10]);
    assert_eq!(send(&mut lane, now, &all[3]).0, [1; 10]);
    assert_eq!(lane.held, 1);
    let mut later = now;
    for _ in 0..STRIKES_MAX {
        later += Duration::from_secs(5);
        lane.push(failure(&lease()));
        let (_, mut culprits) = send(&mut lane, later, &all[3]);
        if let Some(culprit) = culprits.pop() {
            assert_eq!(culprit.leases().next().unwrap().id, all[3].id);
            assert_eq!(lane.held, 0);
            let verdict = culprit.into_verdict("WRONGTYPE").unwrap();
            assert_eq!((verdict.kind, verdict.len()), (crate::group::Kind::Fail, 1));
            assert!(verdict.into_verdict("again").is_err(), "nothing else can be said");
            return;
        }
    }
    panic!("it is still sent");
}

#[test]
fn a_lane_that_is_refused_wholly_loses_nothing_and_is_sent_one_at_a_time() {
    let (mut lane, all, now) = (Lane::default(), leases(300), Instant::now());
    for lease in &all {
        lane.push(failure(lease));
    }
    let mut at = now;
    for turn in 0..50 {
        while let Some(group) = lane.take(at) {
            assert!(turn < 2 || group.len() == 1);
            assert!(!matches!(lane.refuse(group, at), Refused::Culprit(_)), "nothing has passed");
        }
        at = lane.ready_at().unwrap().max(at);
    }
    assert_eq!(lane.held, 300);
    assert!(at > now + Duration::from_secs(60), "it waits longer each time");
    let mut calls = 0;
    while let Some(group) = lane.take(at) {
        calls += 1;
        lane.pass(group.len());
    }
    assert_eq!((lane.held, lane.ready_at(), calls), (0, None, 300));
}

#[test]
fn what_is_refused_alone_does_not_hold_up_what_comes_later() {
    let (mut lane, all, now) = (Lane::default(), leases(1), Instant::now());
    lane.push(failure(&all[0]));
    assert_eq!(send(&mut lane, now, &all[0]).0, [1]);
    lane.push(failure(&lease()));
    let later = lane.ready_at().unwrap();
    assert!(later <= now + BACKOFF_MAX);
    assert_eq!(send(&mut lane, later, &all[0]).0, [1]);
    assert_eq!(lane.held, 1, "the other has passed");
}

#[test]
fn what_no_answer_came_for_is_sent_again_and_a_release_is_never_made_a_verdict() {
    let (mut lane, now) = (Lane::default(), Instant::now());
    lane.push(Report::Release(Release { lease: lease(), give: Give::Head }));
    let group = lane.take(now).unwrap();
    assert!(lane.take(now).is_none());
    lane.give_back(group);
    let group = lane.take(Instant::now()).unwrap();
    lane.park(group.into_verdict("why").unwrap_err(), now);
    assert_eq!(lane.ready_at(), Some(now + PARKED));
    assert!(matches!(failure(&lease()), Report::Fail(f) if f.verdict == Verdict::Dead));
}
