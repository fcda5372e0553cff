//! Answers to claims that are late or out of order.

use optimus_core::{Task, TaskState, WorkerId};

use super::*;
use crate::{
    reporter::take_in_reports,
    test_worker::{Nothing, idle_worker},
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
