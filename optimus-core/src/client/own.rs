//! The client that the handlers of a worker submit through: [`OwnClient`]. For the other Optimus
//! crates.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use tokio::{runtime::Handle, task::futures::TaskLocalFuture, task_local};

use super::{Client, ClientBuilder};
use crate::broker::Broker;

task_local! {
    /// That of the handler that runs here.
    static CURRENT: Arc<OwnClient>;
}

/// To the store of a worker, made when a handler first asks for it. Most workers never need it, and
/// it has a connection.
pub struct OwnClient {
    broker: Broker,
    /// A handler that blocks may ask from a runtime of its own, which ends.
    runtime: Handle,
    made: OnceLock<Client>,
}

impl OwnClient {
    /// To the store of this broker, on the current runtime.
    pub fn here(broker: &Broker) -> Arc<Self> {
        let (broker, runtime) = (broker.clone(), Handle::current());
        Arc::new(Self { broker, runtime, made: OnceLock::new() })
    }

    /// The installed client if it is one of this store, since it may have settings; else its own.
    pub(crate) fn client(&self) -> Client {
        if let Ok(installed) = Client::installed()
            && installed.is_open()
            && installed.0.broker.is_of_store(&self.broker)
        {
            return installed;
        }
        let make = || {
            let _inside = self.runtime.enter();
            ClientBuilder::over(self.broker.separate("client"))
        };
        self.made.get_or_init(make).clone()
    }

    /// That of the handler that runs here, if one does.
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
