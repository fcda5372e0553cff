//! Tasks that must run alone, because the next lost worker would bury them: [`Suspects`].
//!
//! One of them may kill its process, and nobody can tell which. So the worker holds them while what
//! else it runs comes to its end, and claims nothing. Then it gives them all back but claims one
//! anew, alone, and claims nothing else before that has ended. Redis buries no lost task but one
//! that was claimed alone.

use std::sync::{Mutex, MutexGuard, PoisonError};

use optimus_core::{Lease, QueueName, TaskId};

/// The suspects that a worker holds, and whether one runs.
#[derive(Debug, Default)]
pub(crate) struct Suspects(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    held: Vec<Lease>,
    /// A task was claimed alone and has not ended.
    one_runs: bool,
}

/// Whether the next lost worker would bury a task that was lost so often.
pub(crate) fn is_suspect(losses: u32, max_losses: u32) -> bool {
    losses > 0 && losses + 1 >= max_losses
}

impl Suspects {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds one until it can run alone. Its lease is kept like that of a running task.
    pub(crate) fn hold(&self, lease: Lease) {
        tracing::warn!(id = %lease.id, "was lost before; it runs alone once all others have ended");
        self.state().held.push(lease);
    }

    pub(crate) fn holds(&self, id: &TaskId, fence: u64) -> bool {
        self.state().held.iter().any(|lease| lease.id == *id && lease.token.fence == fence)
    }

    /// Whether the worker must claim nothing but for these.
    pub(crate) fn any(&self) -> bool {
        let state = self.state();
        state.one_runs || !state.held.is_empty()
    }

    /// What ran alone has ended. Lets go of all, to be given back; and whose queue one is to be
    /// claimed from, alone.
    pub(crate) fn release(&self) -> (Vec<Lease>, Option<QueueName>) {
        let mut state = self.state();
        let held = std::mem::take(&mut state.held);
        state.one_runs = !held.is_empty();
        let queue = held.first().map(|lease| lease.id.queue().clone());
        (held, queue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_suspect_once_the_next_loss_would_bury_it() {
        let suspect = |max| (0..5).filter(|losses| is_suspect(*losses, max)).collect::<Vec<_>>();
        assert_eq!(suspect(3), [2, 3, 4]);
        assert_eq!(suspect(1), [1, 2, 3, 4]);
        assert!(suspect(9).is_empty());
    }
}
