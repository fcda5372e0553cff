//! `tick`: one caller submits the task of an instant, and the schedule goes on to the next.

use futures_util::future::join_all;
use optimus_core::{
    Fire, Overlap, Schedule, TaskId, TaskRecord, TaskState, TickOutcome,
    broker::{BrokerError, DueSchedule, FailureOutcome, Refusal, Step, StepKind, Ticked},
};

use crate::{
    acts::{Grants, done, failed, ms, refusal},
    bench::{Bench, START},
    jobs::{job, job_of},
    lanes::lane,
    limits::at_most,
    world_schedules::{found, put},
};

const MINUTE: u64 = 60_000;

/// Stores a schedule of each minute, first due after a minute.
async fn stored(bench: &Bench, change: impl FnOnce(Schedule) -> Schedule) -> DueSchedule {
    let schedule = Schedule::every("minutely", ms(MINUTE)).overlap(Overlap::All).call(job());
    put(&bench.at(0), change(schedule).check().expect("the schedule is valid")).await;
    found(&bench.at(0), bench, "minutely").await.due()
}

/// The step from the instant after so many minutes to the next.
fn step(minute: u64) -> Step {
    let due_ms = START + minute * MINUTE;
    let fire = Fire { nominal_ms: due_ms, missed: 0 };
    Step { due_ms, next_ms: Some(due_ms + MINUTE), fire, kind: StepKind::Submit }
}

async fn tick(
    bench: &Bench,
    at: u64,
    schedule: &DueSchedule,
    minute: u64,
) -> Result<Ticked, BrokerError> {
    bench.at(at).tick(&bench.queue, schedule, step(minute)).await
}

async fn stored_id(bench: &Bench, schedule: &DueSchedule, minute: u64) -> TaskId {
    match tick(bench, minute * MINUTE, schedule, minute).await.expect("the tick is in time") {
        Ticked::Stored(id) => id,
        other => panic!("{other:?}"),
    }
}

async fn due_of(bench: &Bench) -> Option<u64> {
    bench.score("schedules", "minutely").await.map(|at| (at - START) / MINUTE)
}

async fn outcomes(bench: &Bench) -> Vec<TickOutcome> {
    let ticks = bench.now().schedule_ticks(&bench.queue, "minutely").await.unwrap();
    ticks.into_iter().map(|tick| tick.outcome).collect()
}

async fn a_tick_submits_the_task_of_its_instant_and_goes_on(bench: Bench) {
    let schedule = stored(&bench, |schedule| schedule).await;
    let worker = bench.worker_for(0, "w", ms(60 * MINUTE)).await;
    let id = stored_id(&bench, &schedule, 1).await;
    assert_eq!((bench.state(&id).await, due_of(&bench).await), (TaskState::Delayed, Some(2)));
    assert_eq!(id.made_ms(), START + MINUTE);
    let claimed = bench.claim(MINUTE, &worker, 1, 9).await;
    assert_eq!(claimed.ids(), std::slice::from_ref(&id), "it is due at once");
    let record = TaskRecord::decode(claimed.grants[0].record.clone()).unwrap();
    let instant = record.tick.expect("the record has its instant");
    assert_eq!(instant.nominal().timestamp_millis().unsigned_abs(), START + MINUTE);
    assert_eq!((instant.schedule(), instant.missed()), (Some("minutely"), 0));
    assert_eq!(record.payload, b"{}");
    assert_eq!(outcomes(&bench).await, [TickOutcome::Submitted(id)]);
    assert!(bench.complete(MINUTE, &[done(&claimed.leases(&worker)[0])]).await.is_empty());
    bench.assert_sound().await;
}

async fn a_tick_wakes_an_idle_worker(bench: Bench) {
    let schedule = stored(&bench, |schedule| schedule).await;
    bench.answer_wakeup().await;
    stored_id(&bench, &schedule, 1).await;
    assert!(bench.answer_wakeup().await);
}

async fn of_many_callers_one_submits_the_task_of_each_instant(bench: Bench) {
    let schedule = stored(&bench, |schedule| schedule).await;
    for minute in 1..=20 {
        let race = (0..10).map(|_| tick(&bench, minute * MINUTE + 5, &schedule, minute));
        let answers = join_all(race).await;
        let won = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(won, 1, "{answers:?}");
        for answer in answers.into_iter().filter(Result::is_err) {
            assert_eq!(refusal(answer), Refusal::Stale);
        }
    }
    assert_eq!(bench.now().counts(&bench.queue).await.unwrap().delayed, 20);
    assert_eq!(due_of(&bench).await, Some(21));
}

async fn an_instant_that_is_past_or_not_due_changes_nothing(bench: Bench) {
    let schedule = stored(&bench, |schedule| schedule).await;
    let before = bench.dump().await;
    let early = tick(&bench, MINUTE - 7, &schedule, 1).await;
    assert!(matches!(&early, Err(BrokerError::Refused(Refusal::Early, left)) if left == "7"));
    assert_eq!(refusal(tick(&bench, 5 * MINUTE, &schedule, 2).await), Refusal::Stale);
    bench.assert_unchanged(&before).await;
    stored_id(&bench, &schedule, 1).await;
    let before = bench.dump().await;
    // A repeat, and a clock that was set back.
    assert_eq!(refusal(tick(&bench, MINUTE, &schedule, 1).await), Refusal::Stale);
    assert_eq!(refusal(tick(&bench, MINUTE, &schedule, 2).await), Refusal::Early);
    bench.assert_unchanged(&before).await;
}

async fn what_was_read_before_a_change_is_stale(bench: Bench) {
    let old = stored(&bench, |schedule| schedule).await;
    let new = stored(&bench, |schedule| schedule.call(job_of("7"))).await;
    let before = bench.dump().await;
    assert_eq!(refusal(tick(&bench, MINUTE, &old, 1).await), Refusal::Stale);
    let mut unknown = old;
    unknown.name = "unknown".into();
    assert_eq!(refusal(tick(&bench, MINUTE, &unknown, 1).await), Refusal::Stale);
    bench.assert_unchanged(&before).await;
    let id = stored_id(&bench, &new, 1).await;
    let found = bench.now().inspect(&id).await.unwrap();
    assert_eq!(TaskRecord::decode(found.record).unwrap().payload, b"7");
}

async fn skip_leaves_out_instants_while_the_last_task_has_not_ended(bench: Bench) {
    let schedule = stored(&bench, |schedule| schedule.overlap(Overlap::Skip)).await;
    let worker = bench.worker_for(0, "w", ms(60 * MINUTE)).await;
    let first = stored_id(&bench, &schedule, 1).await;
    let tick_at = |minute| tick(&bench, minute * MINUTE, &schedule, minute);
    assert_eq!(tick_at(2).await.unwrap(), Ticked::Overlap, "it waits");
    let lease = bench.take(2 * MINUTE, &worker, 1).await;
    assert_eq!(tick_at(3).await.unwrap(), Ticked::Overlap, "it runs");
    let retry = failed(&lease, FailureOutcome::Retry(ms(MINUTE)));
    assert!(bench.fail(3 * MINUTE, &[retry]).await.is_empty());
    assert_eq!(tick_at(4).await.unwrap(), Ticked::Overlap, "it waits for a retry");
    let lease = bench.take(4 * MINUTE, &worker, 2).await;
    assert!(bench.fail(4 * MINUTE, &[failed(&lease, FailureOutcome::Dead)]).await.is_empty());
    let second = stored_id(&bench, &schedule, 5).await;
    bench.at(5 * MINUTE).cancel(&second).await.unwrap();
    let third = stored_id(&bench, &schedule, 6).await;
    let lease = bench.take(6 * MINUTE, &worker, 3).await;
    assert!(bench.complete(6 * MINUTE, &[done(&lease)]).await.is_empty());
    let fourth = stored_id(&bench, &schedule, 7).await;
    let ids = [fourth, third, second].map(TickOutcome::Submitted).to_vec();
    let skipped = vec![TickOutcome::Overlap; 3];
    assert_eq!(
        outcomes(&bench).await,
        [ids, skipped, vec![TickOutcome::Submitted(first)]].concat()
    );
    assert_eq!(due_of(&bench).await, Some(8));
}

async fn queue_lets_the_tasks_of_a_schedule_run_one_after_the_other(bench: Bench) {
    let schedule = stored(&bench, |schedule| schedule.overlap(Overlap::Queue)).await;
    let worker = bench.worker_for(0, "w", ms(60 * MINUTE)).await;
    let (first, second) =
        (stored_id(&bench, &schedule, 1).await, stored_id(&bench, &schedule, 2).await);
    let claimed = bench.claim(2 * MINUTE, &worker, 1, 9).await;
    assert_eq!(claimed.ids(), [first]);
    assert_eq!(bench.state(&second).await, TaskState::Blocked);
    assert!(
        bench.complete(2 * MINUTE, &[done_in_lane(&claimed.leases(&worker)[0])]).await.is_empty()
    );
    assert_eq!(bench.claim(2 * MINUTE, &worker, 2, 9).await.ids(), [second]);
    bench.assert_sound().await;
}

fn done_in_lane(lease: &optimus_core::Lease) -> optimus_core::broker::Completion {
    crate::lanes::done_in(lease, &lane("schedule:minutely", 1))
}

async fn the_options_of_the_call_are_those_of_each_task(bench: Bench) {
    let large = format!("\"{}\"", "x".repeat(20_000));
    let call = || job_of(large.clone()).biz_id("b").priority(7).expires_in(ms(90_000));
    let mut checked = Schedule::every("minutely", ms(MINUTE)).call(call()).check().unwrap();
    checked.submission =
        checked.submission.in_lane(lane("wide", 3)).limited_by(vec![at_most("m", 1)]);
    put(&bench.at(0), checked).await;
    let schedule = found(&bench.at(0), &bench, "minutely").await.due();
    let id = stored_id(&bench, &schedule, 1).await;
    assert_eq!(bench.field("priorities", &id.stored()).await.as_deref(), Some("7"));
    assert_eq!(bench.field("blobs", &id.stored()).await, Some(large));
    assert_eq!(bench.field("meta", "needs").await.as_deref(), Some("3"));
    assert_eq!(bench.field("meta", "widest").await.as_deref(), Some("3"));
    assert_eq!(bench.field("meta", "limited").await.as_deref(), Some("1"));
    let record = TaskRecord::decode(bench.now().inspect(&id).await.unwrap().record).unwrap();
    assert_eq!(record.accepted_ms, Some(START + MINUTE));
    let other = bench.duplicate_of(MINUTE, job().biz_id("b")).await;
    assert_eq!(other, Some(id.clone()), "the task has the biz id");
    let answer = tick(&bench, 2 * MINUTE, &schedule, 2).await.unwrap();
    assert_eq!(answer, Ticked::Overlap, "the schedule skips");
    let worker = bench.worker(MINUTE, "w").await;
    // The first claim makes it ready by its priority.
    assert_eq!(bench.claim(MINUTE, &worker, 1, 9).await.ids(), []);
    assert_eq!(bench.claim(MINUTE, &worker, 2, 9).await.ids(), [id]);
    bench.assert_sound().await;
}

async fn an_instant_has_no_task_if_another_one_has_the_biz_id(bench: Bench) {
    let schedule = stored(&bench, |schedule| schedule.call(job().biz_id("b"))).await;
    let owner = bench.add(0, job().biz_id("b")).await;
    let answer = tick(&bench, MINUTE, &schedule, 1).await.unwrap();
    assert_eq!(answer, Ticked::Duplicate(owner.clone()));
    assert_eq!(outcomes(&bench).await, [TickOutcome::Duplicate(owner)]);
    assert_eq!(
        (due_of(&bench).await, bench.field("schedule:minutely", "last_id").await),
        (Some(2), None)
    );
}

async fn missed_instants_are_noted_and_submit_nothing(bench: Bench) {
    let schedule = stored(&bench, |schedule| schedule).await;
    let fire = Fire { nominal_ms: START + 9 * MINUTE, missed: 8 };
    let missed =
        Step { next_ms: Some(START + 10 * MINUTE), fire, kind: StepKind::LeaveOut, ..step(1) };
    let answer = bench.at(9 * MINUTE + 1).tick(&bench.queue, &schedule, missed).await;
    assert_eq!(answer.unwrap(), Ticked::Missed);
    let ticks = bench.now().schedule_ticks(&bench.queue, "minutely").await.unwrap();
    assert_eq!((ticks[0].missed, &ticks[0].outcome), (8, &TickOutcome::Missed));
    assert_eq!(bench.now().counts(&bench.queue).await.unwrap().delayed, 0);
    assert_eq!(due_of(&bench).await, Some(10));
}

async fn the_history_keeps_a_hundred_instants(bench: Bench) {
    let schedule = stored(&bench, |schedule| schedule).await;
    for minute in 1..=103 {
        stored_id(&bench, &schedule, minute).await;
    }
    let ticks = bench.now().schedule_ticks(&bench.queue, "minutely").await.unwrap();
    let nominal = |at: usize| ticks[at].nominal.timestamp_millis().unsigned_abs() - START;
    assert_eq!((ticks.len(), nominal(0), nominal(99)), (100, 103 * MINUTE, 4 * MINUTE));
}

async fn a_jitter_delays_each_task_by_its_own_time(bench: Bench) {
    let schedule = stored(&bench, |schedule| schedule.jitter(ms(30_000))).await;
    let mut delays = Vec::new();
    for minute in 1..=20 {
        let id = stored_id(&bench, &schedule, minute).await;
        let due = bench.score("delayed", &id.stored()).await.expect("it is delayed");
        delays.push(due - START - minute * MINUTE);
    }
    assert!(delays.iter().all(|delay| *delay <= 30_000));
    let (first, last) = (delays.iter().min().unwrap(), delays.iter().max().unwrap());
    assert!(*first < 10_000 && *last > 20_000, "{delays:?}");
    bench.assert_sound().await;
}

async fn a_run_now_changes_no_instant_and_counts_as_the_last_task(bench: Bench) {
    let schedule = stored(&bench, |schedule| schedule.overlap(Overlap::Skip)).await;
    let id = TaskId::new(bench.queue.clone());
    let now = bench.at(5).tick_now(&schedule, START + 5, id.clone()).await;
    assert_eq!(now.unwrap(), Ticked::Stored(id.clone()));
    assert_eq!(due_of(&bench).await, Some(1));
    let again = TaskId::new(bench.queue.clone());
    let now = bench.at(6).tick_now(&schedule, START + 6, again.clone()).await;
    assert_eq!(now.unwrap(), Ticked::Stored(again), "it does not look whether one runs");
    assert_eq!(tick(&bench, MINUTE, &schedule, 1).await.unwrap(), Ticked::Overlap);
    let ticks = bench.now().schedule_ticks(&bench.queue, "minutely").await.unwrap();
    assert_eq!(ticks.iter().map(|tick| tick.by_hand).collect::<Vec<_>>(), [false, true, true]);
    bench.assert_sound().await;
}

async fn a_task_that_is_already_stored_is_not_stored_again(bench: Bench) {
    let schedule = stored(&bench, |schedule| schedule).await;
    let id = stored_id(&bench, &schedule, 1).await;
    let worker = bench.worker(MINUTE, "w").await;
    bench.take(MINUTE, &worker, 1).await;
    // A failover has lost that the schedule has gone on.
    let lost = redis::cmd("ZADD")
        .arg(bench.key("schedules"))
        .arg(START + MINUTE)
        .arg("minutely")
        .to_owned();
    let () = bench.raw(&lost).await;
    assert_eq!(stored_id(&bench, &schedule, 1).await, id);
    assert_eq!(bench.state(&id).await, TaskState::Working);
    bench.assert_sound().await;
}

async fn older_scripts_submit_nothing_in_a_queue_of_newer_ones(bench: Bench) {
    let schedule = stored(&bench, |schedule| schedule).await;
    let set = redis::cmd("HSET").arg(bench.key("meta")).arg("needs").arg(99).to_owned();
    let () = bench.raw(&set).await;
    let before = bench.dump().await;
    let answer = tick(&bench, MINUTE, &schedule, 1).await;
    assert!(matches!(&answer, Err(BrokerError::Refused(Refusal::Newer, needs)) if needs == "99"));
    bench.assert_unchanged(&before).await;
}

on_both![
    a_tick_submits_the_task_of_its_instant_and_goes_on,
    a_tick_wakes_an_idle_worker,
    of_many_callers_one_submits_the_task_of_each_instant,
    an_instant_that_is_past_or_not_due_changes_nothing,
    what_was_read_before_a_change_is_stale,
    skip_leaves_out_instants_while_the_last_task_has_not_ended,
    queue_lets_the_tasks_of_a_schedule_run_one_after_the_other,
    the_options_of_the_call_are_those_of_each_task,
    an_instant_has_no_task_if_another_one_has_the_biz_id,
    missed_instants_are_noted_and_submit_nothing,
    the_history_keeps_a_hundred_instants,
    a_jitter_delays_each_task_by_its_own_time,
    a_run_now_changes_no_instant_and_counts_as_the_last_task,
    a_task_that_is_already_stored_is_not_stored_again,
    older_scripts_submit_nothing_in_a_queue_of_newer_ones,
];
