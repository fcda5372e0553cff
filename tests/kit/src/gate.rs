//! A gate that holds the tested code at one place until the test releases it.

use tokio::sync::watch;

use crate::Signal;

/// A gate, which is closed at first. Clones share one gate.
///
/// A handler calls [`pass`](Self::pass); the test awaits its [`arrivals`](Self::arrivals), does its
/// work, and calls [`open`](Self::open).
#[derive(Clone, Debug, Default)]
pub struct Gate {
    arrivals: Signal,
    opened: watch::Sender<bool>,
}

impl Gate {
    /// Returns a closed gate without arrivals.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts an arrival, then waits until the gate is open. The wait has no bound, so the test
    /// must open the gate.
    pub async fn pass(&self) {
        let mut opened = self.opened.subscribe();
        self.arrivals.hit();
        opened.wait_for(|opened| *opened).await.expect("this gate holds the sender");
    }

    /// Lets every arrival pass from now on.
    pub fn open(&self) {
        self.opened.send_replace(true);
    }

    /// Makes later arrivals wait again.
    pub fn close(&self) {
        self.opened.send_replace(false);
    }

    /// Returns the signal that each arrival hits.
    pub fn arrivals(&self) -> &Signal {
        &self.arrivals
    }
}
