//! How a client is set up: [`ClientBuilder`].

use std::{sync::Arc, time::Duration};

use super::{Client, Inner, Mailboxes, Submitter};
use crate::{
    Error,
    broker::{Broker, Endpoint},
    id::validate_name,
};

/// The prefix of all keys where none is set.
pub const NAMESPACE_DEFAULT: &str = "optimus";
const PAYLOAD_LIMIT: usize = 1024 * 1024;
/// As good as for ever, and still an instant.
const SUBMIT_TIMEOUT_MAX: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);
const SUBMIT_TIMEOUT: Duration = Duration::from_secs(30);

/// Settings of a [`Client`], each with a default.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `.connect().await`"]
pub struct ClientBuilder {
    url: String,
    namespace: String,
    payload_limit: usize,
    submit_timeout: Duration,
}

impl ClientBuilder {
    pub(super) fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            namespace: NAMESPACE_DEFAULT.to_owned(),
            payload_limit: PAYLOAD_LIMIT,
            submit_timeout: SUBMIT_TIMEOUT,
        }
    }

    /// The prefix of all keys: systems of different namespaces don't see each other.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// The largest arguments, in bytes of JSON; 1 MiB by default.
    pub fn payload_limit(mut self, bytes: usize) -> Self {
        self.payload_limit = bytes;
        self
    }

    /// How long a submit goes on trying while Redis is away; 30 s by default.
    pub fn submit_timeout(mut self, timeout: Duration) -> Self {
        self.submit_timeout = timeout.min(SUBMIT_TIMEOUT_MAX);
        self
    }

    /// Connects.
    ///
    /// # Errors
    /// See [`Client::connect`].
    pub async fn connect(self) -> Result<Client, Error> {
        validate_name(&self.namespace)?;
        let broker = Broker::new(Endpoint::parse(&self.url)?, &self.namespace, "client");
        broker.within(Duration::ZERO).ping().await?;
        let submitter = Submitter::spawn(broker.clone(), self.submit_timeout);
        let mailboxes = Mailboxes::new(broker.clone());
        let payload_limit = self.payload_limit;
        Ok(Client(Arc::new(Inner { broker, submitter, mailboxes, payload_limit })))
    }
}
