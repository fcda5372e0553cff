//! Awaits a condition that nobody signals.

use std::time::Duration;

use tokio::time::{sleep, timeout};

/// Short enough that a test does not feel it, long enough to leave the cores to the tested.
const INTERVAL: Duration = Duration::from_millis(5);

/// Asks `condition` again and again until it holds. Prefer a [`Signal`](crate::Signal) where
/// the tested code can be made to give one.
///
/// # Panics
///
/// Naming `what` was awaited, if it does not hold `within` the bound.
pub async fn eventually(what: &str, within: Duration, mut condition: impl AsyncFnMut() -> bool) {
    let polling = async {
        while !condition().await {
            sleep(INTERVAL).await;
        }
    };
    assert!(timeout(within, polling).await.is_ok(), "not within {within:?}: {what}");
}
