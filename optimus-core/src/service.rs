//! What a worker runs beside its tasks for another crate, such as the relay of a database:
//! [`Service`].

use std::fmt;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::{Client, Error};

/// A part of a program that starts and ends with a worker. This type is for the other Optimus
/// crates.
pub struct Service {
    name: String,
    start: Start,
}

type Start =
    Box<dyn FnOnce(ServiceHost) -> BoxFuture<'static, Result<RunningService, Error>> + Send + Sync>;

/// A service that has started. It runs while it is polled, and ends soon after
/// [`ServiceHost::stopping`] is cancelled.
pub type RunningService = BoxFuture<'static, ()>;

/// What a worker gives to a service.
#[derive(Debug, Clone)]
pub struct ServiceHost {
    /// A client of the worker's store, on the runtime of its handlers.
    pub client: Client,
    /// Cancelled once the handlers of the worker have ended.
    pub stopping: CancellationToken,
}

/// Builders of workers, which take services.
pub trait WithService: Sized {
    /// Adds a service.
    fn service(self, service: Service) -> Self;
}

impl Service {
    /// Makes a service. `start` checks that it can run; an error ends the start of the worker.
    pub fn new<F, S>(name: impl Into<String>, start: F) -> Self
    where
        F: FnOnce(ServiceHost) -> S + Send + Sync + 'static,
        S: Future<Output = Result<RunningService, Error>> + Send + 'static,
    {
        Self { name: name.into(), start: Box::new(|host| Box::pin(start(host))) }
    }

    /// Returns what it is, for the log.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Starts it.
    ///
    /// # Errors
    /// Why it can't run.
    pub async fn start(self, host: ServiceHost) -> Result<RunningService, Error> {
        (self.start)(host).await
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Service({})", self.name)
    }
}
