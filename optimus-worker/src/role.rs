//! The one shape of background roles, and the one loop that runs them.

use std::{future::Future, time::Duration};

use optimus_core::machine;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Something that acts, and says how long it can rest.
pub(crate) trait Role {
    /// One act. It is never dropped half-way: what was sent to Redis executes.
    fn tick(&mut self) -> impl Future<Output = Duration>;
}

/// Runs a role until `stop`; `wake` cuts a rest short.
pub(crate) async fn play(mut role: impl Role, wake: &Notify, stop: &CancellationToken) {
    while !stop.is_cancelled() {
        let rest = role.tick().await;
        if rest.is_zero() {
            // What is ready goes first, so that a next turn takes along what ends at once.
            machine::yield_now().await;
            continue;
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = wake.notified() => {}
            () = tokio::time::sleep(rest) => {}
        }
    }
}
