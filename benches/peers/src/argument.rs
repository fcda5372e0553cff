//! The one argument of the task: about 200 bytes of JSON.

use serde::{Deserialize, Serialize};

/// As long as makes the whole argument 200 bytes at six digits of `number`.
const TEXT_LEN: usize = 161;

/// The argument. In Redis it is the JSON of these three fields, in every language.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Argument {
    /// Tells the tasks of one run apart, counted from 0.
    pub number: usize,
    /// When the submit was called, in nanoseconds of the monotonic clock; 0 if nobody asks.
    pub sent_ns: u64,
    /// Makes up the size.
    pub text: String,
}

impl Argument {
    /// The argument of the task with this number.
    pub(crate) fn new(number: usize) -> Self {
        Self { number, sent_ns: 0, text: "x".repeat(TEXT_LEN) }
    }
}
