//! The instants of two schedules by the local clock of a zone, minute by minute. This asks only
//! what the clock shows, and knows nothing of the search for instants.

use std::collections::BTreeSet;

use chrono::{DateTime, NaiveDateTime, Offset as _, TimeDelta, TimeZone as _, Timelike, Utc};
use chrono_tz::Tz;

pub(crate) const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

/// A kind of schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Times of the day. A time that the clock skips counts at the next minute that it shows, and
    /// one that it shows twice counts once.
    Fixed,
    /// Whenever the clock shows such a time.
    Interval,
}

impl Kind {
    pub(crate) const ALL: [Self; 2] = [Self::Fixed, Self::Interval];

    /// Returns the name of the schedule.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Interval => "interval",
        }
    }

    /// Returns the cron expression.
    pub(crate) fn expression(self) -> &'static str {
        match self {
            Self::Fixed => "0,10,20,30,40,50 0-4 * * *",
            Self::Interval => "5,20,35 * * * *",
        }
    }

    fn matches(self, local: NaiveDateTime) -> bool {
        match self {
            Self::Fixed => local.minute().is_multiple_of(10) && local.hour() <= 4,
            Self::Interval => local.minute() % 15 == 5 && local.minute() < 40,
        }
    }
}

fn utc(at_ms: u64) -> DateTime<Utc> {
    let at = i64::try_from(at_ms).ok().and_then(DateTime::from_timestamp_millis);
    at.unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// Returns the instants of a kind of schedule after a time and up to another, in ms.
pub(crate) fn instants(zone: Tz, kind: Kind, (after, until): (u64, u64)) -> BTreeSet<u64> {
    let local = |at: u64| utc(at).with_timezone(&zone).naive_local();
    let (minute, mut found) = (TimeDelta::minutes(1), BTreeSet::new());
    // A day before, to know what the clock has shown.
    let start = (after - DAY_MS) / MINUTE_MS * MINUTE_MS;
    let mut before = local(start) - minute;
    let mut latest = before;
    for at in (start..=until).step_by(60_000) {
        let now = local(at);
        let mut skipped = before + minute;
        while kind == Kind::Fixed && skipped < now {
            if kind.matches(skipped) {
                found.insert(at);
            }
            skipped += minute;
        }
        let is_new = now > latest;
        latest = latest.max(now);
        if kind.matches(now) && (is_new || kind == Kind::Interval) {
            found.insert(at);
        }
        before = now;
    }
    found.retain(|at| *at > after);
    found
}

/// Returns the changes of a zone's clock within so many days, in ms.
pub(crate) fn changes(zone: Tz, from_ms: u64, days: u64) -> Vec<u64> {
    let offset = |at: u64| zone.offset_from_utc_datetime(&utc(at).naive_utc()).fix();
    let halves = (from_ms..from_ms + days * DAY_MS).step_by(1_800_000);
    halves.filter(|at| offset(*at) != offset(at - HOUR_MS / 2)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_berlin_changes_twice_a_year_and_skips_and_repeats_an_hour() {
        let zone: Tz = "Europe/Berlin".parse().unwrap();
        let at = |text: &str| {
            DateTime::parse_from_rfc3339(text).unwrap().timestamp_millis().unsigned_abs()
        };
        let found = changes(zone, at("2027-01-01T00:00:00Z"), 365);
        assert_eq!(found, [at("2027-03-28T01:00:00Z"), at("2027-10-31T01:00:00Z")]);
        let count = |kind, change: u64| {
            instants(zone, kind, (change - HOUR_MS - 1, change + HOUR_MS - 1)).len()
        };
        // Six of the hour before, and those of the skipped hour count as one.
        assert_eq!((count(Kind::Fixed, found[0]), count(Kind::Interval, found[0])), (12, 6));
        // Six of the hour that is shown for the first time.
        assert_eq!((count(Kind::Fixed, found[1]), count(Kind::Interval, found[1])), (6, 6));
    }
}
