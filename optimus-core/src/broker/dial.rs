//! Connecting to a server, and an exchange with it: [`Socket`].

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use futures_util::future::select_ok;
use redis::{
    Arg, AsyncConnectionConfig, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, Pipeline,
    RedisError, RedisResult, Value,
    aio::{ConnectionLike as _, MultiplexedConnection},
};
use socket2::{SockRef, TcpKeepalive};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream, lookup_host},
};
use tokio_util::task::AbortOnDropHandle;

use super::pulse::{Pulse, SILENCE_MAX, Watched};

/// From the name of the host to the answer of the server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);
/// Enough for every task that waits to share a write.
const PIPELINE_BUFFER: usize = 4096;
const WRITE_BOUNDARY_BYTES: usize = 128 * 1024;

/// A connection to a server. Clones share it; it ends with the last of them.
#[derive(Clone)]
pub(super) struct Socket {
    connection: MultiplexedConnection,
    /// `None` where answers may take any time.
    pulse: Option<Arc<Pulse>>,
    _driver: Arc<AbortOnDropHandle<()>>,
}

impl Socket {
    /// Connects once. A connection for blocking commands never gives up on an answer by itself.
    pub(super) async fn dial(place: &ConnectionInfo, blocking: bool) -> RedisResult<Self> {
        let dialled = tokio::time::timeout(CONNECT_TIMEOUT, async {
            match place.addr() {
                ConnectionAddr::Tcp(host, port) => {
                    Self::over(tcp(host, *port).await?, place, blocking).await
                }
                ConnectionAddr::Unix(path) => {
                    Self::over(UnixStream::connect(path).await?, place, blocking).await
                }
                // No URL that is taken leads here.
                _ => Err((ErrorKind::InvalidClientConfig, "TLS is not supported").into()),
            }
        });
        dialled.await.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
    }

    async fn over<S>(stream: S, place: &ConnectionInfo, blocking: bool) -> RedisResult<Self>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let pulse = Arc::new(Pulse::new());
        let config = AsyncConnectionConfig::new()
            .set_response_timeout(None)
            .set_pipeline_buffer_size(PIPELINE_BUFFER)
            .set_write_backpressure_boundary(WRITE_BOUNDARY_BYTES);
        let stream = Watched::new(stream, pulse.clone());
        let (connection, driver) =
            MultiplexedConnection::new_with_config(place.redis_settings(), stream, config).await?;
        let driver = Arc::new(AbortOnDropHandle::new(tokio::spawn(driver)));
        Ok(Self { connection, pulse: (!blocking).then_some(pulse), _driver: driver })
    }

    /// Sends `count` commands in one write and reads their answers, however long that takes while
    /// something moves. An error means *outcome unknown*.
    pub(super) async fn request(
        &mut self,
        pipeline: &Pipeline,
        count: usize,
    ) -> RedisResult<Vec<Value>> {
        let answers = self.connection.req_packed_commands(pipeline, 0, count);
        let Some(pulse) = &self.pulse else { return answers.await };
        let _awaited = pulse.awaits(bytes_of(pipeline));
        tokio::select! {
            biased;
            answers = answers => answers,
            () = pulse.stops() => Err(silent()),
        }
    }
}

fn silent() -> RedisError {
    let why = format!("nothing moved on the connection for {} s", SILENCE_MAX.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, why).into()
}

fn bytes_of(pipeline: &Pipeline) -> usize {
    let words = pipeline.cmd_iter().flat_map(Cmd::args_iter);
    words.map(|word| if let Arg::Simple(bytes) = word { bytes.len() } else { 0 }).sum()
}

/// The first of the host's addresses that takes a connection.
async fn tcp(host: &str, port: u16) -> RedisResult<TcpStream> {
    let addresses: Vec<SocketAddr> = lookup_host((host, port)).await?.collect();
    if addresses.is_empty() {
        return Err((ErrorKind::InvalidClientConfig, "No address found for host").into());
    }
    let all = addresses.into_iter().map(|address| Box::pin(TcpStream::connect(address)));
    let (stream, _) = select_ok(all).await?;
    settle(&stream)?;
    Ok(stream)
}

/// What must not stay at the system's defaults.
fn settle(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(15))
        .with_interval(Duration::from_secs(5));
    let socket = SockRef::from(stream);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(Duration::from_secs(20)))?;
    Ok(())
}
