//! The client that `.perform_async()` uses instead of the installed one: in a
//! [scope](Client::scope), and in the handlers of a worker ([`OwnClient`]).

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use tokio::{runtime::Handle, task::futures::TaskLocalFuture, task_local};

use super::{Client, ClientBuilder, deferral::Deferred};
use crate::{broker::Broker, layers::Layers};

task_local! {
    /// The client of the handler or of the [scope](Client::scope) that is running.
    static CURRENT: Arc<OwnClient>;
}

/// The client of `.perform_async()` in a handler or a scope. This type is for the other Optimus
/// crates.
pub struct OwnClient(Source);

enum Source {
    /// The client of a scope.
    Given(Client),
    /// The calls of a transaction, which wait for its commit.
    Deferring(Deferred),
    /// A client for the store of a worker. It is made when a handler first needs it, because it has
    /// a connection, and most workers never need one.
    Worker {
        broker: Broker,
        /// The worker's runtime, because a blocking handler may submit on another runtime, which
        /// ends.
        runtime: Handle,
        made: OnceLock<Client>,
        layers: Layers,
    },
}

impl Client {
    /// Runs a future whose `.perform_async()` uses this client, regardless of the installed client.
    ///
    /// Use this method in tests of code that uses `.perform_async()`, if the tests run in parallel
    /// and each has its own store. The scope does not apply to futures that the future spawns.
    ///
    /// ```
    /// # use optimus_core::{BoxError, Client, Context, Task};
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct Welcome;
    /// # impl Task for Welcome {
    /// #     const NAME: &'static str = "welcome";
    /// #     type Output = ();
    /// #     async fn run(self, _: Context) -> Result<(), BoxError> {
    /// #         Ok(())
    /// #     }
    /// # }
    /// # fn welcome() -> optimus_core::Call<Welcome> {
    /// #     Welcome.call()
    /// # }
    /// async fn sign_up() -> Result<(), optimus_core::Error> {
    ///     welcome().perform_async().await?;
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), optimus_core::Error> {
    /// let client = Client::connect("memory://sign_up").await?;
    /// client.scope(sign_up()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn scope<F: Future>(&self, part: F) -> F::Output {
        Arc::new(OwnClient(Source::Given(self.clone()))).within(part).await
    }

    /// Calls a closure whose `.perform_async()` uses this client.
    pub(super) fn enter<T>(&self, part: impl FnOnce() -> T) -> T {
        Arc::new(OwnClient(Source::Given(self.clone()))).enter(part)
    }
}

impl OwnClient {
    /// Keeps the calls of a transaction until its commit.
    pub(super) fn deferring(deferred: Deferred) -> Arc<Self> {
        Arc::new(Self(Source::Deferring(deferred)))
    }

    /// Returns the calls of the transaction that is running, if this is one.
    pub(super) fn deferred(&self) -> Option<&Deferred> {
        match &self.0 {
            Source::Deferring(deferred) => Some(deferred),
            Source::Given(_) | Source::Worker { .. } => None,
        }
    }

    /// Returns a client for the store of this broker, on the current runtime.
    pub fn here(broker: &Broker, layers: Layers) -> Arc<Self> {
        let (broker, runtime) = (broker.clone(), Handle::current());
        Arc::new(Self(Source::Worker { broker, runtime, made: OnceLock::new(), layers }))
    }

    /// Returns the runtime of the worker, if this is its client.
    pub(crate) fn runtime(&self) -> Option<&Handle> {
        match &self.0 {
            Source::Worker { runtime, .. } => Some(runtime),
            Source::Given(_) | Source::Deferring(_) => None,
        }
    }

    /// In a scope, this is the client of the scope. In a handler, it is the installed client if
    /// that has the worker's store, because it may have other settings; otherwise it is a client of
    /// the worker. Submits of both pass the layers of the worker, so they do not depend on the rest
    /// of the process.
    pub fn client(&self) -> Client {
        let (broker, runtime, made, layers) = match &self.0 {
            Source::Given(client) => return client.clone(),
            Source::Deferring(deferred) => return deferred.client(),
            Source::Worker { broker, runtime, made, layers } => (broker, runtime, made, layers),
        };
        if let Ok(installed) = Client::installed()
            && installed.is_open()
            && installed.0.broker.is_of_store(broker)
        {
            return installed.with_layers(layers);
        }
        let over_broker = || {
            let _inside = runtime.enter();
            ClientBuilder::over(broker.separate("client")).with_layers(layers)
        };
        made.get_or_init(over_broker).clone()
    }

    /// Returns the layers of a worker, which the submits of its handlers pass.
    pub(crate) fn layers(&self) -> Option<&Layers> {
        match &self.0 {
            Source::Given(_) | Source::Deferring(_) => None,
            Source::Worker { layers, .. } => Some(layers),
        }
    }

    /// Returns the client of the handler or scope that is running, if any.
    pub(crate) fn current() -> Option<Arc<Self>> {
        CURRENT.try_with(Arc::clone).ok()
    }

    /// Calls a part of a handler, which then submits through this client.
    pub fn enter<T>(self: &Arc<Self>, part: impl FnOnce() -> T) -> T {
        CURRENT.sync_scope(self.clone(), part)
    }

    /// Wraps the future of a handler, which then submits through this client.
    pub fn within<F: Future>(self: &Arc<Self>, handler: F) -> TaskLocalFuture<Arc<Self>, F> {
        CURRENT.scope(self.clone(), handler)
    }
}

impl fmt::Debug for OwnClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnClient")
    }
}
