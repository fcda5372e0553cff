//! Asks user code to stop: [`StopSignal`]. This module is for the other Optimus crates.

use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::{runtime::Handle, sync::Notify};

/// Whether user code is asked to stop, and the futures that wait for that.
///
/// A waker is user code, too: it may panic, and it may block its thread. So a caller on a thread of
/// Optimus asks, which the user's code sees at once, and wakes those who wait on the runtime of the
/// handlers: [`stop_on`](Self::stop_on).
#[derive(Debug, Default)]
pub struct StopSignal {
    asked: AtomicBool,
    waits: Notify,
}

impl StopSignal {
    /// Returns whether the user's code is asked to stop.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    /// Resolves once the user's code is asked to stop.
    pub async fn asked(&self) {
        let mut woken = pin!(self.waits.notified());
        // Enabled before the check, so that a call between the two is not missed.
        woken.as_mut().enable();
        if !self.is_asked() {
            woken.await;
        }
    }

    /// Asks without a wakeup. Returns `true` only for the first caller.
    fn ask(&self) -> bool {
        !self.asked.swap(true, Ordering::AcqRel)
    }

    /// Wakes the futures that wait. A panic of a waker ends here; others that wait may then stay
    /// asleep.
    fn wake(&self) {
        let wake = AssertUnwindSafe(|| self.waits.notify_waiters());
        // The drop of the payload may panic again.
        catch_unwind(wake).unwrap_or_else(mem::forget);
    }

    /// Asks and wakes.
    pub fn stop(&self) {
        if self.ask() {
            self.wake();
        }
    }

    /// Asks by the signal of `owner`, and wakes on this runtime; here, if the runtime has ended.
    pub fn stop_on<T>(owner: &Arc<T>, runtime: &Handle)
    where
        T: AsRef<Self> + Send + Sync + 'static,
    {
        if (**owner).as_ref().ask() {
            let wakes = WakesAtDrop(owner.clone());
            drop(runtime.spawn(async move { drop(wakes) }));
        }
    }
}

/// A runtime that has ended drops its tasks without running them.
struct WakesAtDrop<T: AsRef<StopSignal>>(Arc<T>);

impl<T: AsRef<StopSignal>> Drop for WakesAtDrop<T> {
    fn drop(&mut self) {
        (*self.0).as_ref().wake();
    }
}

impl AsRef<Self> for StopSignal {
    fn as_ref(&self) -> &Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::task::Context;

    use futures_util::FutureExt;

    use super::*;
    use crate::bomb_waker::bomb;

    #[test]
    fn a_stop_wakes_every_waiter_and_later_ones_do_not_wait() {
        let signal = StopSignal::default();
        let (mut early, mut other) = (pin!(signal.asked()), pin!(signal.asked()));
        assert!(early.as_mut().now_or_never().is_none());
        assert!(other.as_mut().now_or_never().is_none());
        assert!(!signal.is_asked());
        assert!(signal.ask() && !signal.ask());
        signal.wake();
        assert!(early.now_or_never().is_some() && other.now_or_never().is_some());
        assert!(signal.asked().now_or_never().is_some());
    }

    #[test]
    fn a_waker_that_panics_does_not_stop_the_caller() {
        let signal = StopSignal::default();
        let mut asked = pin!(signal.asked());
        assert!(asked.as_mut().poll(&mut Context::from_waker(&bomb())).is_pending());
        signal.stop();
        assert!(signal.is_asked() && asked.now_or_never().is_some());
    }

    #[test]
    fn those_who_wait_are_woken_although_the_runtime_has_ended() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let ended = runtime.handle().clone();
        drop(runtime);
        let signal = Arc::new(StopSignal::default());
        let mut asked = pin!(signal.asked());
        assert!(asked.as_mut().now_or_never().is_none());
        StopSignal::stop_on(&signal, &ended);
        assert!(asked.now_or_never().is_some());
    }
}
