//! A private server with TLS: [`TlsServer`].

use crate::{RedisServer, RedisServerBuilder, TlsFiles, TlsFront};

/// The error of a server for an option that it was built without.
const UNKNOWN_OPTION: &str = "Bad directive";

/// A private Redis server with TLS: its own if it was built with it, otherwise through a
/// [`TlsFront`].
#[derive(Debug)]
pub struct TlsServer {
    redis: RedisServer,
    front: Option<TlsFront>,
}

impl TlsServer {
    /// Starts it with these options. It also has another port without TLS.
    ///
    /// # Panics
    ///
    /// If the server does not start; the message contains its log.
    pub async fn start(options: RedisServerBuilder, files: TlsFiles) -> Self {
        match options.clone().tls(files.clone()).try_start() {
            Ok(redis) => Self { redis, front: None },
            Err(failure) if failure.contains(UNKNOWN_OPTION) => {
                let redis = options.tcp().start();
                let front = TlsFront::start(&redis.url(), &files).await;
                Self { redis, front: Some(front) }
            }
            Err(failure) => panic!("{failure}"),
        }
    }

    /// The port with TLS.
    pub fn port(&self) -> u16 {
        let port = self.front.as_ref().map(TlsFront::port).or_else(|| self.redis.tls_port());
        port.expect("one of the two has a port")
    }

    /// `rediss://localhost:…/` with these parameters.
    pub fn url(&self, parameters: &str) -> String {
        format!("rediss://localhost:{}/?{parameters}", self.port())
    }

    /// The server itself; its URL has the port without TLS.
    pub fn redis(&mut self) -> &mut RedisServer {
        &mut self.redis
    }
}
