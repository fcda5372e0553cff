//! Ten workers tick schedules in twenty zones over both changes of the clocks of two years, on
//! virtual time: they look, fall behind, and die between a look and a tick, and the clock of Redis
//! is set back. Each instant must have one task, and no other time any. The instants are those of a
//! walk over each minute, which asks only the local clocks.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
};

use chrono::{DateTime, NaiveDateTime, TimeDelta, Timelike, Utc};
use chrono_tz::Tz;
use optimus_core::{
    Missed, Overlap, QueueName, Schedule, TaskRecord, TickOutcome,
    broker::{Broker, BrokerError, DueSchedule, Look, Refusal, Step, StepKind, Ticked},
};
use optimus_testkit::ZONES;
use redis::cmd;

use crate::{acts::refusal, bench::Bench, jobs::job, world_schedules::put};

const WORKERS: usize = 10;
const MINUTE_MS: u64 = 60_000;
/// How many days the test walks over; 730 have 190,000 instants. Without it, 30.
const DAYS_VARIABLE: &str = "SCHEDULE_RACE_DAYS";

/// What a worker has read and not acted on yet.
type Held = Option<(DueSchedule, Vec<Step>)>;

/// Returns whether the local clock shows an instant: 0:30, 1:30 … 4:30, or 15 minutes after each
/// third hour.
fn matches(name: &str, local: NaiveDateTime) -> bool {
    match name {
        "fixed" => local.minute() == 30 && local.hour() <= 4,
        _ => local.minute() == 15 && local.hour().is_multiple_of(3),
    }
}

fn instants_of(zone: Tz, name: &str, (from, to): (u64, u64)) -> BTreeSet<u64> {
    let local = |at: u64| {
        let at = DateTime::<Utc>::from_timestamp_millis(i64::try_from(at).unwrap()).unwrap();
        at.with_timezone(&zone).naive_local()
    };
    let minute = TimeDelta::minutes(1);
    let mut instants = BTreeSet::new();
    let start = from - 24 * 60 * MINUTE_MS;
    let mut before = local(start) - minute;
    let mut latest = before;
    for at in (start..to).step_by(60_000) {
        let now = local(at);
        let mut skipped = before + minute;
        while name == "fixed" && skipped < now {
            if matches(name, skipped) {
                instants.insert(at);
            }
            skipped += minute;
        }
        // A fixed time that the clock shows again is over.
        let is_new = now > latest;
        latest = latest.max(now);
        if matches(name, now) && (is_new || name != "fixed") {
            instants.insert(at);
        }
        before = now;
    }
    instants.retain(|at| *at > from);
    instants
}

fn ms(text: &str) -> u64 {
    DateTime::parse_from_rfc3339(text).unwrap().timestamp_millis().unsigned_abs()
}

struct Race {
    bench: Bench,
    random: fastrand::Rng,
    now: u64,
    stored: BTreeMap<String, BTreeSet<u64>>,
    ticks: u64,
    refused: u64,
}

impl Race {
    fn broker(&self) -> Broker {
        self.bench.now().at(self.now)
    }

    /// Reads what is due, and decides about all steps of one schedule.
    async fn look(&mut self) -> Held {
        let agenda = self.broker().agenda(&self.bench.queue, Look::default()).await.unwrap();
        let due = &agenda.due;
        let schedule = due.get(self.random.usize(..due.len().max(1)))?.clone();
        let plan = schedule.timing.as_ref().unwrap().plan(schedule.due_ms, agenda.now_ms);
        let mut due_ms = schedule.due_ms;
        let nexts = plan.fires.iter().skip(1).map(|fire| Some(fire.nominal_ms));
        let steps = plan.fires.iter().zip(nexts.chain([plan.next_ms])).map(|(fire, next_ms)| {
            let step = Step { due_ms, next_ms, fire: *fire, kind: StepKind::Submit };
            due_ms = next_ms.unwrap_or(u64::MAX);
            step
        });
        let steps = steps.rev_collected();
        Some((schedule, steps))
    }

    /// Takes one step. Returns whether the worker goes on with the next.
    async fn tick(&mut self, schedule: &DueSchedule, step: Step) -> bool {
        let answer = self.broker().tick(&self.bench.queue, schedule, step).await;
        match answer {
            Ok(Ticked::Stored(id)) => {
                assert_eq!(id.made_ms(), step.fire.nominal_ms);
                let stored = self.stored.entry(schedule.name.clone()).or_default();
                assert!(stored.insert(step.fire.nominal_ms), "{} twice", schedule.name);
                self.ticks += 1;
                true
            }
            Err(BrokerError::Refused(Refusal::Stale | Refusal::Early, _)) => {
                self.refused += 1;
                false
            }
            other => panic!("{:?}", refusal(other)),
        }
    }

    /// Moves the clock: mostly forward by minutes, sometimes by days, and sometimes back.
    fn pass_time(&mut self) {
        let minutes = |n: u64| n * MINUTE_MS;
        match self.random.u32(..400) {
            0 => self.now -= minutes(self.random.u64(1..90)),
            1 => self.now += minutes(self.random.u64(60..3_000)),
            _ => self.now += self.random.u64(1..minutes(9)),
        }
    }
}

trait RevCollected: Iterator + Sized {
    /// Returns the items, the last one first, so that `pop` takes them in their order.
    fn rev_collected(self) -> Vec<Self::Item> {
        let mut items: Vec<_> = self.collect();
        items.reverse();
        items
    }
}

impl<I: Iterator> RevCollected for I {}

#[tokio::test]
async fn ten_workers_submit_the_task_of_each_instant_once_over_all_changes_of_the_clocks() {
    let days = env::var(DAYS_VARIABLE).map_or(30, |days| days.parse().unwrap());
    let (seed, bench) = (fastrand::u64(..), Bench::embedded());
    let (start, queue) = (ms("2026-03-05T00:00:00Z"), bench.queue.clone());
    let end = start + days * 24 * 60 * MINUTE_MS;
    for zone in ZONES {
        for (kind, expression) in [("fixed", "30 0-4 * * *"), ("interval", "15 */3 * * *")] {
            let name = format!("{kind}.{}", zone.replace('/', "."));
            let schedule = Schedule::cron(name, expression).tz(zone).call(job());
            let schedule = schedule.missed(Missed::All).overlap(Overlap::All).check().unwrap();
            put(&bench.now().at(start), schedule).await;
        }
    }
    let random = fastrand::Rng::with_seed(seed);
    let stored = BTreeMap::new();
    let mut race = Race { bench, random, now: start, stored, ticks: 0, refused: 0 };
    let mut workers: Vec<Held> = (0..WORKERS).map(|_| None).collect();
    while race.now < end {
        race.pass_time();
        for _ in 0..race.random.u32(1..7) {
            let worker = race.random.usize(..WORKERS);
            match workers[worker].take() {
                // The worker dies between its look and its next tick.
                Some(_) if race.random.u32(..20) == 0 => {}
                Some((schedule, mut steps)) => {
                    let Some(step) = steps.pop() else { continue };
                    if race.tick(&schedule, step).await {
                        workers[worker] = Some((schedule, steps));
                    }
                }
                None => workers[worker] = race.look().await,
            }
        }
    }
    race.now = race.now.max(end);
    while let Some((schedule, mut steps)) = race.look().await {
        while let Some(step) = steps.pop() {
            race.tick(&schedule, step).await;
        }
    }
    let until = race.now + 1;
    for zone in ZONES {
        for kind in ["fixed", "interval"] {
            let name = format!("{kind}.{}", zone.replace('/', "."));
            let expected = instants_of(zone.parse().unwrap(), kind, (start, until));
            let found = race.stored.remove(&name).unwrap_or_default();
            let differ: Vec<_> = expected.symmetric_difference(&found).collect();
            assert!(differ.is_empty(), "seed {seed}, {name}: {differ:?}");
        }
    }
    assert!(race.refused > race.ticks / 20, "{} of {} were refused", race.refused, race.ticks);
    check_store(&race.bench, &queue, race.ticks).await;
    println!("{} instants, {} refused calls", race.ticks, race.refused);
}

/// The store has the tasks that the answers named, and the history agrees.
async fn check_store(bench: &Bench, queue: &QueueName, ticks: u64) {
    let tasks: u64 = bench.raw(cmd("HLEN").arg(bench.key("tasks"))).await;
    assert_eq!(tasks, ticks);
    let history = bench.now().schedule_ticks(queue, "fixed.Europe.Berlin").await.unwrap();
    let TickOutcome::Submitted(id) = &history[0].outcome else { panic!("{history:?}") };
    let record = TaskRecord::decode(bench.now().inspect(id).await.unwrap().record).unwrap();
    let tick = record.tick.expect("the record has its instant");
    assert_eq!(tick.nominal(), history[0].nominal);
    assert_eq!(tick.local().minute(), 30);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}
