//! The queues that a list or a bulk command is about: [`QueueNames`].

use clap::Args;
use optimus_core::QueueName;

/// Queues as arguments, or as options: some commands have other arguments, so their queues are
/// options, and people write the option here, too.
#[derive(Debug, Args)]
pub(crate) struct QueueNames {
    /// The queues [default: all].
    #[arg(value_name = "QUEUE")]
    queues: Vec<QueueName>,
    /// The same as `QUEUE`; may be repeated.
    #[arg(
        long = "queue",
        value_name = "QUEUE",
        allow_hyphen_values = true,
        conflicts_with = "queues"
    )]
    queue_options: Vec<QueueName>,
}

impl QueueNames {
    /// Returns those that were named.
    pub(crate) fn named(&self) -> &[QueueName] {
        if self.queues.is_empty() { &self.queue_options } else { &self.queues }
    }
}
