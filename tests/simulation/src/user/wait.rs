//! A user that waits for the ends of tasks while it performs other acts.

use std::sync::PoisonError;
use std::time::Duration;

use optimus_core::TaskHandle;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::User;

impl User {
    /// Waits for a result in the background.
    pub(crate) fn await_result(&self, number: u64, handle: TaskHandle<u64>) {
        let network = self.network.clone();
        let wait = tokio::spawn(async move {
            loop {
                match handle.result().await {
                    // The injected failure of a `redis.call` refused the check.
                    Err(problem) if problem.is_rejected() => {
                        sleep(Duration::from_millis(200)).await;
                    }
                    Ok(fence) if !network.journal.ended_well(number, fence) => {
                        network.complain(format!("task {number} has the result of no attempt"));
                        return;
                    }
                    _ => return,
                }
            }
        });
        self.keep_wait(number, wait);
    }

    /// Waits, after this delay, for the end of a task that returns nothing. If the task succeeded
    /// and no failover could lose its success, the handle reports it. Otherwise the handle reports
    /// no success.
    pub(crate) fn await_success(&self, number: u64, handle: TaskHandle<()>, late: Duration) {
        let network = self.network.clone();
        let wait = tokio::spawn(async move {
            sleep(late).await;
            let told = loop {
                match handle.result().await {
                    Err(problem) if problem.is_rejected() => {
                        sleep(Duration::from_millis(200)).await;
                    }
                    told => break told,
                }
            };
            match told {
                Ok(()) if !network.journal.has_succeeded(number) => {
                    network.complain(format!(
                        "task {number} is reported as a success, but did not succeed"
                    ));
                }
                Err(problem) if problem.is_forgotten() && !network.journal.was_rolled_back() => {
                    network.complain(format!("the success of task {number} is forgotten"));
                }
                _ => {}
            }
        });
        self.keep_wait(number, wait);
    }

    pub(super) fn keep_wait(&self, number: u64, wait: JoinHandle<()>) {
        let mut waits = self.shared.waits.lock().unwrap_or_else(PoisonError::into_inner);
        waits.push((self.process, number, wait));
    }
}
