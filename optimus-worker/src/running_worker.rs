//! A worker that runs: [`Running`].

use std::{sync::Arc, time::Duration};

use optimus_core::{Error, PanicPlace, log_event};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    claimer::Claimer,
    maintenance::Maintenance,
    process::Process,
    role::{run, supervise},
    shared::Shared,
};

/// How long a worker that has ended waits for the subscriber to receive its log events.
pub(crate) const LOG_WITHIN: Duration = Duration::from_millis(300);

/// A worker that runs. Its claimer is a task of this runtime, and everything else is on the
/// maintenance thread. If this value is dropped, the maintenance thread ends the worker at once.
pub(crate) struct Running {
    shared: Arc<Shared>,
    maintenance: Maintenance,
    #[cfg(feature = "metrics")]
    server: Option<optimus_metrics::Server>,
}

/// The claimer, as the maintenance thread sees it.
struct Claiming {
    shared: Arc<Shared>,
    is_over: bool,
    _present: DropGuard,
}

impl Running {
    /// Starts the roles of a worker that is registered.
    pub(crate) fn start(shared: Arc<Shared>, process: Option<Process>) -> Result<Self, Error> {
        PanicPlace::keep();
        #[cfg(feature = "metrics")]
        let server = shared.metrics.serve(&shared)?;
        let claimer = CancellationToken::new();
        let maintenance =
            Maintenance::start(shared.clone(), claimer.clone(), process).map_err(|problem| {
                Error::invalid(format!("can't start the maintenance thread: {problem}"))
            })?;
        let present = claimer.drop_guard();
        let claiming = Claiming { shared: shared.clone(), is_over: false, _present: present };
        // The claimer ends by itself after it has processed the answers that are still under way.
        tokio::spawn(claiming.claim());
        shared.services.run(&shared);
        Ok(Self {
            shared,
            maintenance,
            #[cfg(feature = "metrics")]
            server,
        })
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// Asks the worker to end, and waits until it has left.
    pub(crate) async fn end(mut self) {
        self.shared.shutdown.begin();
        self.maintenance.ended().await;
        #[cfg(feature = "metrics")]
        if let Some(server) = self.server.take() {
            server.end().await;
        }
        log_event!(self.shared.log, INFO, "the worker has ended");
        // The program may end after this, which would drop the events.
        self.shared.log.flush(LOG_WITHIN).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.shutdown.begin();
        self.shared.shutdown.hurry();
    }
}

impl Claiming {
    async fn claim(mut self) {
        let Shared { shutdown, wakeups, .. } = &*self.shared;
        let claiming = run(Claimer::new(self.shared.clone()), &wakeups.claimer, shutdown.roles());
        #[cfg(feature = "metrics")]
        let claiming = self.shared.metrics.beats.claimer.watch(&self.shared.config, claiming);
        supervise("claimer", shutdown, claiming).await;
        self.is_over = true;
    }
}

impl Drop for Claiming {
    fn drop(&mut self) {
        if !self.is_over {
            self.shared.shutdown.fail("the runtime has ended".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use optimus_testkit::RedisServer;
    use tokio::runtime::Builder;

    use super::*;
    use crate::{Worker, test_worker::Nothing};

    #[test]
    fn a_runtime_that_ends_after_its_worker_is_no_failure_of_the_worker() {
        let redis = RedisServer::start();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let shared = runtime.block_on(async {
            let worker = Worker::builder(&redis.url()).quiet().only_named_tasks();
            let worker = worker.task_type::<Nothing>().build().unwrap();
            let shared = worker.idle_worker().await;
            redis.pause();
            let running = Running::start(shared.clone(), None).unwrap();
            // The claimer sends its first claim, which Redis does not answer.
            tokio::task::yield_now().await;
            running.end().await;
            shared
        });
        // The claimer still waits for the answer, and ends when the runtime ends here.
        drop(runtime);
        assert_eq!(shared.shutdown.failure(), None);
    }
}
