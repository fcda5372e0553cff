//! Rates as people write them: `"100/s"`, `"10/m"`, `"1000/h"`, `"5/d"`.

/// The units, with the function of `Rate` that takes their number and with their milliseconds.
const UNITS: [(&str, &str, u64); 4] = [
    ("s", "per_second", 1_000),
    ("m", "per_minute", 60_000),
    ("h", "per_hour", 3_600_000),
    ("d", "per_day", 86_400_000),
];

/// The highest rate in tasks per millisecond.
const TASKS_PER_MS_MAX: u64 = 100;

/// A rate as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) tasks: u32,
    /// The function of `Rate` that makes it from the number of tasks.
    pub(crate) function: &'static str,
}

/// Reads a rate. The error states what is wrong, and shows examples.
pub(crate) fn parse(text: &str) -> Result<Rate, String> {
    read(text).map_err(|problem| {
        format!(
            "{text:?} is not a rate: {problem}; write a number of tasks, a slash and one of s, m, \
             h and d, as in \"100/s\" or \"10/m\""
        )
    })
}

fn read(text: &str) -> Result<Rate, String> {
    let (tasks, unit) = text.split_once('/').ok_or("it has no slash")?;
    let found = UNITS.into_iter().find(|(name, ..)| *name == unit);
    let (_, function, unit_ms) = found.ok_or_else(|| format!("{unit:?} is not a unit"))?;
    let is_number = !tasks.is_empty() && tasks.bytes().all(|byte| byte.is_ascii_digit());
    let tasks = is_number
        .then(|| tasks.parse::<u32>().ok())
        .flatten()
        .ok_or_else(|| format!("{tasks:?} is not a whole number of tasks"))?;
    if tasks == 0 {
        return Err("a rate of 0 lets no task start".to_owned());
    }
    if u64::from(tasks) > TASKS_PER_MS_MAX * unit_ms {
        return Err("a rate is at most 100,000 tasks a second".to_owned());
    }
    Ok(Rate { tasks, function })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_rate_is_a_number_of_tasks_in_a_unit() {
        for (text, tasks, function) in [
            ("100/s", 100, "per_second"),
            ("10/m", 10, "per_minute"),
            ("1000/h", 1_000, "per_hour"),
            ("5/d", 5, "per_day"),
            ("100000/s", 100_000, "per_second"),
        ] {
            assert_eq!(parse(text), Ok(Rate { tasks, function }), "{text}");
        }
    }

    #[test]
    fn an_error_names_what_is_wrong_with_a_rate() {
        for (text, problem) in [
            ("", "it has no slash"),
            ("100", "it has no slash"),
            ("100 per second", "it has no slash"),
            ("100/sec", "\"sec\" is not a unit"),
            ("100/ms", "\"ms\" is not a unit"),
            ("/s", "\"\" is not a whole number"),
            ("1.5/s", "\"1.5\" is not a whole number"),
            ("-1/s", "\"-1\" is not a whole number"),
            ("0/m", "a rate of 0"),
            ("100001/s", "at most 100,000 tasks a second"),
            ("99999999999/s", "is not a whole number"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[0-9/smhd -]{0,12}") {
            let _ = parse(&text);
        }
    }
}
