//! Wakes the relays of this process when a call was stored: [`wake`].

use std::sync::LazyLock;

use tokio::sync::watch;

use crate::unsent::Hint;

static STORED: LazyLock<watch::Sender<()>> = LazyLock::new(|| watch::Sender::new(()));
static HINT: LazyLock<Hint> = LazyLock::new(Hint::default);

/// Tells relays that a call was stored, so a commit may follow soon.
pub(crate) fn stored() {
    HINT.stored(STORED.receiver_count());
    wake();
}

/// Returns whether this process has ever stored a call.
pub(crate) fn has_stored() -> bool {
    HINT.has_stored()
}

/// Tells relays that a commit has come.
pub(crate) fn wake() {
    STORED.send_replace(());
}

/// Returns a receiver that learns of each later call.
pub(crate) fn listen() -> watch::Receiver<()> {
    STORED.subscribe()
}
