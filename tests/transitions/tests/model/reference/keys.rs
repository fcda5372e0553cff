//! The content of the store's keys for this queue, according to `lua/README.md` and `keys.rs`.

use std::{collections::BTreeMap, fmt::Display};

use optimus_core::{TaskId, TaskState};

use super::{Entry, Mark, Place, Queue, Task, Tie};
use crate::keys_as_lines::Picture;

impl Queue {
    /// Returns every key with its content, one line per member; members without an order are
    /// sorted.
    pub(crate) fn picture(&self, now: u64) -> Picture {
        let mut picture = Picture::default();
        self.draw_tasks(&mut picture);
        self.draw_workers(&mut picture);
        self.draw_clients(&mut picture);
        let entries = self.ready.iter().map(Entry::shown);
        picture.list("ready", entries);
        let mut skips: BTreeMap<&TaskId, usize> = BTreeMap::new();
        for entry in self.ready.iter().filter(|entry| entry.tombstone) {
            *skips.entry(&entry.id).or_default() += 1;
        }
        for (id, count) in skips {
            picture.pair("skips", id.stored(), count);
        }
        for (id, at) in &self.deleted {
            picture.pair("deleted", id.stored(), at);
        }
        for (id, task) in &self.tasks {
            if let (Some(lane), Some(at)) = (&task.lane, task.lane_at) {
                picture.pair(&format!("lane:{}", lane.key), id.stored(), at);
            }
        }
        for (key, since) in &self.lanes_since {
            picture.pair("lanes", key, since);
        }
        self.draw_dependants(&mut picture);
        picture.list("success", self.success.iter().map(|(_, summary)| summary.clone()));
        for (id, result) in &self.results {
            let result = String::from_utf8_lossy(result).into_owned();
            picture.list(&format!("result:{}", id.stored()), [result]);
        }
        for (name, mark) in self.marks.iter().filter(|(_, mark)| !mark.is_over(now)) {
            picture.list(&format!("biz:{name}"), [mark.shown()]);
        }
        let meta = [
            ("fence", self.fence),
            ("due", self.due_hint.unwrap_or(0)),
            ("tombstones", self.tombstones() as u64),
            ("dead_bytes", self.ended_bytes(TaskState::Dead)),
            ("cancelled_bytes", self.ended_bytes(TaskState::Cancelled)),
            ("purged", self.purged),
            ("purged_born", self.purged_born.unwrap_or(0)),
            ("purge_from", self.purge_from as u64),
            ("paused", self.paused_since.unwrap_or(0)),
            ("watched_at", self.watched_at.unwrap_or(0)),
            ("lease_min", self.lease_min.unwrap_or(0)),
            ("needs", self.needs()),
            ("widest", if self.widest > 1 { self.widest.into() } else { 0 }),
            ("posted", self.outbox.posted),
            ("places", self.places.unsigned_abs()),
            ("blocked", self.blocked()),
        ];
        let meta = meta.into_iter().chain(self.totals_of_meta());
        for (name, value) in meta.filter(|(_, value)| *value > 0) {
            picture.pair("meta", name, value);
        }
        if let Some(since) = self.paused_since {
            picture.pair("paused", "", since);
        }
        for (lane, width) in &self.widths {
            picture.pair("widths", lane, width);
        }
        if let Some((worker, due)) = &self.timer {
            picture.pair("meta", "timer", format_args!("{worker} {due}"));
        }
        picture
    }

    fn totals_of_meta(&self) -> [(&'static str, u64); 5] {
        [
            ("cut_successes", self.totals.successes - self.success.len() as u64),
            ("retries", self.totals.retries),
            ("losses", self.totals.losses),
            ("deaths", self.totals.deaths),
            ("cancels", self.totals.cancels),
        ]
    }

    fn draw_tasks(&self, picture: &mut Picture) {
        for (id, task) in &self.tasks {
            let id = id.stored();
            picture.member("tasks", &id);
            match task.place {
                Place::Delayed(due) => picture.pair("delayed", &id, due),
                Place::Retry(due) => picture.pair("retry", &id, due),
                Place::Dead(at) => picture.pair("dead", &id, at),
                Place::Cancelled(at) => picture.pair("cancelled", &id, at),
                Place::Ranked(rank) => picture.pair("priority", &id, rank),
                Place::Blocked | Place::Waits | Place::Ready | Place::Working(_) => {}
            }
            task.draw_sides(&id, picture);
        }
    }

    fn draw_dependants(&self, picture: &mut Picture) {
        for (id, task) in &self.tasks {
            if let Some(unmet) = &task.unmet {
                picture.pair("unmet", id.stored(), unmet.shown());
                if let Some(at) = unmet.gives_up_at {
                    picture.pair("giveups", id.stored(), at);
                }
            }
            if let Some(unmet) = &task.unmet_ended {
                picture.pair("unmet_ended", id.stored(), unmet.shown());
            }
        }
        for (name, tie) in &self.ties {
            match tie {
                Tie::Few(waiters) => picture.pair("ties", name, waiters.join(" ")),
                Tie::Many(waiters) => {
                    picture.pair("ties", name, "*");
                    for (at, waiter) in waiters {
                        picture.pair(&format!("after:{name}"), waiter, at);
                    }
                }
            }
        }
        for (name, (id, at)) in &self.outcomes {
            picture.list(&format!("outcome:{name}"), [format!("{} {at}", id.stored())]);
        }
        let Some(own) = self.own.as_deref() else { return };
        for (number, effect) in &self.outbox.effects {
            picture.pair(&format!("outbox:{own}"), format_args!("{number} {effect}"), number);
        }
        if !self.outbox.effects.is_empty() {
            picture.pair("outboxes", own, self.outbox.since);
        }
        if self.outbox.applied > 0 {
            picture.pair("applied", own, self.outbox.applied);
        }
    }

    fn draw_workers(&self, picture: &mut Picture) {
        for (name, worker) in &self.workers {
            let half = if worker.is_long { ".5" } else { "" };
            picture.pair("workers", name, format_args!("{}{half}", worker.expiry));
            picture.pair(&format!("worker:{name}"), "description", "{}");
            picture.pair(&format!("worker:{name}"), "lease_ms", worker.lease_ms);
            if let Some((graced, was_long)) = worker.graced {
                let half = if was_long { ".5" } else { "" };
                picture.pair(&format!("worker:{name}"), "graced", format_args!("{graced}{half}"));
            }
            let working = format!("working:{name}");
            for (id, token) in &worker.holds {
                picture.pair(&working, id.stored(), token);
            }
            if let Some(last) = worker.last_claim {
                let alone = if worker.alone { " alone" } else { "" };
                picture.pair(&working, "#", format_args!("{last}{alone}"));
            }
        }
        for (name, list) in &self.cancel_wakeups {
            let asked = list.iter().map(|lease| format!("{} {}", lease.id.stored(), lease.token));
            picture.list(&format!("wake:{name}"), asked);
        }
    }

    fn draw_clients(&self, picture: &mut Picture) {
        for (client, ledger) in &self.ledgers {
            let key = format!("ledger:{client}");
            for (slot, (number, receipts)) in &ledger.slots {
                let taken = receipts.iter().enumerate().filter_map(|(position, owner)| {
                    Some(format!("{}={}", position + 1, owner.as_ref()?.stored()))
                });
                let words: Vec<String> = std::iter::once(number.to_string()).chain(taken).collect();
                picture.pair(&key, slot, words.join(" "));
            }
            for (slot, lost) in &ledger.lost {
                let gaps: Vec<_> = lost.iter().map(|(a, b)| format!("{a} {b}")).collect();
                picture.pair(&key, format_args!("lost{slot}"), gaps.join(" "));
            }
            if let Some(kept) = ledger.kept_at {
                picture.pair("ledgers", client, kept);
            }
        }
        for (client, completions) in &self.completions {
            let completions =
                completions.iter().map(|(id, state)| format!("{} {state}", id.stored()));
            picture.list(&format!("completions:{client}"), completions);
        }
    }
}

impl Task {
    /// Draws the task's data apart from its record.
    fn draw_sides(&self, id: &str, picture: &mut Picture) {
        if self.large {
            picture.member("blobs", id);
        }
        if self.priority != 0 {
            picture.pair("priorities", id, self.priority);
        }
        let counts = self.tries.map(|(failures, losses, misfits)| {
            let start_by = self.start_by_ms.map_or(String::new(), |ms| format!(":{ms}"));
            format!("{failures}:{losses}:{misfits}{start_by}")
        });
        let due = self.due_again.map(|due| format!("@{due}"));
        if counts.is_some() || due.is_some() {
            let [counts, due] = [counts, due].map(Option::unwrap_or_default);
            picture.pair("tries", id, counts + &due);
        }
        if !self.errors.is_empty() {
            let lines: Vec<&str> = self.errors.iter().map(String::as_str).collect();
            picture.pair("errors", id, lines.join("\n"));
        }
        if let Some(asked) = self.stop_asked {
            picture.pair("cancel", id, asked);
        }
        if !self.waiters.is_empty() {
            picture.pair("waiters", id, self.waiters.join(","));
        }
    }
}

impl Entry {
    fn shown(&self) -> String {
        let id = self.id.stored();
        self.stamp.map_or(id.clone(), |stamp| format!("{}:{id}", base36(stamp)))
    }
}

impl Mark {
    /// Returns whether the owner has succeeded and the window is over. Then the key may have
    /// expired.
    fn is_over(&self, now: u64) -> bool {
        self.done && self.valid_until <= now
    }

    fn shown(&self) -> String {
        let phase = if self.done { 'D' } else { 'L' };
        format!("{}:{}:{phase}", self.owner.stored(), self.valid_until)
    }
}

/// Eight digits of base 36.
fn base36(mut ms: u64) -> impl Display {
    let mut digits = ['0'; 8];
    for digit in digits.iter_mut().rev() {
        let value = u32::try_from(ms % 36).expect("a digit");
        *digit = char::from_digit(value, 36).expect("a digit of base 36");
        ms /= 36;
    }
    digits.iter().collect::<String>()
}
