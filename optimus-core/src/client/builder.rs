//! The settings of a client: [`ClientBuilder`].

use std::{fmt, sync::Arc, time::Duration};

use tokio::runtime::Handle;

use super::{Client, CompletionListeners, Confirmer, Inner, Readahead, Submitter, ToldDispensers};
use crate::{
    BoxError, Credentials, Durability, Error,
    broker::{Broker, Endpoint, SizeLimit},
    credentials::AskCredentials,
    environment,
    id::validate_name,
    layer::Layer,
    layers::Layers,
    log_event,
};

/// The prefix of all keys, unless another is set.
pub const NAMESPACE_DEFAULT: &str = "optimus";
pub(super) const PAYLOAD_LIMIT: usize = 1024 * 1024;
/// The longest wait that a user can set: longer than any process runs, but its end is still a valid
/// instant.
pub(super) const WAIT_LIMIT: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);
const SUBMIT_TIMEOUT: Duration = Duration::from_secs(30);

/// Settings of a [`Client`], each with a default.
#[derive(Clone)]
#[must_use = "a builder does nothing until `.connect().await`"]
pub struct ClientBuilder {
    url: String,
    namespace: String,
    payload_limit: SizeLimit,
    submit_timeout: Duration,
    durability: Durability,
    credentials: Option<AskCredentials>,
    layers: Layers,
    /// The variables that look like those of Optimus and have no effect, unless the environment was
    /// not read.
    without_effect: Vec<String>,
}

/// Omits the URL, which may have a password.
impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl ClientBuilder {
    pub(super) fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            namespace: NAMESPACE_DEFAULT.to_owned(),
            payload_limit: SizeLimit::new(PAYLOAD_LIMIT, "ClientBuilder::payload_limit"),
            submit_timeout: SUBMIT_TIMEOUT,
            durability: Durability::Memory,
            credentials: None,
            layers: Layers::default(),
            without_effect: Vec::new(),
        }
    }

    /// `var` returns the value of a variable; `names` are the names of all.
    pub(super) fn from_env(
        var: impl Fn(&str) -> Option<String>,
        names: impl IntoIterator<Item = String>,
    ) -> Result<Self, Error> {
        let set = |name: &str| var(name).filter(|value| !value.trim().is_empty());
        let without_effect = environment::unknown(names);
        let builder = Self::new(&environment::url(set, &without_effect)?);
        let builder = Self { without_effect, ..builder };
        Ok(match set(environment::NAMESPACE) {
            Some(namespace) => builder.namespace(namespace.trim()),
            None => builder,
        })
    }

    /// Sets the prefix of all keys. Systems with different namespaces do not see each other.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Sets the maximum size of a task's arguments, in bytes of JSON; 1 MiB by default. Redis
    /// accepts at most its `proto-max-bulk-len`, which is 512 MiB by default;
    /// [`connect`](Self::connect) reads that setting.
    pub fn payload_limit(mut self, bytes: usize) -> Self {
        self.payload_limit = SizeLimit::new(bytes, "ClientBuilder::payload_limit");
        self
    }

    /// Sets how long a submit is retried while Redis can't be reached, counted from the call; 30 s
    /// by default. The submit returns at most a second later.
    pub fn submit_timeout(mut self, timeout: Duration) -> Self {
        self.submit_timeout = timeout.min(WAIT_LIMIT);
        self
    }

    /// Sets the condition under which a submit is acknowledged. By default, Redis must have the
    /// task in memory.
    ///
    /// ```no_run
    /// # use optimus_core::{Client, Durability};
    /// # async fn connect() -> Result<Client, optimus_core::Error> {
    /// Client::builder("redis://localhost").durability(Durability::Replicated(1)).connect().await
    /// # }
    /// ```
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Gets the user and the password from this function instead of the URL. Use this for passwords
    /// that are rotated and tokens that expire.
    ///
    /// Each new connection calls the function, and calls it again before the credentials expire;
    /// see [`Credentials::valid_for`]. The function has 5 s to answer, or 1 s if there is an
    /// earlier answer. If it fails later, its last answer is used. The function is called on the
    /// runtime on which the client is connected. It can't borrow, so it must own its values.
    /// `memory://` does not call it.
    ///
    /// ```no_run
    /// # use optimus_core::{BoxError, Client, Error};
    /// # #[derive(Clone)]
    /// # struct Vault;
    /// # impl Vault { async fn token(&self) -> Result<String, BoxError> { Err("sealed".into()) } }
    /// # async fn connect(vault: Vault) -> Result<Client, Error> {
    /// Client::builder("rediss://redis.example.com")
    ///     .credentials(move || {
    ///         let vault = vault.clone();
    ///         async move { Ok(("optimus", vault.token().await?)) }
    ///     })
    ///     .connect()
    ///     .await
    /// # }
    /// ```
    pub fn credentials<F, R, C>(mut self, ask: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<C, BoxError>> + Send + 'static,
        C: Into<Credentials>,
    {
        self.credentials = Some(AskCredentials::new(ask));
        self
    }

    /// Adds a layer inside those that were added before; see [`Layer::submit`]. It applies to the
    /// submits of this client and its clones, except those that a handler makes with
    /// `.perform_async()` or [`Context::client`](crate::Context::client): they pass only the layers
    /// of its worker.
    pub fn layer(mut self, layer: impl Layer) -> Self {
        self.layers.add(layer);
        self
    }

    /// Connects to the store.
    ///
    /// # Errors
    /// See [`Client::connect`]; [`Error::is_unsupported`] if the store can't give the confirmation
    /// that [`durability`](Self::durability) requires.
    pub async fn connect(self) -> Result<Client, Error> {
        validate_name(&self.namespace)?;
        if self.submit_timeout.is_zero() {
            return Err(Error::invalid(
                "client: the submit timeout is zero; no submit would be sent",
            ));
        }
        let endpoint = Endpoint::with_credentials(&self.url, self.credentials.clone())?;
        if Handle::try_current().is_err() {
            return Err(Error::invalid(
                "a client needs a tokio runtime: connect it in a function with #[tokio::main] or \
                 #[tokio::test], or inside Runtime::block_on",
            ));
        }
        let broker = Broker::new(endpoint, &self.namespace, "client");
        let texts = self.without_effect.iter().map(|name| environment::without_effect(name));
        for text in texts.filter(|text| environment::is_new(text)) {
            log_event!(broker.log(), WARN, "{text}");
        }
        broker.within(Duration::ZERO).ping().await?;
        let confirmer = self.confirmer(&broker).await?;
        let submitter = Submitter::spawn(broker.clone(), confirmer, self.submit_timeout);
        let payload_limit = broker.size_limit(self.payload_limit).await?;
        Ok(Self::client(broker, submitter, payload_limit, self.layers))
    }

    /// Makes a client with the defaults, which connects at its first use.
    pub(super) fn over(broker: Broker) -> Client {
        let payload_limit = SizeLimit::new(PAYLOAD_LIMIT, "ClientBuilder::payload_limit");
        let submitter = Submitter::spawn(broker.clone(), None, SUBMIT_TIMEOUT);
        Self::client(broker, submitter, payload_limit, Layers::default())
    }

    fn client(
        broker: Broker,
        submitter: Submitter,
        payload_limit: SizeLimit,
        layers: Layers,
    ) -> Client {
        let inner = Inner {
            completion_listeners: CompletionListeners::new(broker.clone()),
            broker,
            submitter,
            readahead: Readahead::new(),
            payload_limit,
            told_dispensers: ToldDispensers::default(),
        };
        Client(Arc::new(inner), layers)
    }

    async fn confirmer(&self, broker: &Broker) -> Result<Option<Confirmer>, Error> {
        let durability = self.durability;
        match durability {
            Durability::Memory => return Ok(None),
            Durability::Replicated(0) => {
                return Err(Error::invalid(
                    "Durability::Replicated(0) requires no replica; use Durability::Memory",
                ));
            }
            Durability::Fsynced | Durability::Replicated(_) => {}
        }
        if broker.endpoint().is_memory() {
            return Err(unsupported(durability, "the in-process store exists only in memory"));
        }
        let broker = broker.separate("confirmer");
        match broker.within(Duration::ZERO).try_confirm(durability).await {
            Ok(()) => Ok(Some(Confirmer::spawn(broker, durability, self.submit_timeout))),
            Err(problem) => match problem.cannot_confirm() {
                Some(why) => {
                    let version = broker.server_facts().await?.version.unwrap_or_default();
                    Err(unsupported(durability, &format!("Redis {version} {why}")))
                }
                None => Err(problem.into()),
            },
        }
    }
}

fn unsupported(durability: Durability, why: &str) -> Error {
    Error::unsupported(format!(
        "no submit can be confirmed as {durability} here: {why}; Durability::Fsynced takes Redis \
         7.2 with appendonly yes, Durability::Replicated any Redis"
    ))
}

#[cfg(test)]
mod tests {
    use optimus_testkit::{EachEvent, LogEvent};

    use super::*;

    fn built(vars: &[(&str, &str)]) -> Result<ClientBuilder, Error> {
        let var = |name: &str| vars.iter().find(|(other, _)| *other == name);
        let names = vars.iter().map(|(name, _)| (*name).to_owned());
        ClientBuilder::from_env(|name| var(name).map(|(_, value)| (*value).to_owned()), names)
    }

    #[test]
    fn the_environment_sets_the_url_and_the_namespace_of_a_client_as_of_workers() {
        let both = [("REDIS_URL", "redis://b"), ("OPTIMUS_URL", " redis://a\n")];
        let client = built(&both).unwrap();
        assert_eq!((&*client.url, &*client.namespace), ("redis://a", NAMESPACE_DEFAULT));
        let client = built(&[both[0], ("OPTIMUS_NAMESPACE", " shop ")]).unwrap();
        assert_eq!((&*client.url, &*client.namespace), ("redis://b", "shop"));
        let problem = built(&[("OPTIMUS_URL", " ")]).unwrap_err();
        assert!(problem.is_invalid() && problem.to_string().contains("OPTIMUS_URL"), "{problem}");
    }

    #[tokio::test]
    async fn clients_of_the_environment_log_once_that_a_variable_has_no_effect() {
        let (events, seen) = std::sync::mpsc::channel::<LogEvent>();
        let events = std::sync::Mutex::new(events);
        let each = EachEvent::new(move |event| events.lock().unwrap().send(event).unwrap());
        let _heard = tracing::subscriber::set_default(each.at(tracing::Level::WARN));
        let vars = [("OPTIMUS_URL", "memory://misspelt"), ("OPTIMUS_NAMESPCE", "shop")];
        let client = built(&vars).unwrap().connect().await.unwrap();
        client.0.broker.log().flush(Duration::from_secs(20)).await;
        let another = built(&vars).unwrap().connect().await.unwrap();
        another.0.broker.log().flush(Duration::from_secs(20)).await;
        let texts: Vec<_> = seen.try_iter().map(|event| event.message().to_owned()).collect();
        let expected = "OPTIMUS_NAMESPCE has no effect: did you mean OPTIMUS_NAMESPACE?";
        assert_eq!(texts, [expected]);
    }

    #[test]
    fn a_client_outside_a_runtime_is_refused_with_what_to_do() {
        use futures_util::FutureExt;
        let connected = ClientBuilder::new("memory://no-runtime").connect().now_or_never();
        let problem = connected.unwrap().unwrap_err();
        assert!(problem.is_invalid() && problem.to_string().contains("#[tokio::main]"));
    }

    #[test]
    fn the_password_of_the_url_is_not_shown() {
        let shown = format!("{:?}", ClientBuilder::new("redis://ann:s3cret@127.0.0.1/"));
        assert!(shown.contains(NAMESPACE_DEFAULT), "{shown}");
        assert!(!shown.contains("s3cret") && !shown.contains("ann"), "{shown}");
    }
}
