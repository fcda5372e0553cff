//! Tests durations in the syntax of `#[task]`, such as `"1h30m"`. A printed duration is read back.

use std::time::Duration;

#[path = "../../../optimus-macros/src/parse/duration.rs"]
mod parser;

use parser::{LONGEST, parse};

/// Checks that any text is read as a duration, or refused with a reason.
pub(crate) fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match parse(&text) {
        Ok(duration) => {
            assert!(duration <= LONGEST);
            assert_eq!(parse(&print(duration)), Ok(duration));
        }
        Err(problem) => {
            let named = problem.contains(&format!("{text:?}"));
            assert!(named || problem.contains("below 1,800 days"), "{problem}");
        }
    }
}

/// Prints a duration in the largest units, as the parser requires.
fn print(duration: Duration) -> String {
    let mut left = duration.as_millis();
    let mut parts = Vec::new();
    for (unit, ms) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)]
    {
        if left >= ms {
            parts.push(format!("{}{unit}", left / ms));
            left %= ms;
        }
    }
    if parts.is_empty() { "0s".to_owned() } else { parts.concat() }
}
