//! Durations as people write them: `"250ms"`, `"10m"`, `"1h30m"`, `"7d"`.

use std::time::Duration;

/// Longer durations are a mistake in the unit: 1,800 days.
pub(crate) const LONGEST: Duration = Duration::from_secs(1_800 * 24 * 60 * 60);

/// The units from large to small, with their length in milliseconds.
const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Reads a duration. The error states what is wrong, and shows examples.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let total = millis(text).map_err(|problem| {
        format!(
            "{text:?} is not a duration: {problem}; write numbers with the units d, h, m, s or ms, \
             as in \"10m\", \"1h30m\" or \"250ms\""
        )
    })?;
    short_enough(Duration::from_millis(total))
}

/// Refuses durations that no task needs.
pub(crate) fn short_enough(duration: Duration) -> Result<Duration, String> {
    if duration > LONGEST {
        return Err("a duration must be below 1,800 days".to_owned());
    }
    Ok(duration)
}

fn millis(text: &str) -> Result<u64, String> {
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    if text.starts_with('-') {
        return Err("it is negative".to_owned());
    }
    let (mut rest, mut total, mut smallest) = (text, 0_u64, u64::MAX);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at(end);
        let Some((_, unit_ms)) = UNITS.into_iter().find(|(name, _)| *name == unit) else {
            return Err(match (number, unit) {
                (number, "") => format!("{number} has no unit"),
                ("", unit) => format!("no number before {unit:?}"),
                (_, unit) => format!("{unit:?} is not a unit"),
            });
        };
        if number.is_empty() {
            return Err(format!("no number before {unit:?}"));
        }
        if unit_ms >= smallest {
            return Err("units go from large to small, each at most once".to_owned());
        }
        smallest = unit_ms;
        // A number that does not fit is above `LONGEST` in any unit, so it can saturate.
        let part = number.parse().unwrap_or(u64::MAX).saturating_mul(unit_ms);
        total = total.saturating_add(part);
        rest = next;
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_sums_of_their_parts() {
        for (text, ms) in [
            ("250ms", 250),
            ("0s", 0),
            ("90s", 90_000),
            ("10m", 600_000),
            ("1h30m", 5_400_000),
            ("7d", 604_800_000),
            ("1d2h3m4s5ms", 93_784_005),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
    }

    #[test]
    fn an_error_names_what_is_wrong_with_a_duration() {
        for (text, problem) in [
            ("", "it is empty"),
            ("-5s", "it is negative"),
            ("600", "600 has no unit"),
            ("1h30", "30 has no unit"),
            ("h", "no number before \"h\""),
            ("ten minutes", "no number before \"ten minutes\""),
            ("10min", "\"min\" is not a unit"),
            ("1.5h", "\".\" is not a unit"),
            ("10 m", "\" m\" is not a unit"),
            ("30m1h", "from large to small"),
            ("1h1h", "at most once"),
            ("1801d", "below 1,800 days"),
            ("99999999999999999999d", "below 1,800 days"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".*") {
            let _ = parse(&text);
        }

        #[test]
        fn no_similar_text_panics(text in "[0-9dhms -.]{0,24}") {
            let _ = parse(&text);
        }

        #[test]
        fn hours_minutes_and_millis_add_up(h in 1_u64..999, m in 1_u64..999, ms in 1_u64..9_999) {
            let parsed = parse(&format!("{h}h{m}m{ms}ms"));
            prop_assert_eq!(parsed, Ok(Duration::from_millis((h * 60 + m) * 60_000 + ms)));
        }
    }
}
