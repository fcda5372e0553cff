//! What the clients of a run submit: [`Load`].

use serde::{Deserialize, Serialize};

/// What the clients of a run submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Load {
    /// Tasks that have nothing to do with one another.
    Tasks,
    /// Groups with callbacks, tasks of lanes and with limits, calls that run together, and tasks
    /// that wait for tasks of another queue.
    Flows,
}
