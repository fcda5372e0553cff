//! The specification of a dispenser in plain Rust.

use std::collections::{BTreeMap, BTreeSet};

use optimus_core::{Added, ItemPlace};

use super::step::{HOLD, HOLD_MAX};

/// The span for which a finished item is remembered once or twice, and the longest rebuild.
const HOUR: u64 = 3_600_000;

/// How many places a ms has, and how many ms a step of priority counts.
const PLACES: i64 = 1_024;
const PRIORITY_MS: i64 = 60_000;

/// A dispenser without a store.
#[derive(Debug, Default)]
pub(super) struct Reference {
    pub(super) pool: BTreeMap<String, i64>,
    pub(super) held: BTreeMap<String, Held>,
    pub(super) assignees: BTreeMap<String, u64>,
    returned: BTreeMap<String, Return>,
    /// By the hour in which they were finished.
    done: BTreeMap<u64, BTreeMap<String, String>>,
    /// The latest hour with a finished item, and until when it counts after a clock that was set
    /// back.
    latest: Option<(u64, Option<u64>)>,
    rebuild: Option<Rebuild>,
    closed: Option<String>,
    place: i64,
}

/// Who has an item: its rank, its assignee, and when its time is over.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Held {
    pub(super) rank: i64,
    pub(super) assignee: String,
    pub(super) until: u64,
}

/// An item that came back.
#[derive(Debug, Clone)]
struct Return {
    times: u64,
    until: u64,
    assignee: String,
}

#[derive(Debug)]
struct Rebuild {
    name: String,
    begun: u64,
    seen: BTreeSet<String>,
}

impl Rebuild {
    fn is_open(&self, now: u64) -> bool {
        now.abs_diff(self.begun) < HOUR
    }
}

impl Reference {
    pub(super) fn add(&mut self, now: u64, items: &[(String, i8)]) -> Added {
        let mut added = Added::default();
        let mut place = (signed(now) * PLACES).max(self.place + 1);
        let mut named = BTreeSet::new();
        for (item, priority) in items {
            let rank = place - i64::from(*priority) * PRIORITY_MS * PLACES;
            place += 1;
            let is_first = named.insert(item.clone());
            if self.held.contains_key(item) {
                added.assigned += 1;
            } else if self.is_done(now, item) {
                added.done += 1;
            } else if let Some(known) = self.pool.get_mut(item) {
                added.open += 1;
                if is_first {
                    *known = rank.min(*known);
                }
            } else {
                added.added += 1;
                self.pool.insert(item.clone(), rank);
            }
        }
        self.place = place - 1;
        if let Some(open) = self.rebuild.as_mut().filter(|open| open.is_open(now)) {
            open.seen.append(&mut named);
        }
        added
    }

    pub(super) fn assign(&mut self, now: u64, who: &str, count: usize) -> Vec<(String, u64)> {
        self.sweep(now, Some(who));
        let mine = self.of(who);
        for (item, _) in mine.iter().skip(count) {
            self.put_back(item);
        }
        let missing = count.saturating_sub(mine.len());
        let is_barred = |item: &String| {
            let is_far = |note: &Return| note.until > now && note.until <= now + HOLD;
            self.returned.get(item).is_some_and(|note| note.assignee == who && is_far(note))
        };
        let mut free: Vec<(i64, String)> = self
            .pool
            .iter()
            .filter(|(item, _)| !is_barred(item))
            .map(|(item, rank)| (*rank, item.clone()))
            .collect();
        free.sort();
        for (rank, item) in free.into_iter().take(missing) {
            self.pool.remove(&item);
            let held = Held { rank, assignee: who.to_owned(), until: now + HOLD_MAX };
            self.held.insert(item, held);
        }
        self.renew(now, who);
        if count == 0 {
            self.assignees.remove(who);
        }
        self.of(who)
    }

    pub(super) fn check(&mut self, now: u64, who: &str) -> Vec<(String, u64)> {
        self.sweep(now, Some(who));
        self.renew(now, who);
        self.of(who)
    }

    pub(super) fn done(&mut self, now: u64, who: &str, items: &[String]) -> Vec<ItemPlace> {
        self.sweep(now, Some(who));
        let places = items.iter().map(|item| self.place_of(now, who, item)).collect::<Vec<_>>();
        self.renew(now, who);
        let settled = places.into_iter().zip(items).map(|(place, item)| {
            if place.is_none() {
                self.held.remove(item);
                self.returned.remove(item);
                self.finish(now, item, who);
            }
            place.unwrap_or(ItemPlace::Done)
        });
        settled.collect()
    }

    pub(super) fn give_back(&mut self, now: u64, who: &str, items: &[String]) -> Vec<ItemPlace> {
        self.sweep(now, Some(who));
        let places = items.iter().map(|item| self.place_of(now, who, item)).collect::<Vec<_>>();
        self.renew(now, who);
        let settled = places.into_iter().zip(items).map(|(place, item)| {
            if place.is_none() && self.held.contains_key(item) {
                self.note(item, now + HOLD, who);
                self.put_back(item);
            }
            place.unwrap_or(ItemPlace::Open)
        });
        settled.collect()
    }

    pub(super) fn begin(&mut self, now: u64, name: &str) {
        // A begin that is repeated continues its rebuild.
        let seen = self.rebuild.take().filter(|open| open.name == name).map(|open| open.seen);
        let seen = seen.unwrap_or_default();
        self.rebuild = Some(Rebuild { name: name.to_owned(), begun: now, seen });
        self.closed.take_if(|closed| closed == name);
    }

    /// Returns `None` if the rebuild is not open.
    pub(super) fn page(&mut self, now: u64, name: &str, items: &[(String, i8)]) -> Option<Added> {
        let open = self.rebuild.as_ref()?;
        (open.name == name && open.is_open(now)).then(|| self.add(now, items))
    }

    /// Returns how many items were removed; `None` if the rebuild is not open.
    pub(super) fn end(&mut self, now: u64, name: &str) -> Option<u64> {
        if self.closed.as_deref() == Some(name) {
            return Some(0);
        }
        self.rebuild.as_ref().filter(|open| open.name == name && open.is_open(now))?;
        let seen = self.rebuild.take()?.seen;
        self.closed = Some(name.to_owned());
        let before = self.pool.len();
        self.pool.retain(|item, _| seen.contains(item));
        self.returned
            .retain(|item, _| self.pool.contains_key(item) || self.held.contains_key(item));
        Some((before - self.pool.len()) as u64)
    }

    pub(super) fn counts(&mut self, now: u64) -> [u64; 3] {
        self.sweep(now, None);
        [self.pool.len(), self.held.len(), self.assignees.len()].map(|count| count as u64)
    }

    /// The items of the pool in their order.
    pub(super) fn ordered(&self) -> Vec<String> {
        let mut ranked: Vec<(i64, &String)> =
            self.pool.iter().map(|(item, rank)| (*rank, item)).collect();
        ranked.sort();
        ranked.into_iter().map(|(_, item)| item.clone()).collect()
    }

    /// Returns what the assignee holds, by rank.
    pub(super) fn of(&self, who: &str) -> Vec<(String, u64)> {
        let mine = self.held.iter().filter(|(_, held)| held.assignee == who);
        let mut mine: Vec<(i64, &String, u64)> =
            mine.map(|(item, held)| (held.rank, item, held.until)).collect();
        mine.sort_unstable();
        mine.into_iter().map(|(_, item, until)| (item.clone(), until)).collect()
    }

    /// Puts back what is over, at the call of an assignee.
    fn sweep(&mut self, now: u64, caller: Option<&str>) {
        let is_over = |until: &u64| *until <= now;
        let silent: BTreeSet<String> = self
            .assignees
            .iter()
            .filter(|(_, until)| is_over(until))
            .map(|(name, _)| name.clone())
            .collect();
        let lost: Vec<(String, Held)> = self
            .held
            .iter()
            .filter(|(_, held)| silent.contains(&held.assignee) || is_over(&held.until))
            .map(|(item, held)| (item.clone(), held.clone()))
            .collect();
        for (item, held) in lost {
            let until = if silent.contains(&held.assignee) { 0 } else { now + HOLD };
            self.note(&item, until, &held.assignee);
            self.put_back(&item);
        }
        self.assignees.retain(|name, _| !silent.contains(name) || Some(name.as_str()) == caller);
        // The clock may have been set back.
        for until in self.assignees.values_mut() {
            *until = (*until).min(now + HOLD);
        }
        for held in self.held.values_mut() {
            held.until = held.until.min(now + HOLD_MAX);
        }
    }

    fn finish(&mut self, now: u64, item: &str, who: &str) {
        let hour = now / HOUR;
        self.latest = match (self.latest, self.hours(now).get(2)) {
            (Some((latest, until)), Some(_)) => {
                let until = until.filter(|until| *until <= now + 2 * HOUR);
                Some((latest, Some(until.unwrap_or(now + 2 * HOUR))))
            }
            (Some((latest, until)), None) if latest == hour => Some((latest, until)),
            _ => Some((hour, None)),
        };
        self.done.entry(hour).or_default().insert(item.to_owned(), who.to_owned());
    }

    /// The hours whose finished items are remembered.
    fn hours(&self, now: u64) -> Vec<u64> {
        let hour = now / HOUR;
        let mut hours = vec![hour, hour - 1];
        if let Some((latest, until)) = self.latest
            && latest > hour
            && until.is_none_or(|until| now < until)
        {
            hours.extend([latest, latest - 1]);
        }
        hours
    }

    /// Who has finished an item that is remembered.
    fn finisher(&self, now: u64, item: &str) -> Option<&str> {
        let hours = self.hours(now);
        let found = hours.iter().find_map(|hour| self.done.get(hour)?.get(item));
        found.map(String::as_str)
    }

    fn note(&mut self, item: &str, until: u64, assignee: &str) {
        let times = self.returned.get(item).map_or(0, |note| note.times) + 1;
        let note = Return { times, until, assignee: assignee.to_owned() };
        self.returned.insert(item.to_owned(), note);
    }

    fn put_back(&mut self, item: &str) {
        if let Some(held) = self.held.remove(item) {
            self.pool.insert(item.to_owned(), held.rank);
        }
    }

    fn renew(&mut self, now: u64, who: &str) {
        self.assignees.insert(who.to_owned(), now + HOLD);
    }

    /// Returns where the item is, or `None` if the assignee holds it.
    fn place_of(&self, now: u64, who: &str, item: &str) -> Option<ItemPlace> {
        if let Some(held) = self.held.get(item) {
            return (held.assignee != who).then_some(ItemPlace::Assigned);
        }
        if self.pool.contains_key(item) {
            return Some(ItemPlace::Open);
        }
        Some(match self.finisher(now, item) {
            Some(by) if by == who => ItemPlace::Done,
            Some(_) => ItemPlace::DoneByOther,
            None => ItemPlace::Unknown,
        })
    }

    fn is_done(&self, now: u64, item: &str) -> bool {
        self.finisher(now, item).is_some()
    }
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).expect("a time of a test")
}
