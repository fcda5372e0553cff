//! The trait of background roles, and the loop that runs them.

use std::{future::Future, panic::AssertUnwindSafe, time::Duration};

use futures_util::FutureExt;
use optimus_core::{panic_sentence, platform};
use tokio_util::sync::CancellationToken;

use crate::{role_wakeups::Wakeup, shutdown_state::Shutdown, user_code::discard};

/// A part of the worker that acts in turns. Each turn returns how long the role can rest.
pub(crate) trait Role {
    /// Takes one turn. The future is never dropped before it ends, because Redis executes the calls
    /// that it sent.
    fn tick(&mut self) -> impl Future<Output = Duration>;
}

impl<R: Role> Role for &mut R {
    fn tick(&mut self) -> impl Future<Output = Duration> {
        (**self).tick()
    }
}

/// Runs a role until `stop`. `wake` ends a rest early.
pub(crate) async fn run(mut role: impl Role, wake: &Wakeup, stop: &CancellationToken) {
    while !stop.is_cancelled() {
        let rest = role.tick().await;
        if rest.is_zero() {
            // Ready tasks run first, so that the next turn sends the reports of tasks that end at
            // once.
            platform::yield_now().await;
            continue;
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = wake.woken() => {}
            () = tokio::time::sleep(rest) => {}
        }
    }
}

/// Ends the worker if a role panics. The other roles run until the worker has ended, so leases are
/// kept.
pub(crate) async fn supervise(name: &str, shutdown: &Shutdown, running: impl Future<Output = ()>) {
    if let Err(panic) = AssertUnwindSafe(running).catch_unwind().await {
        shutdown.fail(format!("the {name} {}", panic_sentence(&*panic)));
        discard(panic);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;
    use crate::{running_worker::Running, test_worker::idle_worker};

    #[tokio::test]
    async fn a_role_that_panics_ends_its_worker_which_reports_the_panic_and_leaves() {
        let (client, shared) = idle_worker("role-that-panics").await;
        let queue = shared.queues[0].name.clone();
        let workers = async || client.inspector().workers(&queue).await.unwrap().len();
        assert_eq!(workers().await, 1);
        let running = Running::start(shared.clone(), None).unwrap();
        supervise("reaper", &shared.shutdown, async { panic!("boom") }).await;
        let ends = timeout(Duration::from_secs(10), shared.shutdown.quieted()).await;
        assert!(ends.is_ok(), "the worker goes on");
        running.end().await;
        let why = shared.shutdown.failure().unwrap();
        assert!(why.starts_with("the reaper panicked at optimus-worker/src/role.rs:"), "{why}");
        assert!(why.ends_with(": boom"), "{why}");
        assert_eq!(workers().await, 0);
    }
}
