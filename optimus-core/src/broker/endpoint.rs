//! Where Redis is: URLs, and the stores that they name.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

#[cfg(feature = "embedded")]
use redis::aio::ConnectionLike;

use super::{
    BrokerError,
    connection::Commands,
    dial::Socket,
    dial_error::DialError,
    login::Login,
    server_url::{Place, redact},
};
use crate::{Error, credentials::AskCredentials, log::Log};

/// The URLs other than `redis://` that are supported.
const OTHER_URLS: &str = if cfg!(feature = "embedded") {
    ", rediss://… for TLS, unix:///path/to/redis.sock or memory://name"
} else {
    ", rediss://… for TLS or unix:///path/to/redis.sock"
};

/// A place to connect to.
#[derive(Clone)]
pub enum Endpoint {
    /// A Redis or Valkey server.
    Server(Arc<Server>),
    /// The in-process store behind `memory://`.
    #[cfg(feature = "embedded")]
    Memory(optimus_embedded::Store, String),
}

/// A server, and the state that all connections to it share.
pub struct Server {
    place: Place,
    login: Arc<Login>,
    /// Whether connections log in as a user, which may lack permissions.
    has_user: bool,
    /// Whether the server has answered once, so the URL, the credentials and the certificates were
    /// valid.
    right: AtomicBool,
}

/// A connection of either kind, so that its users have one code path. Clones share it.
#[derive(Clone)]
pub(super) enum Transport {
    Server(Socket),
    #[cfg(feature = "embedded")]
    Memory(optimus_embedded::Connection),
}

impl Transport {
    /// Returns whether no new commands may be sent over this connection.
    pub(super) fn is_retired(&self) -> bool {
        match self {
            Self::Server(socket) => socket.is_retired(),
            #[cfg(feature = "embedded")]
            Self::Memory(_) => false,
        }
    }

    /// Sends `count` commands in one write and reads their answers.
    pub(super) async fn request(
        &mut self,
        pipeline: &redis::Pipeline,
        count: usize,
    ) -> redis::RedisResult<Vec<redis::Value>> {
        match self {
            Self::Server(socket) => socket.request(pipeline, count).await,
            #[cfg(feature = "embedded")]
            Self::Memory(connection) => connection.req_packed_commands(pipeline, 0, count).await,
        }
    }
}

impl Endpoint {
    /// Reads a URL: `redis://[user:password@]host[:port][/db]`, `rediss://…` for TLS,
    /// `unix:///path`, `memory://name`.
    ///
    /// # Errors
    /// [`Error::is_invalid`] names the supported schemes and parameters.
    pub fn parse(url: &str) -> Result<Self, Error> {
        Self::with_credentials(url, None)
    }

    /// Reads a URL as [`parse`](Self::parse) does, with credentials that the program provides. A
    /// store in the process needs none.
    ///
    /// # Errors
    /// The errors of [`parse`](Self::parse); also [`Error::is_invalid`] if the URL has credentials,
    /// too.
    pub fn with_credentials(url: &str, ask: Option<AskCredentials>) -> Result<Self, Error> {
        let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
        match scheme {
            #[cfg(feature = "embedded")]
            "memory" => {
                let name = &url["memory://".len()..];
                if name.is_empty() {
                    return Err(Error::invalid(
                        "memory:// has no name; write memory://name, and the same name for all \
                         clients and workers of this process that share tasks",
                    ));
                }
                if name.contains('?') {
                    return Err(Error::invalid(format!(
                        "the URL {:?} can't be read: memory:// has no parameters",
                        redact(url)
                    )));
                }
                Ok(Self::Memory(optimus_embedded::Store::named(name), name.to_owned()))
            }
            "redis" | "rediss" | "valkey" | "valkeys" | "unix" | "redis+unix" => {
                Self::server(url, ask)
            }
            #[cfg(not(feature = "embedded"))]
            "memory" => Err(Error::invalid(
                "memory:// is the store of the feature `embedded`, which is not enabled; enable \
                 it, or use redis://…",
            )),
            _ => Err(Error::invalid(format!(
                "{:?} is not the URL of a store; use redis://[user:password@]host[:port][/db]{}",
                redact(url),
                OTHER_URLS
            ))),
        }
    }

    fn server(url: &str, ask: Option<AskCredentials>) -> Result<Self, Error> {
        let invalid = |problem: String| {
            Error::invalid(format!("the URL {:?} can't be read: {problem}", redact(url)))
        };
        let place = Place::parse(url).map_err(invalid)?;
        if ask.is_some() && place.names_credentials() {
            return Err(Error::invalid(format!(
                "the URL {:?} has credentials, and the program sets others by `credentials`; \
                 leave one out",
                place.shown
            )));
        }
        let has_user = ask.is_some() || place.names_credentials();
        let login = Arc::new(Login::new(&place, ask));
        let right = AtomicBool::new(false);
        Ok(Self::Server(Arc::new(Server { place, login, has_user, right })))
    }

    /// Notes that the server answered, so its URL and credentials are valid.
    pub(super) fn was_right(&self) {
        if let Self::Server(server) = self
            && !server.right.load(Ordering::Relaxed)
        {
            server.right.store(true, Ordering::Relaxed);
        }
    }

    /// Sorts an error about the URL, the credentials or the certificates. If they were valid
    /// before, the error may pass: passwords are rotated, users are loaded late, certificates are
    /// renewed.
    pub(super) fn objection(&self, problem: BrokerError) -> BrokerError {
        match (self, problem) {
            (
                Self::Server(server),
                BrokerError::Unauthorized(why)
                | BrokerError::Misconfigured(why)
                | BrokerError::Tls(why),
            ) if server.right.load(Ordering::Relaxed) => BrokerError::NotDone(why),
            (_, problem) => problem,
        }
    }

    /// Returns whether connections log in as a user, which may lack permissions. Without a login
    /// they are of the user `default`, which has all of them, unless somebody has changed it.
    pub(super) fn has_user(&self) -> bool {
        matches!(self, Self::Server(server) if server.has_user)
    }

    /// Returns whether the store lives in this process.
    pub fn is_memory(&self) -> bool {
        !matches!(self, Self::Server(..))
    }

    /// Returns whether the store keeps what it has acknowledged for as long as anybody uses it. In
    /// a simulation, a store of this process plays a server.
    pub fn keeps_everything(&self) -> bool {
        #[cfg(feature = "simulation")]
        if crate::platform::is_simulated() {
            return false;
        }
        self.is_memory()
    }

    /// Connects once. A connection for blocking commands has no response timeout. The caller sorts
    /// the error with [`Endpoint::objection`].
    pub(super) async fn connect(
        &self,
        commands: Commands,
        log: &Log,
    ) -> Result<Transport, BrokerError> {
        let refused = |problem: DialError| problem.into_broker_error(&self.describe());
        match self {
            Self::Server(server) => Socket::dial(&server.place, &server.login, commands, log)
                .await
                .map(Transport::Server)
                .map_err(refused),
            #[cfg(feature = "embedded")]
            Self::Memory(store, _) => Ok(Transport::Memory(store.connection())),
        }
    }

    /// Returns whether both are the same server and database, or the same name in this process.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Server(one), Self::Server(other)) => one.place.is_same(&other.place),
            #[cfg(feature = "embedded")]
            (Self::Memory(_, name), Self::Memory(_, other)) => name == other,
            #[cfg(feature = "embedded")]
            _ => false,
        }
    }

    /// Returns the address for messages, without credentials.
    pub fn describe(&self) -> String {
        match self {
            Self::Server(server) => server.place.shown.clone(),
            #[cfg(feature = "embedded")]
            Self::Memory(_, name) => format!("memory://{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Credentials;

    #[test]
    fn a_url_of_another_scheme_is_refused_with_the_schemes_there_are() {
        for url in ["", "localhost:6379", "http://x", "amqp://user:secret@host"] {
            let problem = Endpoint::parse(url).err().expect(url);
            assert!(problem.is_invalid());
            assert!(problem.to_string().contains("redis://"), "{problem}");
            assert!(!problem.to_string().contains("secret"), "{problem}");
        }
    }

    #[test]
    fn only_a_store_that_is_compiled_in_is_suggested() {
        let problem = Endpoint::parse("http://x").err().expect("no store").to_string();
        assert_eq!(problem.contains("memory://"), cfg!(feature = "embedded"), "{problem}");
        match Endpoint::parse("memory://x") {
            Ok(endpoint) => assert!(endpoint.is_memory() && cfg!(feature = "embedded")),
            Err(problem) => assert!(problem.to_string().contains("`embedded`"), "{problem}"),
        }
    }

    #[test]
    #[cfg(feature = "embedded")]
    fn a_store_in_the_process_needs_a_name() {
        let problem = Endpoint::parse("memory://").err().expect("no name");
        assert!(problem.is_invalid() && problem.to_string().contains("memory://name"), "{problem}");
    }

    #[test]
    #[cfg(feature = "embedded")]
    fn a_store_in_the_process_has_no_parameters() {
        let problem = Endpoint::parse("memory://shop?db=1").err().expect("a parameter");
        assert!(problem.is_invalid() && problem.to_string().contains("no parameters"), "{problem}");
    }

    #[test]
    fn credentials_of_the_url_and_of_the_program_contradict_each_other() {
        let with = |url| {
            let ask = AskCredentials::new(async || Ok(Credentials::new("a", "b")));
            Endpoint::with_credentials(url, Some(ask))
        };
        for url in ["redis://ann@host", "redis://:secret@host", "redis://host?password_file=/p"] {
            let problem = with(url).err().expect(url);
            assert!(problem.is_invalid() && problem.to_string().contains("leave one out"));
            assert!(!problem.to_string().contains("secret"), "{problem}");
        }
        assert!(with("redis://host").is_ok());
        assert!(with("memory://with-credentials").is_ok() == cfg!(feature = "embedded"));
    }
}
