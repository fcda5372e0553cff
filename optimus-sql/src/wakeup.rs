//! Wakes the relays of this process when a call was stored: [`wake`].

use std::sync::LazyLock;

use tokio::sync::watch;

static STORED: LazyLock<watch::Sender<()>> = LazyLock::new(|| watch::Sender::new(()));

/// Tells relays that a commit may follow soon, or has come.
pub(crate) fn wake() {
    STORED.send_replace(());
}

/// Returns a receiver that learns of each later call.
pub(crate) fn listen() -> watch::Receiver<()> {
    STORED.subscribe()
}
