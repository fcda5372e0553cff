//! Why a call of an operation has failed: [`OperationError`].

use crate::{
    Error, OperationState,
    broker::{BrokerError, Refusal},
};

/// Why a call of [`Operations`](crate::Operations) has failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum OperationError {
    /// No operation has this id. The last 100 are kept.
    #[error("there is no operation {id}: the last 100 are kept")]
    Unknown {
        /// The id.
        id: String,
    },
    /// Another number of tasks matches than the caller expects.
    #[error(
        "operation {id} matches {matched} tasks, and {expected} were expected: nothing was done"
    )]
    Unexpected {
        /// The id.
        id: String,
        /// How many tasks match.
        matched: u64,
        /// How many were expected.
        expected: u64,
    },
    /// The state of the operation does not allow it.
    #[error("operation {id} is {state}: it can't be {what}")]
    WrongState {
        /// The id.
        id: String,
        /// Its state.
        state: OperationState,
        /// What can't be done, such as `confirmed`.
        what: &'static str,
    },
    /// Nobody has confirmed it for a day after it was counted, or the store has lost which tasks it
    /// has counted.
    #[error(
        "operation {id} was counted more than a day ago, so it can't be confirmed; count again"
    )]
    Late {
        /// The id.
        id: String,
    },
    /// As many operations as are kept are under way.
    #[error("too many operations are under way; wait for one, or cancel one")]
    TooMany,
    /// The store has failed, or the input is wrong.
    #[error(transparent)]
    Store(#[from] Error),
}

impl OperationError {
    /// Names a refusal of a call about the operation of this id.
    pub(crate) fn of(id: &str, what: &'static str, problem: BrokerError) -> Self {
        let id = id.to_owned();
        match problem {
            BrokerError::Refused(Refusal::Absent, _) => Self::Unknown { id },
            BrokerError::Refused(Refusal::WrongState, state) => {
                Self::WrongState { id, state: OperationState::read(&state), what }
            }
            problem => Self::Store(problem.into()),
        }
    }
}
