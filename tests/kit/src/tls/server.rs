//! A private server with TLS: [`TlsServer`].

use crate::{RedisServer, RedisServerBuilder, TlsFiles, TlsFront};

/// The error of a server for an option without which it was built.
const UNKNOWN_OPTION: &str = "Bad directive";

/// A private Redis server with TLS. If the server was built without TLS, a [`TlsFront`] provides
/// it.
#[derive(Debug)]
pub struct TlsServer {
    redis: RedisServer,
    front: Option<TlsFront>,
}

impl TlsServer {
    /// Starts the server with these options. It also has a port without TLS.
    ///
    /// # Panics
    ///
    /// If the server does not start. The message contains its log.
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

    /// Returns the port with TLS.
    pub fn port(&self) -> u16 {
        let port = self.front.as_ref().map(TlsFront::port).or_else(|| self.redis.tls_port());
        port.expect("one of the two has a port")
    }

    /// Returns `rediss://localhost:…/` with these parameters.
    pub fn url(&self, parameters: &str) -> String {
        format!("rediss://localhost:{}/?{parameters}", self.port())
    }

    /// Returns the server itself, whose URL has the port without TLS.
    pub fn redis(&mut self) -> &mut RedisServer {
        &mut self.redis
    }
}
