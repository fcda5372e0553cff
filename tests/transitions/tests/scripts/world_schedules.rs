//! The part of the world with schedules, and the calls of their scripts.

use optimus_core::{
    CheckedSchedule, Fire, Schedule, TaskId,
    broker::{
        Broker, BrokerError, Look, NewSchedule, Reschedule, Step, StepKind, StoredSchedule, Taken,
    },
    store_schedule,
};

use crate::{
    acts::ms,
    bench::{Bench, START},
    jobs::{job, job_of},
    lanes::lane,
    limits::at_most,
    world::{DAY, NOW, World},
};

/// All schedules are due at [`NOW`].
const EVERY: u64 = 10_000;

/// Returns a schedule that is due again and again after ten seconds.
pub(crate) fn every(name: &str) -> Schedule {
    Schedule::every(name, ms(EVERY))
}

fn plain(name: &str) -> CheckedSchedule {
    every(name).call(job()).check().expect("the schedule of a test is valid")
}

/// Returns the key of the schedule that the call of a situation is about.
pub(crate) fn key_of(kind: &str, situation: &str) -> String {
    format!("{kind}{}", name_in(situation))
}

fn name_in(situation: &str) -> &str {
    match situation {
        "scheduled new" => "new",
        "scheduled of code" | "scheduled code" => "code",
        "scheduled every option" => "rich",
        "scheduled overlap" => "overlaps",
        "scheduled resume" => "paused",
        "scheduled settle" => "moves",
        _ => "plain",
    }
}

/// Stores a schedule.
pub(crate) async fn put(broker: &Broker, schedule: CheckedSchedule) {
    store_schedule(broker, &schedule).await.expect("no newer program");
}

/// Reads a schedule, which must exist.
pub(crate) async fn found(broker: &Broker, bench: &Bench, name: &str) -> StoredSchedule {
    let found = broker.find_schedule(&bench.queue, name).await;
    found.expect("the store answers").unwrap_or_else(|| panic!("there is no schedule {name}"))
}

/// Returns the step of a schedule that is due at `NOW`.
fn step(kind: StepKind) -> Step {
    let (due_ms, next_ms) = (START + NOW, Some(START + NOW + EVERY));
    Step { due_ms, next_ms, fire: Fire { nominal_ms: due_ms, missed: 2 }, kind }
}

impl World {
    /// Adds schedules: a plain one with a history, one that is paused, one of code, one with every
    /// option, and one whose last task has not ended.
    pub(crate) async fn schedule_some(&mut self, bench: &Bench) {
        let broker = bench.at(NOW - EVERY);
        let large = job_of(format!("\"{}\"", "x".repeat(20_000)));
        let rich = large.biz_id("rich").biz_window(DAY).priority(5).expires_in(DAY);
        let mut rich = every("rich").jitter(ms(9_000)).call(rich).check().expect("it is valid");
        rich.submission =
            rich.submission.in_lane(lane("rich", 3)).limited_by(vec![at_most("r", 1)]);
        let code = every("code").release("1.2.3").call(job()).check().expect("it is valid");
        for schedule in [plain("plain"), plain("paused"), plain("overlaps"), code, rich] {
            put(&broker, schedule).await;
        }
        put(&broker, plain("moves")).await;
        let moves = found(&broker, bench, "moves").await;
        let start = ("moves", moves.edition());
        broker.reschedule(&bench.queue, start, Reschedule::Move).await.expect("it is known");
        let paused = found(&broker, bench, "paused").await;
        let pause = ("paused", paused.edition());
        broker
            .reschedule(&bench.queue, pause, Reschedule::Pause("ann"))
            .await
            .expect("it is known");
        for name in ["plain", "overlaps"] {
            let due = found(&broker, bench, name).await.due();
            let id = TaskId::new(bench.queue.clone());
            broker.tick_now(&due, START, id).await.expect("the schedule is known");
        }
        let last = bench.field("schedule:plain", "last_id").await.expect("it has run");
        let last = TaskId::from_stored(bench.queue.clone(), &last).expect("an id");
        bench.at(NOW).cancel(&last).await.expect("the task is delayed");
    }

    /// Calls a script of schedules.
    pub(crate) async fn schedule_in(
        &self,
        bench: &Bench,
        script: &str,
        situation: &str,
    ) -> Result<(), BrokerError> {
        let (broker, queue, name) = (bench.at(NOW), &bench.queue, name_in(situation));
        match script {
            "schedule" => {
                let stored = broker.find_schedule(queue, name).await?;
                let new = NewSchedule {
                    name,
                    edition: stored.map_or(0, |stored| stored.edition()),
                    release: if name == "code" { "1.3.0" } else { "" },
                    due_ms: Some(START + NOW + 5),
                    timing: r#"{"every_ms":10000,"overlap":"all"}"#,
                    record: b"{\"t\":\"job\"}\n5",
                    blob: b"",
                    number: 1,
                    started_ms: START,
                };
                broker.schedule(queue, new).await
            }
            "agenda" => {
                let of_code = ["code".to_owned()];
                broker.agenda(queue, Look { of_code: &of_code, ..Look::default() }).await.map(drop)
            }
            "reschedule" => {
                let Some(stored) = broker.find_schedule(queue, name).await? else { return Ok(()) };
                let taken = Taken {
                    paused: format!("{START} ann"),
                    last_ms: Some(START),
                    made_ms: START,
                    history: vec![format!("{START} {START} 0 missed")],
                    ..Taken::default()
                };
                let act = match situation {
                    "scheduled move" => Reschedule::Move,
                    "scheduled take" => Reschedule::Take(&taken),
                    "scheduled settle" => Reschedule::Settle,
                    "scheduled pause" | "scheduled code" => Reschedule::Pause("ann"),
                    "scheduled resume" => Reschedule::Resume(Some(START + NOW + 5)),
                    _ => Reschedule::Remove,
                };
                broker.reschedule(queue, (name, stored.edition()), act).await
            }
            _ => {
                let Some(stored) = broker.find_schedule(queue, name).await? else { return Ok(()) };
                let due = stored.due();
                match situation {
                    "scheduled now" => {
                        let id = TaskId::new(queue.clone());
                        broker.tick_now(&due, START + NOW, id).await.map(drop)
                    }
                    "scheduled missed" => {
                        broker.tick(queue, &due, step(StepKind::LeaveOut)).await.map(drop)
                    }
                    _ => broker.tick(queue, &due, step(StepKind::Submit)).await.map(drop),
                }
            }
        }
    }
}
