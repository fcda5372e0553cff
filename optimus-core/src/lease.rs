//! The right to run and to report one attempt: [`Lease`], proved by its [`Token`].

use std::fmt;

use crate::id::{TaskId, WorkerId};

/// Proof of one claim: `<claim seq>:<fence>`. All tasks of a claim share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token {
    /// The number of the worker's claim, with which the worker can request a lost answer again.
    pub seq: u64,
    /// The fence, which strictly increases over the claims of the queue, also across a failover.
    pub fence: u64,
}

impl Token {
    /// Reads the stored form.
    pub fn parse(stored: &str) -> Option<Self> {
        let (seq, fence) = stored.split_once(':')?;
        Some(Self { seq: seq.parse().ok()?, fence: fence.parse().ok()? })
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.fence)
    }
}

/// The lease on a task for one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lease {
    /// The task.
    pub id: TaskId,
    /// The worker that holds it.
    pub worker: WorkerId,
    /// The claim that granted it.
    pub token: Token,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_back_and_other_texts_are_refused() {
        let token = Token { seq: 3, fence: u64::MAX };
        assert_eq!(token.to_string(), "3:18446744073709551615");
        assert_eq!(Token::parse(&token.to_string()), Some(token));
        for text in ["", ":", "3", "3:", ":3", "3:4:5", "-3:4", "3 :4", "x:4"] {
            assert_eq!(Token::parse(text), None, "{text}");
        }
    }
}
