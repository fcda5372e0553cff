//! A waker that panics, for tests: [`bomb`].

use std::{
    sync::Arc,
    task::{Wake, Waker},
};

struct Bomb;

impl Wake for Bomb {
    fn wake(self: Arc<Self>) {
        panic!("woken");
    }
}

/// Returns a waker that panics when it wakes.
pub(crate) fn bomb() -> Waker {
    Waker::from(Arc::new(Bomb))
}
