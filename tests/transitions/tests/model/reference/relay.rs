//! Effects of the queue on itself, and tasks that give up.

use std::collections::BTreeMap;

use optimus_core::{
    PrerequisiteFailure::{Cancel, Run},
    TaskId, TaskState,
};

use super::{
    Place, Queue, Tie,
    after::{Kept, MARKS, VOID, name_of, parts},
};
use crate::{answer::Answer, observed::Observed};

/// With this much work, a call applies no further effect.
const WORK_MAX: usize = 256;

/// How many of many waiters an effect reaches, and how many tasks give up in a call.
const TURN: usize = 128;
const GIVE_UP_TURN: usize = 64;

/// How many numbers of effects a ms has.
const NUMBERS_A_MS: u64 = 1024;

impl Queue {
    /// Writes the effects of this call. Those of tasks that end in an order that the store chose
    /// have the order of the store.
    pub(super) fn write_posts(&mut self, now: u64, seen: Option<&Observed<'_>>) -> bool {
        let mut posting = std::mem::take(&mut self.outbox.posting);
        if let Some(seen) = seen {
            // The same effect may be posted more than once.
            let mut last = seen.outbox[seen.outbox.len().saturating_sub(posting.len())..].to_vec();
            posting.sort_by_cached_key(|effect| {
                let place = last.iter().position(|other| other == effect)?;
                last[place].clear();
                Some(place)
            });
        }
        let is_posted = !posting.is_empty();
        if is_posted && self.outbox.effects.is_empty() {
            self.outbox.since = now;
        }
        if is_posted {
            self.outbox.posted = self.outbox.posted.max(now * NUMBERS_A_MS);
        }
        for effect in posting {
            self.outbox.posted += 1;
            self.outbox.effects.push_back((self.outbox.posted, effect));
        }
        is_posted
    }

    /// Applies effects of the queue on itself, and removes them.
    pub(super) fn apply(&mut self, now: u64, effects: &[String]) -> Answer {
        let done = self.outbox.applied;
        let (mut last, mut work, mut ends) = (done, 0, Vec::new());
        let before = self.ties.clone();
        for effect in effects {
            let mut words = effect.splitn(5, ' ');
            let number: u64 = words.next().and_then(|n| n.parse().ok()).expect("a number");
            let [_, state, from, name] = std::array::from_fn(|_| words.next().expect("a word"));
            if work >= WORK_MAX {
                break;
            }
            if number > last {
                last = number;
                work += 1 + self.tell_all(now, &before, (state, from), name, &mut ends);
            }
        }
        let mut posted = false;
        if last > done {
            self.outbox.applied = last;
            self.has_after = true;
            for (id, name, why) in &ends {
                self.note_unmet(now, id, name, why);
                self.end_cancelled(now, id);
            }
            self.let_go(now);
            posted = self.write_posts(now, None);
        }
        self.outbox.effects.retain(|(number, _)| *number > last);
        Answer::Applied { last, posted, left: self.outbox.effects.len() as u64 }
    }

    /// Passes the end of a task on to some of the tasks that wait for it. Returns how many.
    fn tell_all(
        &mut self,
        now: u64,
        before: &BTreeMap<String, Tie>,
        (state, from): (&str, &str),
        name: &str,
        ends: &mut Vec<(TaskId, String, String)>,
    ) -> usize {
        if state != "success" && self.goes_on(name, now) {
            return 0;
        }
        let is_many = matches!(self.ties.get(name), Some(Tie::Many(_)));
        let waiters = match (is_many, before.get(name), self.ties.get(name)) {
            (true, Some(tie), _) => {
                let from: u64 = from.parse().expect("a score");
                tie.waiters().into_iter().filter(|(at, _)| *at > from).take(TURN).collect()
            }
            (_, _, Some(tie)) => tie.waiters(),
            _ => Vec::new(),
        };
        for (_, waiter) in &waiters {
            let (id, mark) = parts(self, waiter);
            if state == "success" {
                self.untie(name, waiter);
                self.strike(&id, mark);
                continue;
            }
            let Some(task) = self.tasks.get(&id) else { continue };
            let waits = task.unmet.as_ref().is_some_and(|unmet| unmet.marks.contains(mark));
            // A task that is no longer stored does not come back. Another one may have its biz id.
            let is_void = state == VOID || state == "forgotten" && !name.contains(':');
            match task.after.as_ref().map(|after| after.on_failure) {
                Some(Run) if waits => {
                    self.strike(&id, mark);
                    self.untie(name, waiter);
                }
                Some(policy) if waits && (policy == Cancel || is_void) => {
                    let why = if state == VOID { "cancelled" } else { state };
                    self.leave_unmet(&id, Some(if is_void { Kept::Void } else { Kept::Ended }));
                    ends.push((id, name.to_owned(), why.to_owned()));
                }
                _ => {}
            }
        }
        if is_many && waiters.len() == TURN {
            let (last, _) = waiters[TURN - 1];
            self.outbox.posting.push(format!("end {state} {last} {name}"));
        }
        waiters.len()
    }

    /// Returns whether a task that has ended runs again, or another one has its biz id.
    fn goes_on(&self, name: &str, now: u64) -> bool {
        if name.contains(':') {
            return self.marks.get(name).is_some_and(|mark| {
                if mark.done {
                    return now < mark.valid_until;
                }
                self.state(&mark.owner) != TaskState::Dead
            });
        }
        let id = self.tasks.keys().find(|id| id.stored() == name);
        id.is_some_and(|id| {
            let ended = [TaskState::Dead, TaskState::Cancelled, TaskState::Forgotten];
            !ended.contains(&self.state(id))
        })
    }

    /// Notes in the error history of a task why it ends.
    fn note_unmet(&mut self, now: u64, id: &TaskId, name: &str, why: &str) {
        let reference = format!("{}/{name}", id.queue()).replace('/', "\\/");
        let task = self.task(id);
        let (failures, losses, _) = task.tries.unwrap_or_default();
        task.tries = Some(task.tries.unwrap_or_default());
        let attempt = failures + losses;
        task.remember(
            now,
            &format!(
                concat!(
                    r#"{{"reason":"unmet","attempt":{attempt},"worker":"","#,
                    r#""ref":"{reference}","state":"{why}"}}"#
                ),
                attempt = attempt,
                reference = reference,
                why = why,
            ),
        );
    }

    /// Ends tasks that give up.
    pub(super) fn reask(&mut self, now: u64) -> Answer {
        let waits = self
            .tasks
            .iter()
            .filter_map(|(id, task)| Some((task.unmet.as_ref()?.gives_up_at?, id.clone())));
        let mut waits: Vec<(u64, TaskId)> = waits.collect();
        waits.sort();
        let due = waits.iter().take(GIVE_UP_TURN).filter(|(at, _)| *at <= now).count();
        let next_ms = waits.get(due).map(|(at, _)| at.saturating_sub(now));
        let mut ends = Vec::new();
        for (_, id) in &waits[..due] {
            let task = &self.tasks[id];
            let mark = task.unmet.as_ref().expect("it waits").marks.as_bytes()[0];
            let at = MARKS.iter().position(|known| *known == mark).expect("a mark");
            let name = name_of(&task.after.as_ref().expect("it has some").prerequisites[at]);
            self.leave_unmet(id, Some(Kept::Ended));
            ends.push((id, name));
        }
        for (id, name) in ends {
            self.note_unmet(now, id, &name, "waiting");
            self.end(id, Place::Dead(now));
        }
        let posted = self.write_posts(now, None);
        Answer::Reasked { tasks: due, posted, next_ms }
    }
}
