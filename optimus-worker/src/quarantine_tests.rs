//! How long quarantined tasks stop a worker's claims, and when one of them can be claimed again.

use optimus_core::{Token, WorkerId};

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn lease() -> Lease {
    let id = TaskId::new(QueueName::new("q").unwrap());
    Lease { id, worker: WorkerId::generate("test", 1), token: Token { seq: 1, fence: 1 } }
}

#[test]
fn a_task_is_quarantined_once_the_next_loss_would_mark_it_dead() {
    let quarantined =
        |max| (0..5).filter(|losses| needs_quarantine(*losses, max)).collect::<Vec<_>>();
    assert_eq!(quarantined(3), [2, 3, 4]);
    assert_eq!(quarantined(1), [1, 2, 3, 4]);
    assert!(quarantined(9).is_empty());
}

#[test]
fn the_time_alone_doubles_with_each_loss_above_the_limit() {
    assert_eq!(time_alone(2, 3), MINUTE);
    assert_eq!(time_alone(3, 3), 2 * MINUTE);
    assert_eq!(time_alone(6, 3), 16 * MINUTE);
    assert_eq!(time_alone(u32::MAX - 1, 3), 1_024 * MINUTE);
}

#[test]
fn a_failed_drain_ends_within_its_bound_and_takes_at_most_a_fifth_of_the_time() {
    let (quarantine, mut now) = (Quarantine::default(), Instant::now());
    for bound in [10, 20, 40, 80, 160, 300, 300].map(Duration::from_secs) {
        assert!(quarantine.hold(lease(), now, 0.5).is_none());
        assert!(quarantine.give_up(now + bound - BACK_MIN, 0.5).is_empty() && quarantine.any());
        assert_eq!(quarantine.next(), Some(now + bound));
        now += bound;
        let back = quarantine.give_up(now, 0.5);
        assert!(back.len() == 1 && back[0].1 <= BACK_MAX);
        assert!(!quarantine.any());
        let (_, wait) = quarantine.hold(lease(), now + bound * REST - BACK_MIN, 0.5).unwrap();
        assert!(wait <= BACK_MIN);
        now += bound * REST;
    }
}

#[test]
fn a_task_that_runs_alone_too_long_loses_its_mark_first_and_then_others_are_claimed() {
    let (quarantine, now) = (Quarantine::default(), Instant::now());
    quarantine.hold(lease(), now, 0.5);
    let (held, queue) = quarantine.release(now);
    assert_eq!((held.len(), queue.unwrap().as_str()), (1, "q"));
    quarantine.started(now, MINUTE);
    assert!(quarantine.any() && quarantine.out_of_time(now + MINUTE - BACK_MIN).is_none());
    assert_eq!(quarantine.next(), Some(now + MINUTE));
    assert_eq!(quarantine.out_of_time(now + MINUTE).unwrap().as_str(), "q");
    quarantine.ask_later(now + MINUTE);
    assert!(quarantine.out_of_time(now + MINUTE).is_none(), "a paused queue may refuse the claim");
    let later = now + MINUTE + AFTER_REFUSAL;
    assert!(quarantine.out_of_time(later).is_some());
    quarantine.end(later);
    assert!(!quarantine.any());
    assert!(quarantine.hold(lease(), later + 4 * MINUTE, 0.5).is_some(), "it rests");
    quarantine.end_rest();
    assert!(quarantine.hold(lease(), later, 0.5).is_none(), "an idle worker does not rest");
}

#[test]
fn tasks_run_alone_one_after_another_and_the_drain_ends_when_the_last_is_removed() {
    let (quarantine, now) = (Quarantine::default(), Instant::now());
    let (first, second) = (lease(), lease());
    quarantine.hold(first.clone(), now, 0.5);
    quarantine.hold(second.clone(), now, 0.5);
    assert!(quarantine.holds(&first.id, 1) && !quarantine.holds(&first.id, 2));
    assert_eq!(quarantine.remove(|lease| lease.id == first.id).len(), 1);
    assert!(quarantine.any());
    assert_eq!(quarantine.remove(|lease| lease.id == second.id).len(), 1);
    assert!(!quarantine.any() && quarantine.next().is_none());
}
