//! Finds out whether handlers block all threads of their runtime: [`RuntimeProbe`].

use std::time::Duration;

use tokio::{runtime::Handle, task::JoinHandle, time::Instant};

/// Gives the runtime an empty task, and looks later whether it has run.
#[derive(Debug, Default)]
pub(crate) struct RuntimeProbe {
    sent: Option<(JoinHandle<()>, Instant)>,
}

impl RuntimeProbe {
    /// Returns for how long the runtime has run nothing new. Returns `None` if it has run what the
    /// last call gave it, and gives it the next task then.
    pub(crate) fn look(&mut self, runtime: &Handle) -> Option<Duration> {
        match &self.sent {
            Some((probe, sent)) if !probe.is_finished() => Some(sent.elapsed()),
            _ => {
                self.sent = Some((runtime.spawn(async {}), Instant::now()));
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
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let mut probe = RuntimeProbe::default();
        runtime.block_on(async {
            assert_eq!(probe.look(&Handle::current()), None);
            yield_now().await;
            assert_eq!(probe.look(&Handle::current()), None, "it has run the first task");
        });
        // Nothing runs the runtime from here on, as if a handler blocked its thread.
        let blocked = probe.look(runtime.handle()).expect("it has not run the second task");
        assert!(probe.look(runtime.handle()) >= Some(blocked), "the time goes on");
        runtime.block_on(yield_now());
        assert_eq!(probe.look(runtime.handle()), None, "it runs again");
    }
}
