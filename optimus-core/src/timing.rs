//! When a schedule is due, and what happens then: [`Timing`]. Nothing here asks a clock.

use chrono::{DateTime, FixedOffset};
use serde::{Deserialize, Serialize};

use crate::{
    cron_expression::CronExpression,
    cron_instants::next_after,
    schedule::{Missed, Overlap},
    tick::local,
    time_zone::TimeZone,
};

/// How long after its instant [`Missed::Skip`] still runs a task.
const LATE_MAX_MS: u64 = 60_000;
/// The most instants that one turn goes back, and that are counted as missed.
pub(crate) const BACK_MAX: usize = 1_000;

/// When a schedule is due, and what happens then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    pub(crate) pace: Pace,
    pub(crate) missed: Missed,
    pub(crate) overlap: Overlap,
    pub(crate) jitter_ms: u64,
}

/// The instants of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Those of an expression, with its text.
    Cron(CronExpression, String, TimeZone),
    /// Each so many ms after the one before.
    Every(u64),
}

/// What is due at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The instants for which the task is submitted, the earliest first, each with the number of
    /// instants before it for which it is not.
    pub fires: Vec<Fire>,
    /// The latest instant, if none is submitted, because they were missed.
    pub left_out: Option<Fire>,
    /// When the schedule is due next, in ms; `None` if never.
    pub next_ms: Option<u64>,
}

/// A task to submit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fire {
    /// The instant, in ms.
    pub nominal_ms: u64,
    /// How many instants before it are left out.
    pub missed: usize,
}

/// The stored form.
#[derive(Serialize, Deserialize)]
struct Stored {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cron: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tz: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    every_ms: Option<u64>,
    #[serde(default)]
    missed: Missed,
    #[serde(default)]
    overlap: Overlap,
    #[serde(default)]
    jitter_ms: u64,
}

impl Pace {
    /// Returns the first instant after this one, of a schedule that was due then or has begun then;
    /// both in ms.
    pub(crate) fn next_ms(&self, after_ms: u64) -> Option<u64> {
        match self {
            Self::Every(ms) => after_ms.checked_add(*ms),
            Self::Cron(expression, _, zone) => {
                let after = i64::try_from(after_ms / 1000).ok()?;
                let next = next_after(expression, *zone, after)?;
                u64::try_from(next).ok()?.checked_mul(1000)
            }
        }
    }

    /// Returns the instants from `due_ms`, which is one, to `now_ms`, the latest first and at most
    /// [`BACK_MAX`], and the next one.
    fn back_from(&self, due_ms: u64, now_ms: u64) -> (Vec<u64>, Option<u64>) {
        if let Self::Every(ms) = self {
            let latest = due_ms + (now_ms - due_ms) / ms * ms;
            let instants = (0..BACK_MAX as u64).map_while(|back| {
                latest.checked_sub(back * ms).filter(|instant| *instant >= due_ms)
            });
            return (instants.collect(), latest.checked_add(*ms));
        }
        // A schedule of each second can have missed millions of instants. So this looks back for
        // twice as long again and again, until there are enough.
        let mut back_ms = 60_000;
        loop {
            let is_whole = now_ms.saturating_sub(back_ms) <= due_ms;
            let start = if is_whole { due_ms } else { now_ms - back_ms };
            let mut instants = if is_whole { vec![due_ms] } else { Vec::new() };
            let mut next = self.next_ms(start);
            while let Some(instant) = next.filter(|instant| *instant <= now_ms) {
                instants.push(instant);
                next = self.next_ms(instant);
            }
            if is_whole || instants.len() >= BACK_MAX {
                instants.reverse();
                instants.truncate(BACK_MAX);
                return (instants, next);
            }
            back_ms *= 2;
        }
    }
}

impl Timing {
    /// Returns what is due at `now_ms`, of a schedule that is due since `due_ms`.
    pub fn plan(&self, due_ms: u64, now_ms: u64) -> Plan {
        let (instants, next_ms) = self.pace.back_from(due_ms, now_ms.max(due_ms));
        let Some(latest) = instants.first().copied() else {
            return Plan { fires: Vec::new(), left_out: None, next_ms };
        };
        let one = Fire { nominal_ms: latest, missed: instants.len() - 1 };
        let fires = match self.missed {
            Missed::RunOnce => vec![one],
            Missed::Skip if now_ms.saturating_sub(latest) <= LATE_MAX_MS => vec![one],
            Missed::Skip => Vec::new(),
            Missed::All => {
                let fire = |nominal_ms| Fire { nominal_ms, missed: 0 };
                instants.iter().rev().copied().map(fire).collect()
            }
        };
        let left_out = Some(one).filter(|_| fires.is_empty());
        Plan { fires, left_out, next_ms }
    }

    /// Returns the first instant after this one, in ms.
    pub fn next_ms(&self, after_ms: u64) -> Option<u64> {
        self.pace.next_ms(after_ms)
    }

    /// Returns the shortest time between two instants, in ms; `None` if there are no two.
    pub(crate) fn shortest_ms(&self) -> Option<u64> {
        match &self.pace {
            Pace::Every(ms) => Some(*ms),
            Pace::Cron(expression, _, _) => expression.shortest_secs()?.checked_mul(1000),
        }
    }

    /// Returns whether both have the same instants.
    pub fn is_same_pace(&self, other: &Self) -> bool {
        self.pace == other.pace
    }

    /// Returns how many seconds local time is ahead of UTC at an instant.
    pub(crate) fn offset_secs(&self, instant_ms: u64) -> i64 {
        match &self.pace {
            Pace::Every(_) => 0,
            Pace::Cron(_, _, zone) => {
                zone.offset_secs(i64::try_from(instant_ms / 1000).unwrap_or(i64::MAX))
            }
        }
    }

    /// Returns an instant by the clocks of the zone.
    pub(crate) fn local(&self, instant_ms: u64) -> DateTime<FixedOffset> {
        local(instant_ms, self.offset_secs(instant_ms))
    }

    /// Returns the stored form, JSON.
    pub fn stored(&self) -> String {
        let Self { pace, missed, overlap, jitter_ms } = self;
        let (cron, tz, every_ms) = match pace {
            Pace::Every(ms) => (None, None, Some(*ms)),
            Pace::Cron(_, text, zone) => (Some(text.clone()), Some(zone.to_string()), None),
        };
        let (missed, overlap, jitter_ms) = (*missed, *overlap, *jitter_ms);
        let stored = Stored { cron, tz, every_ms, missed, overlap, jitter_ms };
        serde_json::to_string(&stored).expect("plain fields")
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// Names what this program does not know of it.
    pub fn read(stored: &str) -> Result<Self, String> {
        let known: Stored = serde_json::from_str(stored).map_err(|problem| problem.to_string())?;
        let pace = match (known.cron, known.every_ms) {
            (Some(text), None) => {
                let zone = known.tz.as_deref().map_or(Ok(TimeZone::Utc), TimeZone::parse)?;
                Pace::Cron(CronExpression::parse(&text)?, text, zone)
            }
            (None, Some(ms)) if ms > 0 => Pace::Every(ms),
            _ => return Err("it has no instants".to_owned()),
        };
        let Stored { missed, overlap, jitter_ms, .. } = known;
        Ok(Self { pace, missed, overlap, jitter_ms })
    }
}

#[cfg(test)]
#[path = "timing_tests.rs"]
mod tests;
