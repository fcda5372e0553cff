//! The client that `.perform_async()` submits through in place of the installed one: within a
//! [scope](Client::scope), and within the handlers of a worker ([`OwnClient`]).

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use tokio::{runtime::Handle, task::futures::TaskLocalFuture, task_local};

use super::{Client, ClientBuilder};
use crate::{broker::Broker, layers::Layers};

task_local! {
    /// That of the handler or of the [scope](Client::scope) that runs here.
    static CURRENT: Arc<OwnClient>;
}

/// What `.perform_async()` submits through within a handler or a scope. For the other Optimus
/// crates.
pub struct OwnClient(Source);

enum Source {
    /// The one of a scope.
    Given(Client),
    /// To the store of a worker, made when a handler first asks for it. Most workers never need it,
    /// and it has a connection.
    Worker {
        broker: Broker,
        /// A handler that blocks may ask from a runtime of its own, which ends.
        runtime: Handle,
        made: OnceLock<Client>,
        layers: Layers,
    },
}

impl Client {
    /// Runs a future with this client behind its `.perform_async()`, whatever is installed.
    ///
    /// It is for tests that run in parallel, each with a store of its own, of code that submits by
    /// `.perform_async()`. It does not reach into futures that the future spawns.
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
}

impl OwnClient {
    /// To the store of this broker, on the current runtime.
    pub fn here(broker: &Broker, layers: Layers) -> Arc<Self> {
        let (broker, runtime) = (broker.clone(), Handle::current());
        Arc::new(Self(Source::Worker { broker, runtime, made: OnceLock::new(), layers }))
    }

    /// That of the scope; or the installed client if it is one of the worker's store, since it may
    /// have settings; else one of the worker's own. What either submits passes the layers of the
    /// worker, so that it does not depend on what else is in the process.
    pub(crate) fn client(&self) -> Client {
        let (broker, runtime, made, layers) = match &self.0 {
            Source::Given(client) => return client.clone(),
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

    /// That of the handler or scope that runs here, if one does.
    pub(crate) fn current() -> Option<Arc<Self>> {
        CURRENT.try_with(Arc::clone).ok()
    }

    /// Calls a part of a handler.
    pub fn enter<T>(self: &Arc<Self>, part: impl FnOnce() -> T) -> T {
        CURRENT.sync_scope(self.clone(), part)
    }

    /// The future of a handler, which submits through this client.
    pub fn within<F: Future>(self: &Arc<Self>, handler: F) -> TaskLocalFuture<Arc<Self>, F> {
        CURRENT.scope(self.clone(), handler)
    }
}

impl fmt::Debug for OwnClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnClient")
    }
}
