//! Connects to a server and exchanges commands with it: [`Socket`].

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::select_ok;
use redis::{
    Arg, AsyncConnectionConfig, Cmd, ErrorKind, Pipeline, RedisConnectionInfo, RedisError,
    RedisResult, Value,
    aio::{ConnectionLike as _, MultiplexedConnection},
};
use socket2::{SockRef, TcpKeepalive};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream, lookup_host},
    time::{Instant, timeout_at},
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    connection::Commands,
    dial_error::DialError,
    login::{Known, Login},
    pulse::{PATIENCE_MAX, Pulse, SILENCE_MAX, Watched},
    server_url::{Address, Place},
    tls_probe,
};
use crate::log::Log;

/// The time from the lookup of the host to the first answer of the server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);
/// The size of the pipeline, enough for all waiting tasks to share a write.
const PIPELINE_BUFFER: usize = 4096;
const WRITE_BOUNDARY_BYTES: usize = 128 * 1024;

/// A connection to a server. Clones share the connection, which closes when the last clone is
/// dropped.
#[derive(Clone)]
pub(super) struct Socket {
    connection: MultiplexedConnection,
    /// `None` if an answer may take any time.
    pulse: Option<Arc<Pulse>>,
    /// Whether the credentials have become those of another user.
    retired: Arc<AtomicBool>,
    /// The task that drives the connection, and the one that renews its login.
    _tasks: Arc<(Task, Option<Task>)>,
}

type Task = AbortOnDropHandle<()>;

impl Socket {
    /// Connects once. A connection for blocking commands has no response timeout.
    pub(super) async fn dial(
        place: &Place,
        login: &Arc<Login>,
        commands: Commands,
        log: &Log,
    ) -> Result<Self, DialError> {
        let Known { credentials, old } = login.ask().await?;
        let mut settings = place.settings.clone();
        if let Some(credentials) = &credentials {
            settings = settings.set_username(&credentials.user).set_password(&credentials.password);
        }
        let pulse = Arc::new(Pulse::new());
        let unread_max = unread_max(commands);
        let (connection, driver) = match (connect(place, &settings, &pulse, unread_max).await, old)
        {
            (Err(problem), Some(why)) if problem.is_unauthorized() => {
                return Err(DialError::OldCredentials(why));
            }
            (made, _) => made?,
        };
        let retired = Arc::new(AtomicBool::new(false));
        let renewing =
            credentials.and_then(|known| login.renewing(connection.clone(), known, &retired, log));
        let pulse = (commands == Commands::Immediate).then_some(pulse);
        Ok(Self { connection, pulse, retired, _tasks: Arc::new((driver, renewing)) })
    }

    /// Returns whether no new commands may be sent over this connection.
    pub(super) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// Sends `count` commands in one write and reads their answers. The exchange may take any time
    /// while bytes move on the connection. An error means that the outcome is unknown.
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

type Made = (MultiplexedConnection, Task);

async fn connect(
    place: &Place,
    settings: &RedisConnectionInfo,
    pulse: &Arc<Pulse>,
    unread_max: Duration,
) -> Result<Made, DialError> {
    let by = Instant::now() + CONNECT_TIMEOUT;
    match &place.address {
        Address::Tcp(host, port) => {
            let stream = in_time(by, "no connection", tcp(host, *port, unread_max)).await?;
            match greet(Watched::new(stream, pulse.clone()), settings, by).await {
                Err(problem) if problem.is_no_answer() && place.is_first_probe() => {
                    Err(if tls_probe::speaks_tls(host, *port).await {
                        DialError::Tls(tls_probe::SPEAKS_TLS.to_owned())
                    } else {
                        problem
                    })
                }
                made => made,
            }
        }
        #[cfg(feature = "tls")]
        Address::Tls(host, port, tls) => {
            let unread = "the files for TLS that the URL names could not be read";
            let config = in_time(by, unread, tls.read()).await?;
            let stream = in_time(by, "no connection", tcp(host, *port, unread_max)).await?;
            // The bytes are counted below TLS, where every byte on the wire is visible.
            let handshake = tls.connect(config, Watched::new(stream, pulse.clone()));
            let secured = tokio::select! {
                biased;
                stream = in_time(by, "no TLS handshake", handshake) => stream?,
                () = tls_probe::speaks_plainly(host, *port) => {
                    return Err(DialError::Tls(tls_probe::SPEAKS_PLAINLY.to_owned()));
                }
            };
            greet(secured, settings, by).await.map_err(|problem| tls.explain(problem))
        }
        Address::Unix(path) => {
            let connected = async { Ok(UnixStream::connect(path).await?) };
            let stream = in_time(by, "no connection", connected).await?;
            greet(Watched::new(stream, pulse.clone()), settings, by).await
        }
    }
}

/// Logs in, and chooses the database.
async fn greet<S>(stream: S, settings: &RedisConnectionInfo, by: Instant) -> Result<Made, DialError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let config = AsyncConnectionConfig::new()
        .set_response_timeout(None)
        .set_pipeline_buffer_size(PIPELINE_BUFFER)
        .set_write_backpressure_boundary(WRITE_BOUNDARY_BYTES);
    let greeted =
        async { Ok(MultiplexedConnection::new_with_config(settings, stream, config).await?) };
    let (connection, driver) = in_time(by, "no answer", greeted).await?;
    Ok((connection, AbortOnDropHandle::new(tokio::spawn(driver))))
}

async fn in_time<T>(
    by: Instant,
    late: &str,
    step: impl Future<Output = Result<T, DialError>>,
) -> Result<T, DialError> {
    timeout_at(by, step).await.unwrap_or_else(|_| Err(DialError::late(late, CONNECT_TIMEOUT)))
}

fn silent() -> RedisError {
    let why = format!("nothing moved on the connection for {} s", SILENCE_MAX.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, why).into()
}

fn bytes_of(pipeline: &Pipeline) -> usize {
    let words = pipeline.cmd_iter().flat_map(Cmd::args_iter);
    words.map(|word| if let Arg::Simple(bytes) = word { bytes.len() } else { 0 }).sum()
}

/// Connects to the first of the host's addresses that accepts.
pub(super) async fn tcp(
    host: &str,
    port: u16,
    unread_max: Duration,
) -> Result<TcpStream, DialError> {
    let addresses: Vec<SocketAddr> = lookup_host((host, port)).await?.collect();
    if addresses.is_empty() {
        let none = (ErrorKind::InvalidClientConfig, "No address found for host");
        return Err(RedisError::from(none).into());
    }
    let all = addresses.into_iter().map(|address| Box::pin(TcpStream::connect(address)));
    let (stream, _) = select_ok(all).await?;
    settle(&stream, unread_max)?;
    Ok(stream)
}

/// Returns how long the system lets sent bytes wait for the other side, which may read none of
/// them.
const fn unread_max(commands: Commands) -> Duration {
    match commands {
        // The pulse decides, and it may allow a long silence.
        Commands::Immediate => PATIENCE_MAX.saturating_add(SILENCE_MAX),
        // Without a pulse only the system notices that the other side is gone. No request is large.
        Commands::Blocking => Duration::from_secs(20),
    }
}

/// Sets the options that must not stay at the system's defaults.
fn settle(stream: &TcpStream, unread_max: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(15))
        .with_interval(Duration::from_secs(5));
    let socket = SockRef::from(stream);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(unread_max))?;
    Ok(())
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn the_system_gives_up_a_watched_connection_later_than_the_pulse() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        for (commands, is_watched) in [(Commands::Immediate, true), (Commands::Blocking, false)] {
            let stream = tcp("127.0.0.1", port, unread_max(commands)).await.unwrap();
            let given_up_after = SockRef::from(&stream).tcp_user_timeout().unwrap().unwrap();
            assert_eq!(given_up_after > PATIENCE_MAX, is_watched, "{given_up_after:?}");
        }
    }
}
