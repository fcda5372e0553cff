//! Numbers, sizes and times as people read them.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};

/// Returns a number with its thousands apart: `1,204`.
pub(crate) fn number(number: impl Into<u64>) -> String {
    let digits = number.into().to_string();
    let mut text = String::new();
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a number and the word for it: `1 task`, `2 tasks`.
pub(crate) fn count(number_of: impl Into<u64>, word: &str) -> String {
    let number_of = number_of.into();
    let s = if number_of == 1 { "" } else { "s" };
    format!("{} {word}{s}", number(number_of))
}

/// How many names a sentence lists.
const NAMES_MAX: usize = 10;

/// Returns the names that there are, for somebody who has used another one: `there are: a, b`.
pub(crate) fn known(names: &[String], none: &str) -> String {
    if names.is_empty() {
        return none.to_owned();
    }
    let mut list = names.iter().take(NAMES_MAX).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > NAMES_MAX {
        list.push_str(", …");
    }
    format!("there are: {list}")
}

/// Returns a size: `812 MB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if bytes < 1_000 {
        return format!("{bytes} B");
    }
    let (mut tenths, mut unit) = (bytes / 100, 0);
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        (tenths, unit) = (tenths / 1_000, unit + 1);
    }
    let (whole, tenth) = (tenths / 10, tenths % 10);
    if whole < 10 {
        format!("{whole}.{tenth} {}", UNITS[unit])
    } else {
        format!("{whole} {}", UNITS[unit])
    }
}

/// Returns a duration in its two largest units: `340 ms`, `12 s`, `3 min 20 s`, `2 d 4 h`.
pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    let two = |large: u64, large_unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{large} {large_unit}"),
        small => format!("{large} {large_unit} {small} {small_unit}"),
    };
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..=59 => format!("{seconds} s"),
        60..=3_599 => two(seconds / 60, "min", seconds % 60, "s"),
        3_600..=86_399 => two(seconds / 3_600, "h", seconds % 3_600 / 60, "min"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
    }
}

/// Returns a duration as [`duration`] does, rounded up, because it is an upper bound:
/// `525 ms`, `1.5 s`, `12 s`.
pub(crate) fn at_most(time: Duration) -> String {
    let us = time.as_micros();
    let unit_us: u128 = match time.as_secs() {
        0 => 1_000,
        1..=9 => 100_000,
        10..=3_599 => 1_000_000,
        3_600..=86_399 => 60_000_000,
        _ => 3_600_000_000,
    };
    let ms = u64::try_from(us.div_ceil(unit_us) * unit_us / 1_000).unwrap_or(u64::MAX);
    match ms {
        1_000..10_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        ms => duration(Duration::from_millis(ms)),
    }
}

/// Returns the time between two instants; zero if the second is not later.
pub(crate) fn since(then: DateTime<Utc>, now: DateTime<Utc>) -> Duration {
    (now - then).to_std().unwrap_or_default()
}

/// Returns how far an instant is from now: `5 s ago`, `in 3 min`.
pub(crate) fn relative(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    if at > now {
        return format!("in {}", duration(since(now, at)));
    }
    format!("{} ago", duration(since(at, now)))
}

/// Returns an instant and how far it is from now: `2026-11-22T18:00:00Z (5 s ago)`.
pub(crate) fn instant(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    format!("{} ({})", self::at(at), relative(at, now))
}

/// Returns an instant alone: `2026-11-22T18:00:00Z`.
pub(crate) fn at(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_sizes_are_short_and_have_separators() {
        let numbers = [0_u64, 999, 1_000, 1_204, 2_310_442].map(number);
        assert_eq!(numbers, ["0", "999", "1,000", "1,204", "2,310,442"]);
        assert_eq!([count(1_u64, "task"), count(0_u64, "task")], ["1 task", "0 tasks"]);
        let sizes = [0, 999, 1_000, 9_999, 65_000, 812_345_678, 4_200_000_000, u64::MAX].map(size);
        let expected =
            ["0 B", "999 B", "1.0 kB", "9.9 kB", "65 kB", "812 MB", "4.2 GB", "18446 PB"];
        assert_eq!(sizes, expected);
    }

    #[test]
    fn times_have_at_most_two_units() {
        let times = [5, 340, 12_000, 60_000, 200_000, 3_600_000, 12_000_000, 187_200_000];
        let texts = times.map(|ms| duration(Duration::from_millis(ms)));
        let expected =
            ["5 ms", "340 ms", "12 s", "1 min", "3 min 20 s", "1 h", "3 h 20 min", "2 d 4 h"];
        assert_eq!(texts, expected);
        let most = [0, 1, 524_288, 999_001, 1_000_000, 1_482_911, 9_900_001, 59_000_001];
        let texts = most.map(|us| at_most(Duration::from_micros(us)));
        let expected = ["0 ms", "1 ms", "525 ms", "1.0 s", "1.0 s", "1.5 s", "10 s", "1 min"];
        assert_eq!(texts, expected);
        assert_eq!(at_most(Duration::from_secs(3_661)), "1 h 2 min");
        let at = |s| DateTime::from_timestamp(s, 0).unwrap();
        assert_eq!(relative(at(10), at(15)), "5 s ago");
        assert_eq!(relative(at(190), at(10)), "in 3 min");
        assert_eq!(instant(at(0), at(7_200)), "1970-01-01T00:00:00Z (2 h ago)");
    }
}
