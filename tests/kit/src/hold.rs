//! A gate for code that blocks. It holds the threads that arrive until the test releases them.

use std::{
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

use crate::Signal;

/// The longest time that a thread is held. With this limit, a test that fails also ends.
const KEPT_MAX: Duration = Duration::from_secs(40);

/// A [`Gate`](crate::Gate) for threads. Clones share one state.
///
/// The tested code calls [`keep_thread`](Self::keep_thread); the test awaits the
/// [`arrivals`](Self::arrivals), does its work, and calls [`release`](Self::release).
#[derive(Clone, Debug, Default)]
pub struct Hold {
    arrivals: Signal,
    released: Arc<(Mutex<bool>, Condvar)>,
}

impl Hold {
    /// Holds every thread that arrives.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts an arrival, then blocks this thread until the release.
    pub fn keep_thread(&self) {
        self.arrivals.hit();
        let (is_released, released) = &*self.released;
        let is_released = is_released.lock().expect("no holder of this lock panics");
        drop(released.wait_timeout_while(is_released, KEPT_MAX, |is| !*is));
    }

    /// Releases every thread, and holds no more threads.
    pub fn release(&self) {
        let (is_released, released) = &*self.released;
        *is_released.lock().expect("no holder of this lock panics") = true;
        released.notify_all();
    }

    /// Returns the signal that each arrival hits.
    pub fn arrivals(&self) -> &Signal {
        &self.arrivals
    }
}
