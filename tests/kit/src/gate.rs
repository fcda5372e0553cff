//! A gate that holds the tested code at one place until the test lets it go on.

use tokio::sync::watch;

use crate::Signal;

/// Closed at first. Clones are the same gate.
///
/// A handler calls [`pass`](Self::pass); the test awaits its [`arrivals`](Self::arrivals),
/// does what must happen meanwhile, and [`open`](Self::open)s.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    arrivals: Signal,
    opened: watch::Sender<bool>,
}

impl Gate {
    /// A closed gate at which nobody arrived.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts an arrival, then waits until the gate is open. It waits without bound: it is the
    /// tested code that waits here, and the test that must not forget to open.
    pub async fn pass(&self) {
        let mut opened = self.opened.subscribe();
        self.arrivals.hit();
        opened.wait_for(|opened| *opened).await.expect("this gate itself holds the sender");
    }

    /// Lets everyone pass, from now on.
    pub fn open(&self) {
        self.opened.send_replace(true);
    }

    /// Makes those who arrive from now on wait again.
    pub fn close(&self) {
        self.opened.send_replace(false);
    }

    /// The signal hit by each arrival.
    pub fn arrivals(&self) -> &Signal {
        &self.arrivals
    }
}
