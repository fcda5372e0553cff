//! How many tasks may start in a time: [`Rate`].

use std::{fmt, str::FromStr, time::Duration};

use crate::Error;

/// The lengths of the units of a rate, in microseconds.
const UNITS: [(&str, u64); 4] =
    [("s", 1_000_000), ("m", 60_000_000), ("h", 3_600_000_000), ("d", 86_400_000_000)];

/// The shortest interval between two tasks: 100,000 a second.
const INTERVAL_US_MIN: u64 = 10;

/// How many tasks may start in a time, such as 100 a second. Written as text, it is `"100/s"`,
/// `"10/m"`, `"1000/h"` or `"5/d"`.
///
/// Tasks start evenly: `60/m` and `1/s` are the same rate. A [burst](crate::Limit::burst) lets more
/// start at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    /// The time between two tasks, in whole microseconds, rounded up; 0 is refused where the rate
    /// is used.
    interval_us: u64,
}

impl Rate {
    /// Lets `tasks` start in each second.
    pub const fn per_second(tasks: u32) -> Self {
        Self::of(tasks, UNITS[0].1)
    }

    /// Lets `tasks` start in each minute.
    pub const fn per_minute(tasks: u32) -> Self {
        Self::of(tasks, UNITS[1].1)
    }

    /// Lets `tasks` start in each hour.
    pub const fn per_hour(tasks: u32) -> Self {
        Self::of(tasks, UNITS[2].1)
    }

    /// Lets `tasks` start in each day.
    pub const fn per_day(tasks: u32) -> Self {
        Self::of(tasks, UNITS[3].1)
    }

    const fn of(tasks: u32, unit_us: u64) -> Self {
        let interval_us = if tasks == 0 { 0 } else { unit_us.div_ceil(tasks as u64) };
        Self { interval_us }
    }

    /// Returns the time between two tasks.
    pub const fn interval(&self) -> Duration {
        Duration::from_micros(self.interval_us)
    }

    /// Returns the time between two tasks, in microseconds, as it is stored.
    #[doc(hidden)]
    pub const fn interval_us(&self) -> u64 {
        self.interval_us
    }

    /// Returns the rate of a stored interval; `None` for 0, which is no rate.
    #[doc(hidden)]
    pub fn from_interval_us(interval_us: u64) -> Option<Self> {
        (interval_us > 0).then_some(Self { interval_us })
    }

    /// Returns the reason why no limit can have this rate.
    pub(crate) fn problem(self) -> Option<String> {
        match self.interval_us {
            0 => Some("a rate of 0 lets no task start; pause the limit instead".into()),
            1..INTERVAL_US_MIN => Some("a rate is at most 100,000 tasks a second".into()),
            _ => None,
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let interval = self.interval_us;
        if interval == 0 {
            return f.write_str("0/s");
        }
        let whole = UNITS.into_iter().find_map(|(unit, unit_us)| {
            // The interval is rounded up, so the quotient is, too.
            let tasks = unit_us.div_ceil(interval);
            (unit_us.div_ceil(tasks) == interval).then_some((tasks, unit))
        });
        match whole {
            Some((tasks, unit)) => write!(f, "{tasks}/{unit}"),
            None => write!(f, "1 in {:?}", self.interval()),
        }
    }
}

impl FromStr for Rate {
    type Err = Error;

    /// Reads `"100/s"`, `"10/m"`, `"1000/h"` or `"5/d"`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let refuse = |problem: &str| {
            Err(Error::invalid(format!(
                "{text:?} is not a rate: {problem}; write a number, a slash and one of s, m, h and \
                 d, as in \"100/s\" or \"10/m\""
            )))
        };
        let Some((tasks, unit)) = text.split_once('/') else { return refuse("it has no slash") };
        let Some((_, unit_us)) = UNITS.into_iter().find(|(name, _)| *name == unit) else {
            return refuse(&format!("{unit:?} is not a unit"));
        };
        let digits = !tasks.is_empty() && tasks.bytes().all(|byte| byte.is_ascii_digit());
        let Some(tasks) = digits.then(|| tasks.parse().ok()).flatten() else {
            return refuse(&format!("{tasks:?} is not a whole number of tasks"));
        };
        let rate = Self::of(tasks, unit_us);
        rate.problem().map_or(Ok(rate), |problem| refuse(&problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_read_from_its_text_and_written_as_it_was() {
        for (text, interval_us) in [
            ("100/s", 10_000),
            ("3/s", 333_334),
            ("90/m", 666_667),
            ("10/m", 6_000_000),
            ("1000/h", 3_600_000),
            ("5/d", 17_280_000_000),
            ("100000/s", 10),
        ] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!((rate.interval_us(), rate.to_string()), (interval_us, text.to_owned()));
            assert_eq!(Rate::from_interval_us(interval_us), Some(rate));
        }
        assert_eq!("60/m".parse::<Rate>().unwrap(), Rate::per_second(1));
        assert_eq!(Rate::from_interval_us(7_000_001).unwrap().to_string(), "1 in 7.000001s");
        assert_eq!(Rate::from_interval_us(0), None);
        assert_eq!(
            [Rate::per_day(5), Rate::per_hour(9)].map(|rate| rate.to_string()),
            ["5/d", "9/h"]
        );
        assert_eq!(Rate::per_minute(7).interval(), Duration::from_micros(8_571_429));
    }

    #[test]
    fn what_is_no_rate_is_refused_with_the_right_form() {
        for (text, problem) in [
            ("", "it has no slash"),
            ("100", "it has no slash"),
            ("100/sec", "\"sec\" is not a unit"),
            ("/s", "\"\" is not a whole number"),
            ("-1/s", "\"-1\" is not a whole number"),
            ("+1/s", "\"+1\" is not a whole number"),
            ("1.5/s", "\"1.5\" is not a whole number"),
            ("99999999999/s", "is not a whole number"),
            ("0/s", "a rate of 0"),
            ("200000/s", "at most 100,000 tasks a second"),
        ] {
            let error = text.parse::<Rate>().unwrap_err();
            let text = error.to_string();
            assert!(error.is_invalid(), "{text}");
            assert!(text.contains(problem) && text.contains("\"100/s\""), "{text}");
        }
        assert!(Rate::per_second(0).problem().is_some());
        assert_eq!(Rate::per_second(0).to_string(), "0/s");
    }
}
