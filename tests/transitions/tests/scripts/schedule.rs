//! `schedule` and `reschedule`: what is stored, and when it is due after a change.

use optimus_core::{
    CheckedSchedule, Schedule, StoredAs,
    broker::{BrokerError, NewSchedule, Refusal, Reschedule},
    store_schedule,
};

use crate::{
    acts::{ms, refusal},
    bench::{Bench, START},
    jobs::{job, job_of},
    world_schedules::found,
};

const MINUTE: u64 = 60_000;

fn cron(expression: &str) -> Schedule {
    Schedule::cron("report", expression).call(job())
}

fn checked(schedule: Schedule) -> CheckedSchedule {
    schedule.check().expect("the schedule of a test is valid")
}

async fn store(bench: &Bench, at: u64, schedule: Schedule) -> StoredAs {
    store_schedule(&bench.at(at), &checked(schedule)).await.expect("no newer program")
}

/// Returns when the schedule is due, in ms after the start.
async fn due_of(bench: &Bench) -> Option<u64> {
    Some(found(&bench.now(), bench, "report").await.due_ms? - START)
}

async fn reschedule(bench: &Bench, at: u64, act: Reschedule<'_>) -> Result<(), BrokerError> {
    let found = found(&bench.at(at), bench, "report").await;
    bench.at(at).reschedule(&bench.queue, ("report", found.edition()), act).await
}

async fn set_last(bench: &Bench, ms: u64) {
    let key = bench.key("schedule:report");
    let () = bench.raw(redis::cmd("HSET").arg(key).arg("last").arg(START + ms)).await;
}

/// 2023-11-14 22:13:20, the start of all tests.
const TO_NEXT_MINUTE: u64 = 40_000;

async fn a_new_schedule_is_due_at_its_first_instant_after_now(bench: Bench) {
    assert_eq!(store(&bench, 0, cron("* * * * *")).await, StoredAs::Stored);
    assert_eq!(due_of(&bench).await, Some(TO_NEXT_MINUTE));
    assert_eq!(bench.list("wake").await, ["s"], "the wakeup says that schedules have changed");
    bench.assert_sound().await;
}

async fn the_same_schedule_changes_nothing_and_what_is_overdue_stays_so(bench: Bench) {
    store(&bench, 0, cron("* * * * *")).await;
    let before = bench.dump().await;
    assert_eq!(store(&bench, 9 * MINUTE, cron("* * * * *")).await, StoredAs::Unchanged);
    bench.assert_unchanged(&before).await;
    let other = store(&bench, 9 * MINUTE, cron("* * * * *").call(job_of("7"))).await;
    assert_eq!((other, due_of(&bench).await), (StoredAs::Stored, Some(TO_NEXT_MINUTE)));
}

async fn a_change_of_the_instants_makes_none_of_the_past_due(bench: Bench) {
    store(&bench, 0, cron("* * * * *")).await;
    store(&bench, 9 * MINUTE, cron("30 * * * * *")).await;
    assert_eq!(due_of(&bench).await, Some(9 * MINUTE + 10_000));
    // The clock was set back after an instant.
    set_last(&bench, 60 * MINUTE).await;
    store(&bench, 10 * MINUTE, cron("20 * * * * *")).await;
    assert_eq!(due_of(&bench).await, Some(61 * MINUTE), "it is after the last instant");
    bench.assert_sound().await;
}

async fn only_a_later_or_the_same_release_replaces_a_schedule_of_code(bench: Bench) {
    let of = |release: &str, expression: &str| cron(expression).release(release);
    assert_eq!(store(&bench, 0, of("1.9.0", "* * * * *")).await, StoredAs::Stored);
    assert_eq!(store(&bench, 0, of("1.10.0", "5 * * * * *")).await, StoredAs::Stored);
    let before = bench.dump().await;
    let kept = store(&bench, 0, of("1.9.0", "* * * * *")).await;
    assert_eq!(kept, StoredAs::KeptNewer("1.10.0".to_owned()));
    assert_eq!(store(&bench, 0, of("1.10.0", "5 * * * * *")).await, StoredAs::Unchanged);
    assert_eq!(store(&bench, 0, cron("* * * * *")).await, StoredAs::IsOfCode);
    bench.assert_unchanged(&before).await;
    assert_eq!(store(&bench, 0, of("1.10.0", "6 * * * * *")).await, StoredAs::Replaced);
    assert_eq!(bench.score("schedules", "report").await, None);
    assert_eq!(bench.score("code_schedules", "report").await, Some(START + 46_000));
    bench.assert_sound().await;
}

async fn code_does_not_take_the_name_of_a_schedule_that_was_made_at_run_time(bench: Bench) {
    store(&bench, 0, cron("* * * * *")).await;
    let before = bench.dump().await;
    let taken = store(&bench, 0, cron("* * * * *").release("1.0.0")).await;
    assert_eq!(taken, StoredAs::IsMadeAtRunTime);
    bench.assert_unchanged(&before).await;
}

async fn a_paused_schedule_is_never_due_and_stays_paused_after_a_change(bench: Bench) {
    store(&bench, 0, cron("* * * * *")).await;
    reschedule(&bench, 5, Reschedule::Pause("ann")).await.unwrap();
    assert_eq!(due_of(&bench).await, None);
    store(&bench, MINUTE, cron("30 * * * * *")).await;
    let paused = found(&bench.now(), &bench, "report").await;
    assert!(paused.is_paused() && paused.due_ms.is_none());
    bench.assert_sound().await;
    let resume = Reschedule::Resume(Some(START + 2 * MINUTE));
    reschedule(&bench, MINUTE, resume).await.unwrap();
    assert_eq!(due_of(&bench).await, Some(2 * MINUTE));
    assert!(!found(&bench.now(), &bench, "report").await.is_paused());
    bench.assert_sound().await;
}

async fn a_removed_schedule_leaves_nothing(bench: Bench) {
    let before = bench.dump().await;
    store(&bench, 0, cron("* * * * *")).await;
    let due = found(&bench.at(0), &bench, "report").await.due();
    let id = optimus_core::TaskId::new(bench.queue.clone());
    bench.at(0).tick_now(&due, START, id.clone()).await.unwrap();
    bench.at(0).delete_all(&bench.queue, &[&id]).await.unwrap();
    reschedule(&bench, 5, Reschedule::Remove).await.unwrap();
    let left = bench.changes(&before).await;
    assert!(left.iter().all(|key| ["deleted", "meta", "wake"].contains(&&**key)), "{left:?}");
}

async fn what_was_read_before_a_change_is_stale(bench: Bench) {
    store(&bench, 0, cron("* * * * *")).await;
    let read = found(&bench.at(0), &bench, "report").await.edition();
    store(&bench, 0, cron("5 * * * * *")).await;
    let before = bench.dump().await;
    for act in [
        Reschedule::Pause("ann"),
        Reschedule::Resume(None),
        Reschedule::Remove,
        Reschedule::Move,
        Reschedule::Settle,
    ] {
        let answer = bench.at(0).reschedule(&bench.queue, ("report", read), act).await;
        assert_eq!(refusal(answer), Refusal::Stale, "{act:?}");
    }
    for edition in [0, read] {
        let new = NewSchedule {
            name: "report",
            edition,
            release: "",
            due_ms: None,
            timing: "{}",
            record: b"{}\n",
            blob: b"",
            number: 0,
            started_ms: 0,
        };
        assert_eq!(refusal(bench.at(0).schedule(&bench.queue, new).await), Refusal::Stale);
    }
    bench.assert_unchanged(&before).await;
}

async fn a_queue_with_a_schedule_is_not_retired(bench: Bench) {
    store(&bench, 0, cron("* * * * *")).await;
    assert!(!bench.at(9 * MINUTE).retire(&bench.queue, ms(0)).await.unwrap());
    reschedule(&bench, 9 * MINUTE, Reschedule::Remove).await.unwrap();
    assert!(bench.at(9 * MINUTE).retire(&bench.queue, ms(0)).await.unwrap());
}

async fn a_heartbeat_says_when_a_schedule_is_due(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let renew =
        async |at| bench.at(at).renew(&bench.queue, &worker, ms(15_000)).await.unwrap().next_tick;
    assert_eq!(renew(0).await, None);
    store(&bench, 0, cron("* * * * *")).await;
    assert_eq!(renew(5).await, Some(ms(TO_NEXT_MINUTE - 5)));
    assert_eq!(renew(9 * MINUTE).await, Some(ms(0)));
    reschedule(&bench, 0, Reschedule::Pause("ann")).await.unwrap();
    assert_eq!(renew(9 * MINUTE).await, None);
}

on_both![
    a_new_schedule_is_due_at_its_first_instant_after_now,
    the_same_schedule_changes_nothing_and_what_is_overdue_stays_so,
    a_change_of_the_instants_makes_none_of_the_past_due,
    only_a_later_or_the_same_release_replaces_a_schedule_of_code,
    code_does_not_take_the_name_of_a_schedule_that_was_made_at_run_time,
    a_paused_schedule_is_never_due_and_stays_paused_after_a_change,
    a_removed_schedule_leaves_nothing,
    what_was_read_before_a_change_is_stale,
    a_queue_with_a_schedule_is_not_retired,
    a_heartbeat_says_when_a_schedule_is_due,
];
