//! How near two instants of a cron expression come: [`CronExpression::shortest_secs`].
//!
//! The macros ask this file, too, so they refuse a jitter that a worker would refuse.

use std::iter;

use super::cron_expression::{CronExpression, Day};

/// How many instants decide which two are the nearest.
const INSTANTS: usize = 64;
/// How many days have so many instants. `FEB` with `MON#5` matches once in 28 years, or in 40.
const DAYS_MAX: usize = INSTANTS * 41 * 366;
const DAY_SECS: u64 = 24 * 60 * 60;

/// A day of the calendar.
#[derive(Debug, Clone, Copy)]
struct Date {
    year: u32,
    day: Day,
}

/// A Monday, at the beginning of a leap year.
const FIRST: Date =
    Date { year: 2024, day: Day { month: 1, number: 1, weekday: 1, days_in_month: 31 } };

impl CronExpression {
    /// Returns the shortest time between two of the first instants from the beginning of a leap
    /// year, in UTC.
    pub(crate) fn shortest_secs(&self) -> Option<u64> {
        let mut before = None;
        let dates = iter::successors(Some(FIRST), |date| Some(date.next())).take(DAYS_MAX);
        let days = (0..).zip(dates).filter(|(_, date)| self.has_day(date.day));
        let instants = days.flat_map(|(number, _)| {
            let midnight: u64 = number * DAY_SECS;
            self.times_of_day().map(move |time| midnight + time)
        });
        let apart = instants.take(INSTANTS).filter_map(|instant| {
            let earlier = before.replace(instant)?;
            Some(instant - earlier)
        });
        apart.min()
    }

    /// Returns the seconds of a day that match, in order.
    fn times_of_day(&self) -> impl Iterator<Item = u64> {
        let (minutes, seconds) = (self.minutes, self.seconds);
        values(self.hours).flat_map(move |hour| {
            values(minutes).flat_map(move |minute| {
                values(seconds).map(move |second| (hour * 60 + minute) * 60 + second)
            })
        })
    }
}

fn values(set: u64) -> impl Iterator<Item = u64> {
    (0..64).filter(move |value| set >> value & 1 == 1)
}

impl Date {
    fn next(self) -> Self {
        let Self { mut year, mut day } = self;
        day.weekday = (day.weekday + 1) % 7;
        day.number += 1;
        if day.number > day.days_in_month {
            day.number = 1;
            day.month = day.month % 12 + 1;
            year += u32::from(day.month == 1);
            day.days_in_month = days_in_month(year, day.month);
        }
        Self { year, day }
    }
}

fn days_in_month(year: u32, month: u32) -> u32 {
    let is_leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;

    #[test]
    fn the_shortest_time_between_two_instants_is_found() {
        for (text, shortest) in [
            ("* * * * * *", 1),
            ("*/15 * * * *", 15 * MINUTE),
            ("@hourly", HOUR),
            ("0 9,17 * * *", 8 * HOUR),
            ("59 23,0 * * *", HOUR),
            ("0 9 * * 1-5", 24 * HOUR),
            ("0 9 * * MON,FRI", 3 * 24 * HOUR),
            ("@monthly", 28 * 24 * HOUR),
            ("0 0 1,L 2 *", 27 * 24 * HOUR),
            ("@yearly", 365 * 24 * HOUR),
            ("0 0 29 2 *", (4 * 365 + 1) * 24 * HOUR),
        ] {
            let expression = CronExpression::parse(text).unwrap();
            assert_eq!(expression.shortest_secs(), Some(shortest), "{text}");
        }
    }

    #[test]
    fn the_rarest_expression_has_instants_enough() {
        let expression = CronExpression::parse("0 0 * 2 MON#5").unwrap();
        // From 2196 to 2208, with no leap day in 2200.
        assert_eq!(expression.shortest_secs(), Some((12 * 365 + 2) * 24 * HOUR));
    }
}
