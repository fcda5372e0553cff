//! Awaits a condition that has no signal.

use std::time::Duration;

use tokio::time::{sleep, timeout};

/// Short enough that a test is not slowed, long enough to leave the cores to the tested code.
const INTERVAL: Duration = Duration::from_millis(5);

/// Checks `condition` repeatedly until it holds. Prefer a [`Signal`](crate::Signal) if the tested
/// code can send one.
///
/// # Panics
///
/// If it does not hold `within` the bound. The message names `what` was awaited.
pub async fn eventually(what: &str, within: Duration, mut condition: impl AsyncFnMut() -> bool) {
    let polling = async {
        while !condition().await {
            sleep(INTERVAL).await;
        }
    };
    assert!(timeout(within, polling).await.is_ok(), "not within {within:?}: {what}");
}
