//! The instants of a cron expression in a time zone: [`next_after`].
//!
//! The search walks along UTC in spans in which the offset of the zone does not change, so local
//! time goes forward in each. At the end of a span, local time jumps forward (a gap) or back (local
//! times repeat):
//!
//! - An expression with fixed times matches a time that falls into a gap at the end of the gap, and
//!   a time that repeats only the first time.
//! - An interval (`*` in the second, minute or hour) matches whenever the local clock does.

use chrono::{DateTime, Datelike, Days, NaiveDate};

use crate::{
    cron_expression::{CronExpression, Day},
    time_zone::TimeZone,
};

const DAY_SECS: i64 = 24 * 60 * 60;
/// The longest span that is looked at at once. No zone changes its offset twice within it.
const SPAN_SECS: i64 = 2 * DAY_SECS;
/// How far a search goes. `FEB` with `MON#5` matches once in 28 years, or in 40.
const HORIZON_SECS: i64 = 41 * 366 * DAY_SECS;
/// No zone has ever changed by more than this.
const CHANGE_MAX_SECS: i64 = 25 * 60 * 60;

/// Returns the first instant of the expression after this one; both in seconds since the Unix
/// epoch. `None` if there is none within 40 years.
pub(crate) fn next_after(
    expression: &CronExpression,
    zone: TimeZone,
    after_secs: i64,
) -> Option<i64> {
    let mut from = after_secs + 1;
    let last = from + HORIZON_SECS;
    if falls_into_gap(expression, zone, from) {
        return Some(from);
    }
    while from < last {
        let offset = zone.offset_secs(from);
        let end = end_of_span(zone, from, offset);
        if let Some(found) = first_in_span(expression, zone, (from, end), offset) {
            return Some(found);
        }
        if falls_into_gap(expression, zone, end) {
            return Some(end);
        }
        let is_change = end < from + SPAN_SECS;
        from = if is_change { end } else { end.max(quiet_until(expression, zone, end)) };
    }
    None
}

/// Returns the first instant at which the offset differs, or the end of the span.
fn end_of_span(zone: TimeZone, from: i64, offset: i64) -> i64 {
    let (mut same, mut other) = (from, from + SPAN_SECS);
    if zone.offset_secs(other - 1) == offset {
        return other;
    }
    while other - same > 1 {
        let middle = same + (other - same) / 2;
        if zone.offset_secs(middle) == offset {
            same = middle;
        } else {
            other = middle;
        }
    }
    other
}

fn first_in_span(
    expression: &CronExpression,
    zone: TimeZone,
    (from, end): (i64, i64),
    offset: i64,
) -> Option<i64> {
    let mut local = from + offset;
    loop {
        local = next_local(expression, local, end + offset)?;
        let is_repeat = !expression.is_interval && repeats(zone, local - offset, offset);
        if !is_repeat {
            return Some(local - offset);
        }
        local += 1;
    }
}

/// Returns whether the local time of this instant was there before, under an earlier offset.
fn repeats(zone: TimeZone, utc: i64, offset: i64) -> bool {
    let before = zone.offset_secs(utc - DAY_SECS);
    let earlier = utc + offset - before;
    before > offset && zone.offset_secs(earlier) == before
}

/// Returns whether a fixed time is in the gap that ends at this instant.
fn falls_into_gap(expression: &CronExpression, zone: TimeZone, end: i64) -> bool {
    let (before, after) = (zone.offset_secs(end - 1), zone.offset_secs(end));
    !expression.is_interval
        && after > before
        && next_local(expression, end + before, end + after).is_some()
}

/// Returns until when nothing can match, so that the search skips years without a date. Local times
/// may repeat, or be skipped, on the way.
fn quiet_until(expression: &CronExpression, zone: TimeZone, from: i64) -> i64 {
    let local = from + zone.offset_secs(from) - CHANGE_MAX_SECS;
    let next = next_local(expression, local, local + HORIZON_SECS);
    next.unwrap_or(local + HORIZON_SECS) - 2 * CHANGE_MAX_SECS
}

/// Returns the first local time from `local` to before `end` that matches; in seconds since the
/// local start of 1970.
fn next_local(expression: &CronExpression, local: i64, end: i64) -> Option<i64> {
    let (day, second) = (local.div_euclid(DAY_SECS), local.rem_euclid(DAY_SECS));
    let mut date = DateTime::from_timestamp(day * DAY_SECS, 0)?.date_naive();
    let (mut midnight, mut second) = (day * DAY_SECS, second);
    while midnight < end {
        if expression.has_day(day_of(date))
            && let Some(time) = next_time(expression, second)
        {
            return Some(midnight + time).filter(|found| *found < end);
        }
        date = date.checked_add_days(Days::new(1))?;
        (midnight, second) = (midnight + DAY_SECS, 0);
    }
    None
}

/// Returns the first second of a day from this one on that matches.
fn next_time(expression: &CronExpression, second: i64) -> Option<i64> {
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    if expression.hours >> hour & 1 == 1 {
        if expression.minutes >> minute & 1 == 1
            && let Some(second) = first_from(expression.seconds, second)
        {
            return Some(hour * 3600 + minute * 60 + second);
        }
        if let Some(minute) = first_from(expression.minutes, minute + 1) {
            return Some(hour * 3600 + minute * 60 + first_from(expression.seconds, 0)?);
        }
    }
    let hour = first_from(expression.hours, hour + 1)?;
    let minute = first_from(expression.minutes, 0)?;
    Some(hour * 3600 + minute * 60 + first_from(expression.seconds, 0)?)
}

fn first_from(set: u64, from: i64) -> Option<i64> {
    let rest = set >> from;
    (rest != 0).then(|| from + i64::from(rest.trailing_zeros()))
}

fn day_of(date: NaiveDate) -> Day {
    Day {
        month: date.month(),
        number: date.day(),
        weekday: date.weekday().num_days_from_sunday(),
        days_in_month: date.num_days_in_month().into(),
    }
}

#[cfg(test)]
#[path = "cron_instants_tests.rs"]
mod tests;
