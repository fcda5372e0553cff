//! The specification of schedules in plain Rust.

use std::collections::{BTreeMap, VecDeque};

use optimus_core::{Missed, Overlap, StoredAs, TaskId};

use super::step::{Content, OF_CODE};

/// How many instants a history has at most.
const HISTORY_MAX: usize = 100;
/// How long after its instant a task still runs that leaves missed instants out.
const LATE_MAX_MS: u64 = 60_000;

/// The schedules of a queue without a store.
#[derive(Debug, Default)]
pub(super) struct Reference {
    pub(super) known: BTreeMap<&'static str, Known>,
    /// The tasks that have a record, and whether they are dead or cancelled.
    pub(super) tasks: BTreeMap<TaskId, bool>,
    /// The task that has taken the biz id last.
    pub(super) owner: Option<TaskId>,
}

/// A stored schedule.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) edition: u64,
    pub(super) release: Option<&'static str>,
    pub(super) content: Content,
    /// `None` while it is paused.
    pub(super) due: Option<u64>,
    pub(super) last: Option<u64>,
    pub(super) last_id: Option<TaskId>,
    /// The instants with what became of them, the latest first.
    pub(super) history: VecDeque<(u64, &'static str)>,
}

/// What a caller has read of a schedule that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) name: &'static str,
    pub(super) edition: u64,
    pub(super) due: u64,
    pub(super) content: Content,
}

/// A step to the next instant: when it is due, the instant, how many were missed before, and when
/// it is due next; and whether it has a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) due: u64,
    pub(super) nominal: u64,
    pub(super) missed: usize,
    pub(super) next: u64,
    pub(super) submits: bool,
}

/// What is due: the schedules in their order, how long until another is due, and the schedules of
/// code that are not stored.
pub(super) type Due = (Vec<(String, u64)>, Option<u64>, Vec<String>);

impl Reference {
    pub(super) fn put(
        &mut self,
        now: u64,
        (name, release): (&'static str, Option<&'static str>),
        content: Content,
    ) -> StoredAs {
        let Some(known) = self.known.get_mut(name) else {
            let due = Some(now + content.every_ms);
            let history = VecDeque::new();
            // It was stored, and then settled.
            let (last, last_id, edition) = (None, None, 2);
            let known = Known { edition, release, content, due, last, last_id, history };
            self.known.insert(name, known);
            return StoredAs::Stored;
        };
        let stored_as = match (known.release, release) {
            (Some(_), None) => return StoredAs::IsOfCode,
            (None, Some(_)) => return StoredAs::IsMadeAtRunTime,
            (stored, own) if stored == own && known.content == content => {
                return StoredAs::Unchanged;
            }
            (Some("1.10.0"), Some("1.9.0")) => return StoredAs::KeptNewer("1.10.0".to_owned()),
            (Some(stored), Some(own)) if stored == own => StoredAs::Replaced,
            _ => StoredAs::Stored,
        };
        if known.due.is_some() && known.content.every_ms != content.every_ms {
            known.due = Some(now.max(known.last.unwrap_or(0)) + content.every_ms);
        }
        (known.edition, known.release, known.content) = (known.edition + 1, release, content);
        stored_as
    }

    /// Returns whether there is such a schedule.
    pub(super) fn pause(&mut self, name: &str) -> bool {
        self.change(name, |known| known.due = None)
    }

    /// The instants of the pause are not missed ones.
    pub(super) fn resume(&mut self, now: u64, name: &str) -> bool {
        self.change(name, |known| {
            known.due = Some(now.max(known.last.unwrap_or(0)) + known.content.every_ms);
        })
    }

    pub(super) fn remove(&mut self, name: &str) -> bool {
        self.known.remove(name).is_some()
    }

    fn change(&mut self, name: &str, change: impl FnOnce(&mut Known)) -> bool {
        let Some(known) = self.known.get_mut(name) else { return false };
        known.edition += 1;
        change(known);
        true
    }

    pub(super) fn look(&self, now: u64) -> Due {
        let missing = OF_CODE
            .iter()
            .filter(|name| self.known.get(*name).is_none_or(|known| known.release.is_none()));
        let missing = missing.map(|name| (*name).to_owned()).collect();
        let due_of = |is_of_code: bool| {
            let all = self.known.iter().filter(move |(name, known)| {
                known.release.is_some() == is_of_code && (!is_of_code || OF_CODE.contains(name))
            });
            all.filter_map(|(name, known)| Some((known.due?, *name)))
        };
        let mut own: Vec<_> = due_of(false).collect();
        own.sort_unstable();
        let all: Vec<(u64, &str)> = due_of(true).chain(own).collect();
        let next = all.iter().filter(|(due, _)| *due > now).map(|(due, _)| due - now).min();
        let due = all.into_iter().filter(|(due, _)| *due <= now);
        (due.map(|(due, name)| (name.to_owned(), due)).collect(), next, missing)
    }

    pub(super) fn read(&self, name: &str) -> Reading {
        let (name, known) = self.known.get_key_value(name).expect("it is due");
        let due = known.due.expect("it is due");
        Reading { name, edition: known.edition, due, content: known.content }
    }

    /// Returns the turns that take a schedule to the present, in their order.
    pub(super) fn turns(reading: Reading, now: u64) -> Vec<Turn> {
        let Reading { due, content: Content { every_ms, missed, .. }, .. } = reading;
        let instants: Vec<u64> = (due..=now).step_by(usize::try_from(every_ms).unwrap()).collect();
        let latest = *instants.last().expect("it is due");
        let one = |submits| Turn {
            due,
            nominal: latest,
            missed: instants.len().min(1_000) - 1,
            next: latest + every_ms,
            submits,
        };
        match missed {
            Missed::All => {
                let first = instants.len().saturating_sub(1_000);
                let turn = |at: usize| Turn {
                    due: if at == first { due } else { instants[at] },
                    nominal: instants[at],
                    missed: 0,
                    next: instants[at] + every_ms,
                    submits: true,
                };
                (first..instants.len()).map(turn).collect()
            }
            Missed::Skip => vec![one(now - latest <= LATE_MAX_MS)],
            Missed::RunOnce => vec![one(true)],
        }
    }

    /// Returns the answer to a turn; an id stands for any.
    pub(super) fn tick(&mut self, now: u64, reading: Reading, turn: Turn) -> String {
        let Some(known) = self.known.get(reading.name) else { return "stale".to_owned() };
        if known.edition != reading.edition || known.due != Some(turn.due) {
            return "stale".to_owned();
        } else if turn.due > now {
            return format!("early {}", turn.due - now);
        }
        let is_live = |id: &TaskId| self.tasks.get(id) == Some(&false);
        let skips = known.content.overlap == Overlap::Skip;
        let what = if !turn.submits {
            "missed"
        } else if skips && known.last_id.as_ref().is_some_and(is_live) {
            "overlap"
        } else {
            self.stored_or_taken(known.content)
        };
        let known = self.known.get_mut(reading.name).expect("it is known");
        (known.due, known.last) = (Some(turn.next), Some(turn.nominal));
        known.note(turn.nominal, what);
        what.to_owned()
    }

    /// Returns the answer to a run out of turn, which does not look whether an earlier task runs.
    pub(super) fn run_now(&mut self, now: u64, name: &str) -> Option<&'static str> {
        let what = self.stored_or_taken(self.known.get(name)?.content);
        self.known.get_mut(name)?.note(now, what);
        Some(what)
    }

    fn stored_or_taken(&self, content: Content) -> &'static str {
        let is_taken = self.owner.as_ref().is_some_and(|owner| self.tasks.contains_key(owner));
        if content.is_unique && is_taken { "taken" } else { "stored" }
    }

    /// Adds the task of a turn, whose id only the store knows.
    pub(super) fn stored(&mut self, name: &str, id: &TaskId) {
        let known = self.known.get_mut(name).expect("it is known");
        known.last_id = Some(id.clone());
        let is_unique = known.content.is_unique;
        assert!(self.tasks.insert(id.clone(), false).is_none(), "{id} is stored twice");
        if is_unique {
            self.owner = Some(id.clone());
        }
    }

    /// Notes that a task has succeeded.
    pub(super) fn succeeded(&mut self, id: &TaskId) {
        self.tasks.remove(id);
    }

    /// Notes that a task is dead, or was cancelled, which frees its biz id.
    pub(super) fn ended(&mut self, id: &TaskId, is_cancelled: bool) {
        self.tasks.insert(id.clone(), true);
        self.owner.take_if(|owner| is_cancelled && owner == id);
    }
}

impl Known {
    fn note(&mut self, nominal: u64, what: &'static str) {
        self.history.push_front((nominal, what));
        self.history.truncate(HISTORY_MAX);
    }
}
