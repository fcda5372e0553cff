//! What somebody may see of a task: [`Reader`].

use super::{identity::Payloads, patterns::Patterns};

/// What somebody may see of a task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) payloads: Payloads,
    /// The queues that they see.
    pub(crate) queues: &'a Patterns,
}
