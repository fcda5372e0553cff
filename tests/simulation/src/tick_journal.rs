//! Records what the store answers about the instants of schedules: [`TickJournal`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use redis::{Arg, Cmd, Value};

/// The score of a schedule that is never due.
const NEVER: u64 = u64::MAX;

/// The steps of all schedules, as the store has answered them, and the tasks that ran for them.
#[derive(Debug, Default)]
pub struct TickJournal(Mutex<Ticks>);

#[derive(Debug, Default)]
struct Ticks {
    steps: Vec<Step>,
    /// When each schedule is due.
    due: BTreeMap<Schedule, u64>,
    /// Those that move from queue to queue. They have no instants.
    moving: BTreeSet<Schedule>,
    /// The instants whose task has succeeded.
    ran: BTreeSet<(Schedule, u64)>,
    /// How many calls were refused because another one was faster, or the instant has not come.
    refused: u64,
}

/// A queue, and the name of a schedule in it.
pub type Schedule = (String, String);

/// One step of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// When the store took it, in ns.
    pub at: u64,
    /// The schedule.
    pub schedule: Schedule,
    /// When the schedule was due, in ms.
    pub due_ms: u64,
    /// The instant, in ms.
    pub nominal_ms: u64,
    /// How many instants before it were missed.
    pub missed: u64,
    /// When the schedule is due next, in ms.
    pub next_ms: u64,
    /// What became of the instant: `stored`, `overlap`, `missed`, or the owner of the biz id.
    pub what: String,
}

impl TickJournal {
    fn ticks(&self) -> MutexGuard<'_, Ticks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a call of a script and its answer. Returns what is wrong with it.
    pub(crate) fn observe(
        &self,
        at: u64,
        verb: &str,
        command: &Cmd,
        answer: &Value,
    ) -> Option<String> {
        if !matches!(verb, "schedule" | "reschedule" | "tick") {
            return None;
        }
        let (queue, words) = arguments(command)?;
        let (schedule, mut ticks) = ((queue, words.get(1)?.clone()), self.ticks());
        let (status, what) = status(answer);
        if status != "OK" {
            ticks.refused += u64::from(verb == "tick");
            return None;
        }
        match verb {
            "schedule" => ticks.store(schedule, &words[2], &words[4]),
            "reschedule" => ticks.reschedule(schedule, &words),
            // A run out of turn leaves the instants as they are.
            _ if words[3].is_empty() => None,
            _ => ticks.step(at, schedule, &words, what),
        }
    }

    /// Records that the task of an instant has succeeded.
    pub(crate) fn ran(&self, queue: &str, name: &str, nominal_ms: u64) {
        self.ticks().ran.insert(((queue.to_owned(), name.to_owned()), nominal_ms));
    }

    /// Forgets what the store has lost: everything since that time.
    pub(crate) fn lose_since(&self, since: u64) {
        let mut ticks = self.ticks();
        ticks.steps.retain(|step| step.at < since);
        // The next step says when the schedule was due.
        ticks.due.clear();
        ticks.moving.clear();
    }

    /// Returns all steps that the store still knows, in their order.
    pub fn steps(&self) -> Vec<Step> {
        self.ticks().steps.clone()
    }

    /// Returns how many calls were refused.
    pub fn refused(&self) -> u64 {
        self.ticks().refused
    }

    /// Returns the instants whose tasks are stored, and of which none has succeeded.
    pub fn not_run(&self) -> Vec<(Schedule, u64)> {
        let ticks = self.ticks();
        let stored = ticks.steps.iter().filter(|step| step.what == "stored");
        let instants = stored.map(|step| (step.schedule.clone(), step.nominal_ms));
        instants.filter(|instant| !ticks.ran.contains(instant)).collect()
    }
}

impl Ticks {
    /// One that is new moves: until it is settled, its instants may be taken in another queue.
    fn store(&mut self, schedule: Schedule, edition: &str, due: &str) -> Option<String> {
        if edition == "0" {
            self.moving.insert(schedule.clone());
        }
        if self.due.contains_key(&schedule) && !self.moving.contains(&schedule) {
            return self.set_due(schedule, due);
        }
        self.due.insert(schedule, number(due));
        None
    }

    fn reschedule(&mut self, schedule: Schedule, words: &[String]) -> Option<String> {
        match &*words[3] {
            "move" => {
                self.moving.insert(schedule);
                None
            }
            "settle" => {
                self.moving.remove(&schedule);
                self.due.get(&schedule).and_then(|due_ms| self.is_due_again(&schedule, *due_ms))
            }
            "remove" => self.forget(&schedule),
            "take" => self.set_due(schedule, &words[5]),
            "pause" => self.set_due(schedule, "inf"),
            due => self.set_due(schedule, due),
        }
    }

    /// Returns what is wrong if a change of a schedule makes an instant of the past due.
    fn set_due(&mut self, schedule: Schedule, due: &str) -> Option<String> {
        let due_ms = number(due);
        let wrong = self.is_due_again(&schedule, due_ms);
        self.due.insert(schedule, due_ms);
        wrong
    }

    fn is_due_again(&self, schedule: &Schedule, due_ms: u64) -> Option<String> {
        let steps = self.steps.iter().filter(|step| step.schedule.1 == schedule.1);
        let last = steps.map(|step| step.nominal_ms).max().filter(|last| due_ms <= *last);
        last.map(|last| format!("{schedule:?} is due at {due_ms} again, after {last}"))
    }

    /// The instants of a schedule that has moved still count.
    fn forget(&mut self, schedule: &Schedule) -> Option<String> {
        self.due.remove(schedule);
        if !self.moving.remove(schedule) {
            self.steps.retain(|step| step.schedule.1 != schedule.1);
        }
        None
    }

    fn step(
        &mut self,
        at: u64,
        schedule: Schedule,
        words: &[String],
        what: String,
    ) -> Option<String> {
        let (due_ms, next_ms) = (number(&words[3]), number(&words[4]));
        let (nominal_ms, missed) = (number(&words[5]), number(&words[6]));
        let due = self.due.insert(schedule.clone(), next_ms);
        // A name has one schedule, in whichever queue.
        let mut before = self.steps.iter().filter(|step| step.schedule.1 == schedule.1);
        let wrong = if before.any(|step| step.nominal_ms == nominal_ms) {
            Some(format!("{schedule:?} has the instant {nominal_ms} twice"))
        } else if due.is_some_and(|due| due != due_ms) {
            Some(format!("{schedule:?} goes on from {due_ms}, and is due at {due:?}"))
        } else if nominal_ms < due_ms || next_ms <= nominal_ms {
            Some(format!("{schedule:?} goes from {due_ms} to {nominal_ms}, then to {next_ms}"))
        } else {
            None
        };
        self.steps.push(Step { at, schedule, due_ms, nominal_ms, missed, next_ms, what });
        wrong
    }
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or(NEVER)
}

/// Returns the queue of a call of a script, and its arguments after the keys.
fn arguments(command: &Cmd) -> Option<(String, Vec<String>)> {
    let words: Vec<String> = command
        .args_iter()
        .map(|word| match word {
            Arg::Simple(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            _ => String::new(),
        })
        .collect();
    let keys: usize = words.get(2)?.parse().ok()?;
    let (_, rest) = words.get(3)?.split_once(':')?;
    let queue = rest.split_once(":0}").map_or(rest, |(queue, _)| queue).to_owned();
    Some((queue, words.into_iter().skip(3 + keys).collect()))
}

/// Returns the first two words of an answer.
fn status(answer: &Value) -> (String, String) {
    let Value::Array(words) = answer else { return Default::default() };
    let text = |at: usize| match words.get(at) {
        Some(Value::BulkString(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        Some(Value::SimpleString(text)) => text.clone(),
        _ => String::new(),
    };
    (text(0), text(1))
}

#[cfg(test)]
mod tests {
    use redis::cmd;

    use super::*;

    fn call(journal: &TickJournal, queue: &str, verb: &str, words: &[&str]) -> Option<String> {
        call_of(journal, queue, (verb, "1"), words)
    }

    fn call_of(
        journal: &TickJournal,
        queue: &str,
        (verb, edition): (&str, &str),
        words: &[&str],
    ) -> Option<String> {
        let mut call = cmd("EVALSHA");
        call.arg("sha").arg(1).arg(format!("{{simulation:{queue}:0}}:meta"));
        for word in ["", "digest", edition].iter().chain(words) {
            call.arg(word);
        }
        let answer = Value::Array(
            ["OK", "stored"].map(|word| Value::BulkString(word.as_bytes().to_vec())).to_vec(),
        );
        journal.observe(7, verb, &call, &answer)
    }

    fn tick(journal: &TickJournal, nominal: &str, next: &str) -> Option<String> {
        call(journal, "work", "tick", &[nominal, next, nominal, "0", "id"])
    }

    #[test]
    fn an_instant_that_comes_twice_or_is_left_out_is_wrong() {
        let journal = TickJournal::default();
        assert_eq!(tick(&journal, "10", "20"), None);
        assert_eq!(tick(&journal, "20", "30"), None);
        assert!(tick(&journal, "20", "30").unwrap().contains("twice"));
        assert!(tick(&journal, "40", "50").unwrap().contains("goes on from 40"));
        assert!(tick(&journal, "50", "50").unwrap().contains("goes from 50 to 50"));
        journal.ran("work", "digest", 20);
        let left: Vec<u64> = journal.not_run().into_iter().map(|(_, nominal)| nominal).collect();
        assert_eq!(left, [10, 40, 50]);
        journal.lose_since(7);
        assert_eq!(journal.steps(), []);
        assert_eq!(tick(&journal, "20", "30"), None);
    }

    #[test]
    fn an_instant_that_comes_again_in_another_queue_is_wrong() {
        let journal = TickJournal::default();
        assert_eq!(tick(&journal, "10", "20"), None);
        let of = |queue: &str, words: &[&str]| call(&journal, queue, "reschedule", words);
        assert_eq!(of("work", &["move", ""]), None);
        assert!(of("other", &["take", "", "10", "10", "1"]).unwrap().contains("due at 10 again"));
        assert_eq!(of("other", &["take", "", "20", "10", "1"]), None);
        assert_eq!(of("work", &["remove", ""]), None);
        assert_eq!(of("other", &["settle", ""]), None);
        let again = call(&journal, "other", "tick", &["10", "20", "10", "0", "id"]);
        assert!(again.unwrap().contains("twice"));
        assert_eq!(of("other", &["remove", ""]), None);
        assert_eq!(journal.steps(), []);
    }

    #[test]
    fn a_schedule_that_moves_may_be_stored_with_an_instant_that_is_taken_meanwhile() {
        let journal = TickJournal::default();
        assert_eq!(tick(&journal, "10", "20"), None);
        let store = |edition: &str| {
            call_of(&journal, "other", ("schedule", edition), &["1.0.0", "20", "{}", ""])
        };
        let of = |queue: &str, words: &[&str]| call(&journal, queue, "reschedule", words);
        assert_eq!(store("0"), None);
        assert_eq!(tick(&journal, "20", "30"), None);
        assert_eq!(store("1"), None);
        assert_eq!(of("work", &["move", ""]), None);
        assert!(of("other", &["settle", ""]).unwrap().contains("due at 20 again"));
        assert_eq!(of("other", &["move", ""]), None);
        assert_eq!(of("other", &["take", "", "30", "20", "1"]), None);
        assert_eq!(of("work", &["remove", ""]), None);
        assert_eq!(of("other", &["settle", ""]), None);
        assert!(store("4").unwrap().contains("due at 20 again"));
    }
}
