//! What is claimed while reports are held, and answers to claims that are late or out of order.

use optimus_core::{
    Task, TaskId, TaskState, Token, WorkerId,
    broker::{Give, Release},
};

use super::*;
use crate::{
    decide_outcome::Report,
    reporter::{QUEUE_HELD_MAX, take_in_reports},
    test_worker::{Nothing, idle_worker, idle_worker_of},
};

#[tokio::test]
async fn tasks_that_a_claim_grants_after_a_shutdown_began_are_given_back_and_do_not_start() {
    let (client, shared) = idle_worker("late-answer").await;
    let handle = client.submit(Nothing {}.call()).await.unwrap();
    let mut claims = Claims::new(shared.clone());
    let request = claims.requests().remove(0);
    let call = claims.send(&request);
    let answer = shared.broker.run_all(vec![call]).await.remove(0);
    assert_eq!(handle.status().await.unwrap(), TaskState::Working);
    shared.shutdown.begin();
    assert!(claims.take_in(request, answer));
    assert!(shared.attempts.is_empty() && shared.slots.busy() == 0, "the task did not start");
    let batches = shared.reporter.take(1);
    let calls = batches.iter().map(|report_batch| report_batch.call(&shared.broker)).collect();
    let mut answers = shared.broker.run_all(calls).await.into_iter();
    assert!(take_in_reports(&shared, batches, &mut answers));
    assert_eq!(handle.status().await.unwrap(), TaskState::Ready);
}

#[tokio::test]
async fn of_two_claims_without_an_answer_the_last_is_sent_again_and_both_free_their_share() {
    let (_client, shared) = idle_worker("lost-claims").await;
    let mut claims = Claims::new(shared.clone());
    claims.limits = TurnLimits::of(1);
    let mut sent = Vec::new();
    for _ in 0..2 {
        let request = claims.requests().remove(0);
        let _call = claims.send(&request);
        claims.queues[0].has_more = true;
        sent.push(request);
    }
    assert_eq!(claims.shares.asked(0), 2);
    for request in sent {
        let lost = Err(BrokerError::Unknown("the connection broke".to_owned()));
        assert!(!claims.take_in(request, lost));
    }
    let again = claims.requests().remove(0);
    assert_eq!((again.seq, claims.shares.asked(0)), (2, 1));
    let call = claims.send(&again);
    let answer = shared.broker.run_all(vec![call]).await.remove(0);
    assert!(claims.take_in(again, answer));
    assert_eq!(claims.shares.asked(0), 0, "no share is held for a claim that is gone");
}

#[tokio::test]
async fn a_lost_claim_that_ends_a_run_alone_is_sent_again_without_a_second_one() {
    let (_client, shared) = idle_worker("lost-end-alone").await;
    let mut claims = Claims::new(shared.clone());
    let id = TaskId::new(shared.queues[0].name.clone());
    let lease =
        |id| Lease { id, worker: WorkerId::generate("test", 1), token: Token { seq: 1, fence: 1 } };
    let begun = Instant::now();
    assert!(shared.quarantine.hold(lease(id.clone()), begun, 0.5).is_none());
    assert_eq!(shared.quarantine.release(begun).0.len(), 1);
    shared.quarantine.started(begun, Duration::ZERO);
    let request = claims.requests().remove(0);
    assert_eq!(request.mode, Mode::EndAlone);
    let _call = claims.send(&request);
    let lost = Err(BrokerError::Unknown("the connection broke".to_owned()));
    assert!(!claims.take_in(request, lost));
    let again = claims.requests();
    assert_eq!(again.iter().map(|request| request.seq).collect::<Vec<_>>(), [1]);
}

#[tokio::test]
async fn a_queue_that_is_paused_starts_no_turns_for_work_that_it_had() {
    let (client, shared) = idle_worker("paused-with-work").await;
    let mut claims = Claims::new(shared.clone());
    let request = claims.requests().remove(0);
    let _call = claims.send(&request);
    claims.queues[0].has_more = true;
    assert!(claims.could_fill(0));
    client.pause(&shared.queues[0].name).await.unwrap();
    let call = shared.broker.claim_call(&shared.queues[0].name, &request.worker, request.seq, 1);
    let answer = shared.broker.run_all(vec![call]).await.remove(0);
    assert!(claims.take_in(request, answer));
    assert!(!claims.could_fill(0));
}

/// Returns a report about a task of this queue.
fn report(queue: &QueueName, worker: &WorkerId) -> Report {
    let (id, token) = (TaskId::new(queue.clone()), Token { seq: 1, fence: 1 });
    let lease = Lease { id, worker: worker.clone(), token };
    Report::Release(Release { lease, give: Give::Head })
}

#[tokio::test]
async fn a_queue_with_too_many_unsent_reports_is_not_claimed_from_and_another_is() {
    let (client, shared) = idle_worker_of("unsent-reports", &["refused", "fine"]).await;
    let handle = client.submit(Nothing {}.call().queue("fine")).await.unwrap();
    let mut claims = Claims::new(shared.clone());
    let mut asked = || -> Vec<QueueName> {
        let requests = claims.requests().into_iter();
        requests.map(|request| shared.queues[request.queue].name.clone()).collect()
    };
    let [refused, fine] = ["refused", "fine"].map(|name| QueueName::new(name).unwrap());
    let worker = shared.queues[0].worker();
    for _ in 0..QUEUE_HELD_MAX {
        shared.reporter.push(report(&refused, &worker));
    }
    assert_eq!(asked(), [refused.clone(), fine.clone()]);
    shared.reporter.push(report(&refused, &worker));
    assert_eq!(asked(), [fine]);
    let request = claims.requests().remove(0);
    let call = claims.send(&request);
    let answer = shared.broker.run_all(vec![call]).await.remove(0);
    assert!(claims.take_in(request, answer));
    assert_eq!(shared.slots.busy(), 1, "the task of the other queue runs");
    assert_eq!(handle.status().await.unwrap(), TaskState::Working);
}

#[test]
fn the_answer_to_a_later_claim_does_not_count_for_an_earlier_one() {
    let request = |seq| ClaimRequest {
        queue: 0,
        worker: WorkerId::generate("test", 1),
        seq,
        want: 1,
        hints: 0,
        mode: Mode::Share,
        sent_at: Instant::now(),
    };
    let mut claims = QueueClaims { answered_seq: 4, ..QueueClaims::default() };
    assert_eq!(claims.received_seq(), 4);
    claims.unanswered = Some(request(5));
    claims.answered_seq = 6;
    assert_eq!(
        claims.received_seq(),
        4,
        "the first claim is sent again, and may still return its tasks"
    );
    claims.unanswered = None;
    assert_eq!(claims.received_seq(), 6);
}
