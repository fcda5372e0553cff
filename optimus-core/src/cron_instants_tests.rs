//! The instants of expressions, compared with a walk over each minute of UTC around the changes of
//! the clocks in many zones. The walk knows nothing of the search: it asks the local clock.

use std::collections::BTreeSet;

use chrono::{DateTime, Datelike, NaiveDateTime, TimeDelta, Timelike};
use optimus_testkit::ZONES;

use super::*;

fn expression(text: &str) -> CronExpression {
    CronExpression::parse(text).unwrap()
}

fn secs(text: &str) -> i64 {
    let text = if text.len() == 16 { format!("{text}:00Z") } else { format!("{text}Z") };
    DateTime::parse_from_rfc3339(&text).unwrap().timestamp()
}

fn found(text: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
    let (expression, zone) = (expression(text), TimeZone::parse(zone).unwrap());
    let mut at = secs(after);
    let next = || {
        at = next_after(&expression, zone, at)?;
        Some(DateTime::from_timestamp(at, 0)?.format("%Y-%m-%dT%H:%M:%S").to_string())
    };
    std::iter::from_fn(next).take(count).collect()
}

#[test]
fn the_instants_of_usual_expressions_follow_each_other() {
    for (text, after, first_two) in [
        ("0 9 * * 1-5", "2026-11-20T09:00", ["2026-11-23T09:00:00", "2026-11-24T09:00:00"]),
        ("*/15 * * * *", "2026-11-20T09:07", ["2026-11-20T09:15:00", "2026-11-20T09:30:00"]),
        ("@hourly", "2026-12-31T23:00", ["2027-01-01T00:00:00", "2027-01-01T01:00:00"]),
        ("*/20 * * * * *", "2026-11-20T09:00:25", ["2026-11-20T09:00:40", "2026-11-20T09:01:00"]),
        ("30 5 10 15 * *", "2026-11-20T09:00", ["2026-12-15T10:05:30", "2027-01-15T10:05:30"]),
        ("0 0 L * *", "2027-01-31T00:00", ["2027-02-28T00:00:00", "2027-03-31T00:00:00"]),
        ("0 0 29 2 *", "2026-01-01T00:00", ["2028-02-29T00:00:00", "2032-02-29T00:00:00"]),
        ("0 0 29 2 *", "2096-03-01T00:00", ["2104-02-29T00:00:00", "2108-02-29T00:00:00"]),
        ("0 0 * * MON#2", "2026-11-01T00:00", ["2026-11-09T00:00:00", "2026-12-14T00:00:00"]),
        ("0 0 * * 5L", "2026-11-01T00:00", ["2026-11-27T00:00:00", "2026-12-25T00:00:00"]),
        ("0 0 * 2 MON#5", "2026-11-01T00:00", ["2044-02-29T00:00:00", "2072-02-29T00:00:00"]),
        ("0 0 13 * FRI", "2026-11-12T00:00", ["2026-11-13T00:00:00", "2026-11-20T00:00:00"]),
        ("0 0 13 * FRI", "2026-12-11T00:00", ["2026-12-13T00:00:00", "2026-12-18T00:00:00"]),
    ] {
        assert_eq!(found(text, "UTC", after, 2), first_two, "{text}");
    }
}

#[test]
fn a_fixed_time_in_a_gap_is_at_its_end_and_one_that_repeats_is_the_first() {
    let berlin = |text, after| found(text, "Europe/Berlin", after, 2);
    // On 2027-03-28, 2:00 is followed by 3:00; on 2026-10-25, 3:00 by 2:00.
    let at_gap = ["2027-03-28T01:00:00", "2027-03-29T00:30:00"];
    assert_eq!(berlin("30 2 * * *", "2027-03-27T12:00"), at_gap);
    assert_eq!(berlin("30 2 * * *", "2027-03-28T00:59:59"), at_gap, "up to the gap");
    let after_gap = ["2027-03-29T00:00:00", "2027-03-29T01:00:00"];
    assert_eq!(berlin("0 2,3 * * *", "2027-03-28T01:00"), after_gap, "both were one instant");
    let first = ["2026-10-25T00:30:00", "2026-10-26T01:30:00"];
    assert_eq!(berlin("30 2 * * *", "2026-10-24T12:00"), first);
    let twice = ["2026-10-25T00:30:00", "2026-10-25T01:30:00"];
    assert_eq!(berlin("30 * * * *", "2026-10-25T00:00"), twice, "an interval");
    assert_eq!(
        berlin("*/30 2 * * *", "2026-10-25T00:00"),
        twice.map(|at| match at {
            "2026-10-25T01:30:00" => "2026-10-25T01:00:00",
            at => at,
        })
    );
    let around = ["2027-03-28T00:30:00", "2027-03-28T01:30:00"];
    assert_eq!(berlin("30 * * * *", "2027-03-28T00:00"), around, "an interval has no gap");
    assert!(berlin("*/30 2 28 3 *", "2027-03-28T00:00")[0].starts_with("2028"));
}

#[test]
fn a_day_that_a_zone_skips_ends_where_the_next_begins() {
    // Samoa had no 2011-12-30.
    let found = found("0 12 30 12 *", "Pacific/Apia", "2011-12-01T00:00", 1);
    assert_eq!(found, ["2011-12-30T10:00:00"]);
}

/// An expression with sets of what it means: minutes, hours, weekdays from Monday, interval.
type Meant = (&'static str, fn(u32) -> bool, fn(u32) -> bool, fn(u32) -> bool, bool);

const EXPRESSIONS: [Meant; 9] = [
    ("30 2 * * *", |m| m == 30, |h| h == 2, |_| true, false),
    ("0 0 * * *", |m| m == 0, |h| h == 0, |_| true, false),
    ("15,45 1,2,3 * * *", |m| m == 15 || m == 45, |h| (1..4).contains(&h), |_| true, false),
    ("0 23 * * 6", |m| m == 0, |h| h == 23, |d| d == 5, false),
    ("20 * * * *", |m| m == 20, |_| true, |_| true, true),
    ("*/7 * * * *", |m| m % 7 == 0, |_| true, |_| true, true),
    ("*/20 0-2 * * *", |m| m % 20 == 0, |h| h <= 2, |_| true, true),
    ("10 */2 * * SUN", |m| m == 10, |h| h % 2 == 0, |d| d == 6, true),
    ("0,30 0-4 * * SAT-SUN", |m| m % 30 == 0, |h| h <= 4, |d| d >= 5, false),
];

/// Returns the hours at which the offset of the zone changes within two years, and the middle of
/// the first one.
fn changes(zone: TimeZone) -> Vec<i64> {
    let (first, hour) = (secs("2026-01-01T00:00"), 3_600);
    let hours = (0..2 * 365 * 24).map(|n| first + n * hour);
    let mut found: Vec<i64> =
        hours.filter(|at| zone.offset_secs(*at) != zone.offset_secs(at + hour)).collect();
    found.push(secs("2026-07-01T12:00"));
    found
}

/// Walks from minute to minute, and collects the instants at which an expression is due.
fn walked(zone: TimeZone, (from, to): (i64, i64), meant: Meant) -> BTreeSet<i64> {
    let (_, minute, hour, weekday, is_interval) = meant;
    let matches = |local: NaiveDateTime| {
        minute(local.minute())
            && hour(local.hour())
            && weekday(local.weekday().num_days_from_monday())
    };
    let local =
        |at: i64| DateTime::from_timestamp(at + zone.offset_secs(at), 0).unwrap().naive_utc();
    let (mut seen, mut instants) = (BTreeSet::new(), BTreeSet::new());
    // What is before the span counts as seen.
    let mut before = local(from - 2 * DAY_SECS);
    for at in (from - 2 * DAY_SECS..to).step_by(60) {
        let now = local(at);
        let mut skipped = before + TimeDelta::minutes(1);
        while !is_interval && skipped < now {
            if matches(skipped) && !seen.contains(&skipped) {
                instants.insert(at);
            }
            skipped += TimeDelta::minutes(1);
        }
        let is_new = seen.insert(now);
        if matches(now) && (is_new || is_interval) {
            instants.insert(at);
        }
        before = now;
    }
    instants.retain(|at| *at >= from);
    instants
}

#[test]
fn the_instants_are_those_of_a_walk_around_each_change_of_the_clocks_in_twenty_zones() {
    let (mut spans, mut instants) = (0, 0);
    for name in ZONES {
        let zone = TimeZone::parse(name).unwrap();
        for change in changes(zone) {
            let (from, to) = (change - DAY_SECS, change + 2 * DAY_SECS);
            for meant in EXPRESSIONS {
                let expression = expression(meant.0);
                let mut at = from - 1;
                let next = || {
                    at = next_after(&expression, zone, at).filter(|at| *at < to)?;
                    Some(at)
                };
                let found: BTreeSet<i64> = std::iter::from_fn(next).collect();
                let expected = walked(zone, (from, to), meant);
                let text = |at: &i64| DateTime::from_timestamp(*at, 0).unwrap().to_rfc3339();
                let differ: Vec<_> = found.symmetric_difference(&expected).map(text).collect();
                assert!(differ.is_empty(), "{name}, {}: {differ:?}", meant.0);
                spans += 1;
                instants += found.len();
            }
        }
    }
    assert!(spans > 500 && instants > 20_000, "{spans} {instants}");
}
