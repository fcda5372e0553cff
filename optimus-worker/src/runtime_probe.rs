//! Finds out whether handlers block all threads of their runtime: [`RuntimeProbe`].

use std::time::Duration;

use tokio::{runtime::Handle, task::JoinHandle, time::Instant};

/// A runtime that has not run a new task for less than this may only be busy.
const LEAST: Duration = Duration::from_secs(1);

/// Gives the runtime an empty task, and looks later whether it has run.
#[derive(Debug, Default)]
pub(crate) struct RuntimeProbe {
    sent: Option<(JoinHandle<()>, Instant)>,
}

impl RuntimeProbe {
    /// Returns for how long the runtime has run nothing new, if that is long. If it has run what an
    /// earlier call gave it, gives it the next task.
    pub(crate) fn look(&mut self, runtime: &Handle, now: Instant) -> Option<Duration> {
        match &self.sent {
            Some((probe, sent)) if !probe.is_finished() => {
                Some(now.duration_since(*sent)).filter(|time| *time >= LEAST)
            }
            _ => {
                self.sent = Some((runtime.spawn(async {}), now));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::yield_now;

    use super::*;

    #[test]
    fn a_runtime_whose_only_thread_is_blocked_runs_nothing_new() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (mut probe, now) = (RuntimeProbe::default(), Instant::now());
        let mut look = |after: Duration| probe.look(runtime.handle(), now + after);
        assert_eq!(look(Duration::ZERO), None);
        runtime.block_on(yield_now());
        assert_eq!(look(LEAST), None, "it has run the first task");
        // Nothing runs the runtime from here on, as if a handler blocked its thread.
        assert_eq!(look(LEAST + LEAST / 2), None, "it may only be busy");
        assert_eq!(look(2 * LEAST), Some(LEAST));
        assert_eq!(look(5 * LEAST), Some(4 * LEAST));
        runtime.block_on(yield_now());
        assert_eq!(look(6 * LEAST), None, "it runs again");
    }
}
