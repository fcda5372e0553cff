//! The port at which a worker serves its metrics and probes: [`MetricsPort`].

use std::sync::{Arc, Mutex, PoisonError};

use optimus_core::{Error, log_event};
use optimus_metrics::{Answer, Listener, Server};

use crate::{
    WorkerBuilder,
    beats::Beats,
    config::Config,
    health::{liveness, readiness},
    shared::Shared,
    user_code::discard,
    worker_metrics,
};

impl WorkerBuilder {
    /// Serves metrics and probes over HTTP at this address while the worker runs: `127.0.0.1:9000`,
    /// or `0.0.0.0:9000` for all that can reach the machine. Each worker of a process needs a port
    /// of its own; port 0 is any free one, which the log names.
    ///
    /// `/metrics` is what this worker has done, in the text format of Prometheus. `/livez` fails if
    /// the worker can no longer work: handlers have blocked all threads of its runtime for 30 s, or
    /// its claims go on no more. `/readyz` fails while Redis does not answer, and when the worker
    /// ends. They have a thread of their own, so handlers that block do not block them.
    ///
    /// The texts have the names of queues and tasks, and nothing of the tasks themselves. Who
    /// reaches the port can read them.
    pub fn metrics(mut self, address: impl AsRef<str>) -> Self {
        match optimus_metrics::parse_address(address.as_ref()) {
            Ok(address) => self.config.metrics = Some(address),
            Err(problem) => {
                self.problem = Some(Error::invalid(format!("worker: metrics: {problem}")));
            }
        }
        self
    }
}

/// A port that is open before the worker registers, and is served while the worker runs.
#[derive(Debug, Default)]
pub(crate) struct MetricsPort {
    listener: Mutex<Option<Listener>>,
    /// When the loops of the worker ran last.
    pub(crate) beats: Beats,
}

impl MetricsPort {
    /// Opens the port, if the settings name one.
    pub(crate) fn open(config: &Config) -> Result<Self, Error> {
        let Some(address) = config.metrics else { return Ok(Self::default()) };
        let listener = Listener::bind(address).map_err(|problem| {
            Error::invalid(format!(
                "worker: metrics: can't listen on {address}: {problem}; each worker needs a port \
                 of its own that no other program uses, and an address of this machine"
            ))
        })?;
        Ok(Self { listener: Mutex::new(Some(listener)), ..Self::default() })
    }

    /// Serves the port until the returned value is dropped.
    pub(crate) fn serve(&self, shared: &Arc<Shared>) -> Result<Option<Server>, Error> {
        let listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(listener) = listener else { return Ok(None) };
        let worker = Arc::downgrade(shared);
        let answer = move |path: &str, _: &str| {
            let Some(shared) = worker.upgrade() else {
                return Answer::probe(&["the worker has ended".to_owned()]);
            };
            let answer = answer(&shared, path);
            // This thread may be the last owner of the user's data.
            discard(shared);
            answer
        };
        let server = Server::start(listener, answer).map_err(|problem| {
            Error::invalid(format!("can't start the thread of the metrics: {problem}"))
        })?;
        let url = format!("http://{}/metrics", server.address());
        log_event!(shared.log, INFO, url, "metrics are served");
        Ok(Some(server))
    }
}

fn answer(shared: &Shared, path: &str) -> Answer {
    match path {
        "/metrics" => Answer::metrics(worker_metrics::text(shared)),
        "/livez" => Answer::probe(&liveness(shared)),
        "/readyz" => Answer::probe(&readiness(shared)),
        _ => Answer::not_found("here are /metrics, /livez and /readyz"),
    }
}
