//! How far a running attempt has come: [`TaskProgress`].

use serde::{Deserialize, Serialize};

/// How many characters of a text are kept.
const CHARS_MAX: usize = 100;

/// How far a running attempt has come, as its handler said with
/// [`Context::progress`](crate::Context::progress).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskProgress {
    /// The part that is done, from 0 to 1.
    pub part: f64,
    /// What the handler says, up to 100 characters; may be empty.
    #[serde(default)]
    pub text: String,
}

impl TaskProgress {
    /// Makes a progress. A part that is no number from 0 to 1 becomes the nearest one; NaN
    /// becomes 0.
    pub(crate) fn new(part: f64, text: &str) -> Self {
        // Three digits after the point show each tenth of a percent.
        let part = if part.is_nan() { 0.0 } else { (part.clamp(0.0, 1.0) * 1e3).round() / 1e3 };
        Self { part, text: text.chars().take(CHARS_MAX).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_from_0_to_1_and_a_text_is_short() {
        let part = |part| TaskProgress::new(part, "").part;
        let parts = [f64::NAN, f64::NEG_INFINITY, -0.1, 0.123_456, 1.0, 7.0].map(part);
        assert_eq!(parts.map(|part| part.to_string()), ["0", "0", "0", "0.123", "1", "1"]);
        let long = TaskProgress::new(0.5, &"ö".repeat(5_000));
        assert_eq!(long.text.chars().count(), CHARS_MAX);
        let json = serde_json::to_string(&TaskProgress::new(0.42, "copied 42")).unwrap();
        assert_eq!(json, r#"{"part":0.42,"text":"copied 42"}"#);
    }
}
