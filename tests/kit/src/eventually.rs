//! Waits for a condition that has no signal.

use std::time::Duration;

use tokio::time::{sleep, timeout};

/// The interval of the checks. It is short, so that a test is not slower, and long enough to leave
/// the cores to the tested code.
const INTERVAL: Duration = Duration::from_millis(5);

/// Checks `condition` repeatedly until it holds. Prefer a [`Signal`](crate::Signal) if the tested
/// code can send one.
///
/// # Panics
///
/// If the condition does not hold `within` the bound. The message contains `what`.
pub async fn eventually(what: &str, within: Duration, mut condition: impl AsyncFnMut() -> bool) {
    let polling = async {
        while !condition().await {
            sleep(INTERVAL).await;
        }
    };
    assert!(timeout(within, polling).await.is_ok(), "not within {within:?}: {what}");
}
