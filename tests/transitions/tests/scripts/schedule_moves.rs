//! A schedule is in one queue: two that store its name at once, a move between queues, and what it
//! takes along.

use futures_util::future::join_all;
use optimus_core::{
    Fire, Moment, Overlap, QueueName, Schedule, StoredAs, TickOutcome,
    broker::{
        Broker, BrokerError, DueSchedule, NewSchedule, Refusal, Reschedule, Step, StepKind,
        StoredSchedule, Taken, Ticked,
    },
    settle_schedule, store_schedule_at,
};

use crate::{
    acts::{ms, refusal},
    bench::{Bench, START},
    jobs::job,
};

const MINUTE: u64 = 60_000;

fn queue(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

fn minutely() -> Schedule {
    Schedule::every("minutely", ms(MINUTE)).overlap(Overlap::All)
}

/// Stores the schedule in this queue.
async fn put(broker: &Broker, of: Schedule, name: &str, moment: Moment) -> StoredAs {
    broker.announce(&queue(name)).await.unwrap();
    let checked = of.call(job().queue(name)).check().unwrap();
    store_schedule_at(broker, &checked, moment).await.unwrap()
}

async fn all(bench: &Bench) -> Vec<StoredSchedule> {
    bench.now().find_schedules("minutely", None).await.unwrap()
}

/// Returns the only queue that has the schedule, which is settled there.
async fn place(bench: &Bench) -> String {
    let all = all(bench).await;
    assert!(all.len() == 1 && !all[0].is_moving(), "{all:?}");
    all[0].queue().to_string()
}

async fn tick(broker: &Broker, name: &str, schedule: &DueSchedule) -> Result<Ticked, BrokerError> {
    let fire = Fire { nominal_ms: schedule.due_ms, missed: 0 };
    let next_ms = Some(schedule.due_ms + MINUTE);
    let step = Step { due_ms: schedule.due_ms, next_ms, fire, kind: StepKind::Submit };
    broker.tick(&queue(name), schedule, step).await
}

async fn of_many_puts_of_one_name_at_once_one_queue_keeps_it(bench: Bench) {
    for round in 0..20 {
        let brokers: Vec<Broker> = (0..4).map(|_| bench.at(round)).collect();
        let names = ["qa", "qb", "qc", "qd"];
        let puts = brokers.iter().zip(names);
        join_all(puts.map(|(broker, name)| put(broker, minutely(), name, Moment::Start(0)))).await;
        let kept = place(&bench).await;
        let edition = all(&bench).await[0].edition();
        let remove = ("minutely", edition);
        bench.now().reschedule(&queue(&kept), remove, Reschedule::Remove).await.unwrap();
    }
}

async fn a_move_takes_the_pause_the_last_instant_and_the_history_along(bench: Bench) {
    put(&bench.at(0), minutely(), "old", Moment::Start(0)).await;
    let due = all(&bench).await[0].due();
    let Ticked::Stored(id) = tick(&bench.at(MINUTE), "old", &due).await.unwrap() else { panic!() };
    let edition = all(&bench).await[0].edition();
    let pause = ("minutely", edition);
    bench.at(MINUTE).reschedule(&queue("old"), pause, Reschedule::Pause("ann")).await.unwrap();
    let moved = put(&bench.at(2 * MINUTE), minutely(), "new", Moment::Start(0)).await;
    assert_eq!(moved, StoredAs::Moved(vec![queue("old")]));
    assert_eq!(place(&bench).await, "new");
    let found = &all(&bench).await[0];
    assert!(found.is_paused() && found.due_ms.is_none(), "{found:?}");
    assert_eq!(found.last_ms(), Some(START + MINUTE));
    let details = found.details().unwrap();
    assert_eq!(details.paused.map(|(_, by)| by).as_deref(), Some("ann"));
    let ticks = bench.now().schedule_ticks(&queue("new"), "minutely").await.unwrap();
    let outcomes: Vec<_> = ticks.iter().map(|tick| tick.outcome.clone()).collect();
    assert_eq!(outcomes, [TickOutcome::Submitted(id)], "the task is in the old queue");
}

async fn what_was_overdue_stays_so_after_a_move_and_runs_once(bench: Bench) {
    put(&bench.at(0), minutely(), "old", Moment::Start(0)).await;
    let before = all(&bench).await[0].due();
    put(&bench.at(5 * MINUTE), minutely(), "new", Moment::Start(0)).await;
    let found = &all(&bench).await[0];
    assert_eq!(found.due_ms, Some(START + MINUTE));
    let late = tick(&bench.at(5 * MINUTE), "old", &before).await;
    assert_eq!(refusal(late), Refusal::Stale, "a worker of the old queue has read it before");
    tick(&bench.at(5 * MINUTE), "new", &found.due()).await.unwrap();
    put(&bench.at(5 * MINUTE), minutely(), "old", Moment::Start(0)).await;
    assert_eq!(all(&bench).await[0].due_ms, Some(START + 2 * MINUTE), "it ran in the new one");
}

async fn a_schedule_that_moves_has_no_instants_and_any_look_ends_the_move(bench: Bench) {
    put(&bench.at(0), minutely(), "old", Moment::Start(0)).await;
    // The program that moves the schedule ends after each of its steps.
    for (steps, target) in [(1, "b"), (2, "c"), (3, "d")] {
        let old = all(&bench).await.remove(0);
        let due = old.due();
        bench.now().announce(&queue(target)).await.unwrap();
        let stored = old.due_ms;
        copy(&bench, &old, target).await;
        let new = all(&bench).await.remove(0);
        assert_eq!((new.queue().as_str(), new.is_moving()), (target, true));
        let at = bench.at(stored.unwrap() - START);
        assert_eq!(refusal(tick(&at, target, &new.due()).await), Refusal::Stale);
        if steps > 1 {
            let edition = ("minutely", old.edition());
            bench.now().reschedule(old.queue(), edition, Reschedule::Move).await.unwrap();
            let now = tick(&at, old.queue().as_str(), &due).await;
            assert_eq!(refusal(now), Refusal::Stale);
        }
        if steps > 2 {
            let taken = Taken { due_ms: old.due_ms, ..Default::default() };
            let edition = ("minutely", new.edition());
            let take = Reschedule::Take(&taken);
            bench.now().reschedule(new.queue(), edition, take).await.unwrap();
        }
        let kept = settle_schedule(&bench.now(), "minutely", old.queue()).await.unwrap();
        assert_eq!((kept, place(&bench).await), (Some(queue(target)), target.to_owned()));
        assert_eq!(all(&bench).await[0].due_ms, stored);
    }
}

/// Stores the schedule in another queue, as the first step of a move.
async fn copy(bench: &Bench, old: &StoredSchedule, target: &str) {
    let key = format!("{{{}:{}:0}}:schedule:minutely", bench.now().namespace(), old.queue());
    let field =
        async |name: &str| -> String { bench.raw(redis::cmd("HGET").arg(&key).arg(name)).await };
    let (timing, record) = (field("timing").await, field("record").await);
    let new = NewSchedule {
        name: "minutely",
        edition: 0,
        release: "",
        due_ms: old.due_ms,
        timing: &timing,
        record: record.as_bytes(),
        blob: b"",
        number: old.number_of_name() + 1,
        started_ms: 0,
    };
    bench.now().schedule(&queue(target), new).await.unwrap();
}

async fn code_stays_where_the_later_release_or_program_has_it(bench: Bench) {
    let of = |release: &str| minutely().release(release);
    put(&bench.at(0), of("1.0.0"), "old", Moment::Start(10)).await;
    put(&bench.at(0), of("2.0.0"), "new", Moment::Start(20)).await;
    let kept = StoredAs::KeptElsewhere(queue("new"));
    for moment in [Moment::Later(10), Moment::Start(30)] {
        assert_eq!(put(&bench.at(5), of("1.0.0"), "old", moment).await, kept, "{moment:?}");
    }
    assert_eq!(place(&bench).await, "new");
    // Of one release, the program that has started last has it.
    put(&bench.at(5), of("2.0.0"), "old", Moment::Start(30)).await;
    assert_eq!(place(&bench).await, "old");
    let later = put(&bench.at(5), of("2.0.0"), "new", Moment::Later(20)).await;
    assert_eq!(later, StoredAs::KeptElsewhere(queue("old")));
    let later = put(&bench.at(5), of("2.0.0"), "new", Moment::Later(40)).await;
    assert_eq!(later, StoredAs::Moved(vec![queue("old")]));
    assert_eq!(place(&bench).await, "new");
}

async fn code_takes_back_what_nobody_ticks_for_a_minute(bench: Bench) {
    let of = |release: &str| minutely().release(release);
    put(&bench.at(0), of("2.0.0"), "new", Moment::Start(20)).await;
    let back = async |at| put(&bench.at(at), of("1.0.0"), "old", Moment::Later(10)).await;
    assert_eq!(back(2 * MINUTE).await, StoredAs::KeptElsewhere(queue("new")));
    assert_eq!(back(2 * MINUTE + 1).await, StoredAs::Moved(vec![queue("new")]));
    assert_eq!(place(&bench).await, "old");
    assert_eq!(all(&bench).await[0].due_ms, Some(START + MINUTE), "it stays overdue");
}

on_both![
    of_many_puts_of_one_name_at_once_one_queue_keeps_it,
    a_move_takes_the_pause_the_last_instant_and_the_history_along,
    what_was_overdue_stays_so_after_a_move_and_runs_once,
    a_schedule_that_moves_has_no_instants_and_any_look_ends_the_move,
    code_stays_where_the_later_release_or_program_has_it,
    code_takes_back_what_nobody_ticks_for_a_minute,
];
