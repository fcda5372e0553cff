//! A private server that speaks TLS: [`TlsServer`].

use crate::{RedisServer, RedisServerBuilder, TlsFiles, TlsFront};

/// What a server says of an option that it was built without.
const UNKNOWN_OPTION: &str = "Bad directive";

/// A Redis server of one's own that speaks TLS: by itself if it was built so, else through a
/// [`TlsFront`].
#[derive(Debug)]
pub struct TlsServer {
    redis: RedisServer,
    front: Option<TlsFront>,
}

impl TlsServer {
    /// Starts it with these options. It speaks plainly, too, at another port.
    ///
    /// # Panics
    ///
    /// With the server's log, if it does not come up.
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

    /// Where it speaks TLS.
    pub fn port(&self) -> u16 {
        let port = self.front.as_ref().map(TlsFront::port).or_else(|| self.redis.tls_port());
        port.expect("one of both has a port")
    }

    /// `rediss://localhost:…/` with these parameters.
    pub fn url(&self, parameters: &str) -> String {
        format!("rediss://localhost:{}/?{parameters}", self.port())
    }

    /// The server itself, whose URL is that of the plain port.
    pub fn redis(&mut self) -> &mut RedisServer {
        &mut self.redis
    }
}
