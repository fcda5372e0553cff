//! Random calls about schedules, compared with a reference in plain Rust: what is due, each answer,
//! each schedule with its history, and which tasks are stored. Several callers act on what they
//! have read a while ago, the clock is set back, and programs of two releases store schedules.

mod reference;
mod step;

use std::collections::BTreeMap;

use optimus_core::{
    Fire, Schedule, TaskId, TickOutcome, WorkerId,
    broker::{
        BrokerError, DueSchedule, FailureOutcome, Look, Refusal, Reschedule, Step as Tick,
        StepKind, Ticked,
    },
    store_schedule,
};
use redis::cmd;

use self::{
    reference::{Reading, Reference, Turn},
    step::{CALLERS, Content, Ends, OF_CODE, Step},
};
use crate::{
    acts::{Grants, done, failed, ms},
    bench::{Bench, START},
    jobs::job,
};

/// Longer than any sequence.
const LEASE_MS: u64 = 30 * 24 * 3_600_000;
/// Time may be set back from here.
const BEGIN: u64 = 10_000_000;

/// What a caller has read and not acted on yet, the last turn first.
type Kept = Option<(DueSchedule, Reading, Vec<Turn>)>;

struct Run<'a> {
    bench: &'a Bench,
    reference: Reference,
    now: u64,
    kept: Vec<Kept>,
    worker: WorkerId,
    claims: u64,
}

/// Runs so many sequences of calls. Returns how often each answer to a tick occurred.
pub(crate) async fn run(bench: Bench, sequences: u64, steps: usize) -> BTreeMap<String, u32> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for seed in 0..sequences {
        let mut chance = fastrand::Rng::with_seed(seed);
        bench.restore(&BTreeMap::new()).await;
        let worker = bench.worker_for(0, "w", ms(LEASE_MS)).await;
        let kept = (0..CALLERS).map(|_| None).collect();
        let reference = Reference::default();
        let mut run = Run { bench: &bench, reference, now: BEGIN, kept, worker, claims: 0 };
        for number in 0..steps {
            let step = Step::drawn(&mut chance);
            let what = format!("seed {seed}, step {number}: {step:?}");
            if let Some(answer) = run.take(&step, &what).await {
                *seen.entry(answer).or_default() += 1;
            }
            run.assert_same(&what).await;
        }
    }
    seen
}

impl Run<'_> {
    /// Takes a step. Returns the first word of the answer to a tick.
    async fn take(&mut self, step: &Step, what: &str) -> Option<String> {
        match step {
            Step::Put(name, release, content) => {
                let schedule = checked(name, *release, *content);
                let broker = self.bench.at(self.now);
                let stored_as = store_schedule(&broker, &schedule).await.expect("it is stored");
                let at = START + self.now;
                let expected = self.reference.put(at, (*name, *release), *content);
                assert_eq!(stored_as, expected, "{what}");
            }
            Step::Pause(name) => {
                self.reschedule(name, Reschedule::Pause("ann"), what).await;
                self.reference.pause(name);
            }
            Step::Resume(name) => {
                let at = START + self.now;
                self.reference.resume(at, name);
                let due = self.reference.known.get(name).and_then(|known| known.due);
                self.reschedule(name, Reschedule::Resume(due), what).await;
            }
            Step::Remove(name) => {
                self.reschedule(name, Reschedule::Remove, what).await;
                self.reference.remove(name);
            }
            Step::Look(caller, nth) => self.look((*caller, *nth), what).await,
            Step::Tick(caller) => return self.tick(*caller, what).await,
            Step::RunNow(name) => return self.run_now(name, what).await,
            Step::Work(ends) => self.work(*ends).await,
            Step::Cancel(nth) => self.cancel(*nth).await,
            Step::Wait(time) => self.now += u64::try_from(time.as_millis()).unwrap(),
            Step::Back(time) => self.now -= u64::try_from(time.as_millis()).unwrap(),
        }
        None
    }

    /// Changes a schedule as somebody who has read it before and after another change.
    async fn reschedule(&self, name: &str, act: Reschedule<'_>, what: &str) {
        let (broker, queue) = (self.bench.at(self.now), &self.bench.queue);
        let Some(found) = broker.find_schedule(queue, name).await.expect("it is read") else {
            return;
        };
        let late = broker.reschedule(queue, (name, found.edition() + 1), act).await;
        let is_stale = late.is_err_and(|problem| problem.refusal() == Some(Refusal::Stale));
        assert!(is_stale, "{what}");
        broker.reschedule(queue, (name, found.edition()), act).await.expect("it is as read");
    }

    async fn look(&mut self, (caller, nth): (usize, usize), what: &str) {
        let names = OF_CODE.map(str::to_owned);
        let look = Look { of_code: &names, ..Look::default() };
        let agenda = self.bench.at(self.now).agenda(&self.bench.queue, look).await;
        let agenda = agenda.expect("what is due is read");
        let due = agenda.due.iter().map(|due| (due.name.clone(), due.due_ms));
        let due: Vec<(String, u64)> = due.collect();
        let next_in = agenda.next_in.map(|wait| u64::try_from(wait.as_millis()).unwrap());
        let found = (due, next_in, agenda.missing);
        assert_eq!(found, self.reference.look(START + self.now), "{what}");
        let Some(due) = agenda.due.get(nth) else { return };
        let reading = self.reference.read(&due.name);
        let turns = Reference::turns(reading, START + self.now);
        let plan = due.timing.as_ref().expect("it is of this program");
        let plan = plan.plan(due.due_ms, agenda.now_ms);
        let all = plan.fires.iter().chain(&plan.left_out);
        let planned: Vec<_> = all.map(|fire| (fire.nominal_ms, fire.missed)).collect();
        let expected: Vec<_> = turns.iter().map(|turn| (turn.nominal, turn.missed)).collect();
        assert_eq!(planned, expected, "{what}");
        assert_eq!(plan.next_ms, turns.last().map(|turn| turn.next), "{what}");
        self.kept[caller] = Some((due.clone(), reading, turns.into_iter().rev().collect()));
    }

    async fn tick(&mut self, caller: usize, what: &str) -> Option<String> {
        let (due, reading, turns) = self.kept[caller].as_mut()?;
        let turn = turns.pop()?;
        let fire = Fire { nominal_ms: turn.nominal, missed: turn.missed };
        let kind = if turn.submits { StepKind::Submit } else { StepKind::LeaveOut };
        let step = Tick { due_ms: turn.due, next_ms: Some(turn.next), fire, kind };
        let answer = self.bench.at(self.now).tick(&self.bench.queue, due, step).await;
        let reading = *reading;
        let expected = self.reference.tick(START + self.now, reading, turn);
        let (answer, id) = answered(answer);
        assert_eq!(answer, expected, "{what}");
        if let Some(id) = id {
            self.reference.stored(reading.name, &id);
        }
        answer.split(' ').next().map(str::to_owned)
    }

    async fn run_now(&mut self, name: &str, what: &str) -> Option<String> {
        let (broker, queue) = (self.bench.at(self.now), &self.bench.queue);
        let found = broker.find_schedule(queue, name).await.expect("it is read")?;
        let (at, id) = (START + self.now, TaskId::new(queue.clone()));
        let answer = broker.tick_now(&found.due(), at, id).await;
        let (answer, id) = answered(answer);
        assert_eq!(Some(&*answer), self.reference.run_now(at, name), "{what}");
        if let Some(id) = id {
            self.reference.stored(name, &id);
        }
        Some(answer)
    }

    async fn work(&mut self, ends: Ends) {
        self.claims += 1;
        let claimed = self.bench.claim(self.now, &self.worker, self.claims, 1).await;
        let Some(lease) = claimed.leases(&self.worker).pop() else { return };
        match ends {
            Ends::Succeeds => {
                let mut report = done(&lease);
                let is_unique = self.reference.owner.as_ref() == Some(&lease.id);
                report.biz_id = is_unique.then(|| "b".into());
                assert!(self.bench.complete(self.now, &[report]).await.is_empty());
                self.reference.succeeded(&lease.id);
            }
            Ends::Dies => {
                let dead = failed(&lease, FailureOutcome::Dead);
                assert!(self.bench.fail(self.now, &[dead]).await.is_empty());
                self.reference.ended(&lease.id, false);
            }
            Ends::Retries => {
                let retry = failed(&lease, FailureOutcome::Retry(ms(9_000)));
                assert!(self.bench.fail(self.now, &[retry]).await.is_empty());
            }
        }
    }

    async fn cancel(&mut self, nth: usize) {
        let live = self.reference.tasks.iter().filter(|(_, has_ended)| !**has_ended);
        let Some(id) = live.map(|(id, _)| id.clone()).nth(nth) else { return };
        self.bench.at(self.now).cancel(&id).await.expect("a task that waits is cancelled");
        self.reference.ended(&id, true);
    }

    /// Compares what is stored with the reference.
    async fn assert_same(&self, what: &str) {
        let (broker, queue) = (self.bench.at(self.now), &self.bench.queue);
        for name in ["a", "b", "c", "coded", "other"] {
            let found = broker.find_schedule(queue, name).await.expect("it is read");
            let known = self.reference.known.get(name);
            assert_eq!(found.is_some(), known.is_some(), "{name}, {what}");
            let (Some(found), Some(known)) = (found, known) else { continue };
            let stored = (found.edition(), found.release(), found.due_ms, found.last_ms());
            let release = known.release.map(str::to_owned);
            assert_eq!(stored, (known.edition, release, known.due, known.last), "{name}, {what}");
            let details = found.details().expect("it is of this program");
            assert_eq!(details.last_id, known.last_id, "{name}, {what}");
            let ticks = broker.schedule_ticks(queue, name).await.expect("it is read");
            let ticks = ticks.iter().map(|tick| {
                let nominal = tick.nominal.timestamp_millis().unsigned_abs();
                (nominal, became(&tick.outcome))
            });
            assert!(ticks.eq(known.history.iter().copied()), "the history of {name}, {what}");
        }
        let mut ids: Vec<String> = self.bench.raw(cmd("HKEYS").arg(self.bench.key("tasks"))).await;
        let mut known: Vec<String> = self.reference.tasks.keys().map(TaskId::stored).collect();
        known.sort();
        ids.sort();
        assert_eq!(ids, known, "{what}");
        assert_eq!(self.bench.fsck().await, [""; 0], "{what}");
    }
}

fn checked(name: &str, release: Option<&str>, content: Content) -> optimus_core::CheckedSchedule {
    let call = if content.is_unique { job().biz_id("b") } else { job() };
    let schedule = Schedule::every(name, ms(content.every_ms)).call(call);
    let schedule = schedule.missed(content.missed).overlap(content.overlap);
    let schedule = match release {
        Some(release) => schedule.release(release),
        None => schedule,
    };
    schedule.check().expect("the schedule is valid")
}

/// Returns the answer to a tick as text, and the task that was stored.
fn answered(answer: Result<Ticked, BrokerError>) -> (String, Option<TaskId>) {
    match answer {
        Ok(Ticked::Stored(id)) => ("stored".to_owned(), Some(id)),
        Ok(Ticked::Overlap) => ("overlap".to_owned(), None),
        Ok(Ticked::Missed) => ("missed".to_owned(), None),
        Ok(Ticked::Duplicate(_)) => ("taken".to_owned(), None),
        Err(BrokerError::Refused(Refusal::Early, left)) => (format!("early {left}"), None),
        Err(BrokerError::Refused(Refusal::Stale, _)) => ("stale".to_owned(), None),
        Err(problem) => panic!("{problem:?}"),
    }
}

fn became(outcome: &TickOutcome) -> &'static str {
    match outcome {
        TickOutcome::Submitted(_) => "stored",
        TickOutcome::Overlap => "overlap",
        TickOutcome::Missed => "missed",
        TickOutcome::Duplicate(_) => "taken",
        _ => "unknown",
    }
}
