//! A gate for code that blocks: it keeps the threads that arrive until the test releases them.

use std::{
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

use crate::Signal;

/// No thread is kept for longer, so that a test that fails ends, too.
const KEPT_MAX: Duration = Duration::from_secs(40);

/// What [`Gate`](crate::Gate) is for tasks, this is for threads. Clones share one state.
///
/// The tested code calls [`keep_thread`](Self::keep_thread); the test awaits the
/// [`arrivals`](Self::arrivals), does what must happen meanwhile, and [`release`](Self::release)s.
#[derive(Clone, Debug, Default)]
pub struct Hold {
    arrivals: Signal,
    released: Arc<(Mutex<bool>, Condvar)>,
}

impl Hold {
    /// Keeps every thread that arrives.
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

    /// Lets every thread go, and keeps no more.
    pub fn release(&self) {
        let (is_released, released) = &*self.released;
        *is_released.lock().expect("no holder of this lock panics") = true;
        released.notify_all();
    }

    /// The signal that each arrival hits.
    pub fn arrivals(&self) -> &Signal {
        &self.arrivals
    }
}
