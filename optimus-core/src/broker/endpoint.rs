//! Where Redis is: URLs, and what is behind them.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

#[cfg(feature = "embedded")]
use redis::aio::ConnectionLike;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion};

use super::{BrokerError, dial::Socket};
use crate::Error;

/// What else than `redis://` there is.
const OTHER_URLS: &str = if cfg!(feature = "embedded") {
    ", unix:///path/to/redis.sock or memory://name"
} else {
    " or unix:///path/to/redis.sock"
};

/// A place to connect to.
#[derive(Clone)]
pub enum Endpoint {
    /// A Redis or Valkey server.
    Server(Box<ConnectionInfo>, String, Arc<AtomicBool>),
    /// The in-process store behind `memory://`.
    #[cfg(feature = "embedded")]
    Memory(optimus_embedded::Store, String),
}

/// Either kind of connection, so that all code above has one path. Clones share it.
#[derive(Clone)]
pub(super) enum Transport {
    Server(Socket),
    #[cfg(feature = "embedded")]
    Memory(optimus_embedded::Connection),
}

impl Transport {
    /// Sends `count` commands in one write and reads their answers.
    pub(super) async fn request(
        &mut self,
        pipeline: &redis::Pipeline,
        count: usize,
    ) -> redis::RedisResult<Vec<redis::Value>> {
        match self {
            Self::Server(line) => line.request(pipeline, count).await,
            #[cfg(feature = "embedded")]
            Self::Memory(connection) => connection.req_packed_commands(pipeline, 0, count).await,
        }
    }
}

impl Endpoint {
    /// Reads a URL: `redis://[user:password@]host[:port][/db]`, `unix:///path`, `memory://name`.
    ///
    /// # Errors
    /// [`Error::is_invalid`] names the schemes there are.
    pub fn parse(url: &str) -> Result<Self, Error> {
        let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
        match scheme {
            #[cfg(feature = "embedded")]
            "memory" => {
                let name = &url["memory://".len()..];
                Ok(Self::Memory(optimus_embedded::Store::named(name), name.to_owned()))
            }
            "redis" | "unix" | "redis+unix" | "valkey" => Self::server(url),
            "rediss" | "valkeys" => Err(Error::invalid(
                "TLS is not supported yet; connect to redis://… through a TLS tunnel",
            )),
            #[cfg(not(feature = "embedded"))]
            "memory" => Err(Error::invalid(
                "memory:// is the store of the feature `embedded`, which is not enabled; enable \
                 it, or use redis://…",
            )),
            _ => Err(Error::invalid(format!(
                "{:?} is no URL of a store; use redis://[user:password@]host[:port][/db]{}",
                redact(url),
                OTHER_URLS
            ))),
        }
    }

    fn server(url: &str) -> Result<Self, Error> {
        let invalid = |problem: redis::RedisError| {
            Error::invalid(format!("the URL {:?} can't be read: {problem}", redact(url)))
        };
        let info: ConnectionInfo = url.into_connection_info().map_err(invalid)?;
        // All answers are read in the form of the older protocol.
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP2);
        let info = info.set_redis_settings(settings);
        Ok(Self::Server(Box::new(info), redact(url), Arc::default()))
    }

    /// Notes that the server answered, so its URL and credentials were right.
    pub(super) fn was_right(&self) {
        if let Self::Server(_, _, right) = self
            && !right.load(Ordering::Relaxed)
        {
            right.store(true, Ordering::Relaxed);
        }
    }

    /// What the server says against the URL or its credentials, as an error. Where they were right
    /// before, they may be again: passwords are rotated, users are loaded late.
    pub(super) fn objection(&self, problem: BrokerError) -> BrokerError {
        match (self, problem) {
            (
                Self::Server(_, _, right),
                BrokerError::Unauthorized(why) | BrokerError::Misconfigured(why),
            ) if right.load(Ordering::Relaxed) => BrokerError::NotDone(why),
            (_, problem) => problem,
        }
    }

    /// Whether the store lives in this process.
    pub fn is_memory(&self) -> bool {
        !matches!(self, Self::Server(..))
    }

    /// Connects once. A connection for blocking commands never gives up on an answer by itself.
    pub(super) async fn connect(&self, blocking: bool) -> redis::RedisResult<Transport> {
        match self {
            Self::Server(place, ..) => Ok(Transport::Server(Socket::dial(place, blocking).await?)),
            #[cfg(feature = "embedded")]
            Self::Memory(store, _) => Ok(Transport::Memory(store.connection())),
        }
    }

    /// Whether both URLs are of the same server and database, or of the same name in this process.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Server(place, ..), Self::Server(other, ..)) => {
                let db = |place: &ConnectionInfo| place.redis_settings().db();
                place.addr() == other.addr() && db(place) == db(other)
            }
            #[cfg(feature = "embedded")]
            (Self::Memory(_, name), Self::Memory(_, other)) => name == other,
            #[cfg(feature = "embedded")]
            _ => false,
        }
    }

    /// The address for messages, without credentials.
    pub fn describe(&self) -> String {
        match self {
            Self::Server(place, url, _) => match place.addr() {
                ConnectionAddr::Tcp(host, port) => format!("redis://{host}:{port}"),
                _ => url.clone(),
            },
            #[cfg(feature = "embedded")]
            Self::Memory(_, name) => format!("memory://{name}"),
        }
    }
}

/// Leaves out whatever may be a password, wherever somebody may have put it: all before the last
/// `@` but the scheme, and the query.
fn redact(url: &str) -> String {
    let is_scheme = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '+');
    let scheme = url.split_once("://").map(|(scheme, _)| scheme).filter(|text| is_scheme(text));
    let (scheme, rest) = url.split_at(scheme.map_or(0, |scheme| scheme.len() + "://".len()));
    let (secret, place) = rest.rsplit_once('@').unwrap_or(("", rest));
    if secret.contains('?') {
        return format!("{scheme}***");
    }
    let (place, query) = place.split_once('?').map_or((place, ""), |(place, _)| (place, "?***"));
    let secret = if secret.is_empty() { "" } else { "***@" };
    format!("{scheme}{secret}{place}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn only_a_store_that_is_built_in_is_proposed() {
        let problem = Endpoint::parse("http://x").err().expect("no store").to_string();
        assert_eq!(problem.contains("memory://"), cfg!(feature = "embedded"), "{problem}");
        match Endpoint::parse("memory://x") {
            Ok(endpoint) => assert!(endpoint.is_memory() && cfg!(feature = "embedded")),
            Err(problem) => assert!(problem.to_string().contains("`embedded`"), "{problem}"),
        }
    }

    #[test]
    fn a_url_is_printed_without_its_password_wherever_that_stands() {
        for (url, printed) in [
            ("redis://user:secret@host:6379/1", "redis://***@host:6379/1"),
            ("user:secret@host", "***@host"),
            ("redis:/user:secret@host", "***@host"),
            ("redis://user:se@cret@host", "redis://***@host"),
            ("redis://user:se?cret@host", "redis://***"),
            ("user:secret@redis://a@b", "***@b"),
            ("unix:///tmp/redis.sock?pass=secret", "unix:///tmp/redis.sock?***"),
            ("unix:///tmp/redis.sock?pass=a@secret", "unix://***"),
            ("redis://localhost:6379/", "redis://localhost:6379/"),
        ] {
            assert_eq!(redact(url), printed, "{url}");
        }
        let socket = Endpoint::parse("unix:///tmp/redis.sock?pass=secret").unwrap();
        assert_eq!(socket.describe(), "unix:///tmp/redis.sock?***");
    }
}
