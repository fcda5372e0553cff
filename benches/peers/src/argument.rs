//! The one argument of the task: about 200 bytes of JSON.

use serde::{Deserialize, Serialize};

/// The length with which the whole argument has 200 bytes if `number` has six digits.
const TEXT_LEN: usize = 161;

/// The argument. In Redis it is the JSON of these three fields, in every language.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Argument {
    /// The number of the task in its run, counted from 0.
    pub number: usize,
    /// When the submit was called, in nanoseconds of the monotonic clock, or 0 if the time is not
    /// needed.
    pub sent_ns: u64,
    /// Text that fills the argument to its size.
    pub text: String,
}

impl Argument {
    /// Returns the argument of the task with this number.
    pub(crate) fn new(number: usize) -> Self {
        Self { number, sent_ns: 0, text: "x".repeat(TEXT_LEN) }
    }
}
