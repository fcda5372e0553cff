//! Serves the console alone: [`ConsoleListener`].

mod connection;
mod patient;

use std::{
    future::Future,
    io,
    net::{SocketAddr, TcpListener as StdListener},
    sync::Arc,
    time::Duration,
};

use axum::Router;
use tokio::{
    net::TcpListener,
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::sleep,
};

use crate::{Console, ConsoleError, access::Peer};

/// The most connections at once. More wait until one ends.
const CONNECTIONS_MAX: usize = 1_024;
/// How long the server waits after the system could not accept a connection.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Where a console listens.
#[derive(Debug)]
pub enum ConsoleListener {
    /// At an address.
    Tcp(StdListener),
    /// At a unix socket.
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixListener),
}

impl ConsoleListener {
    /// Listens at an address; port 0 is a free one.
    ///
    /// # Errors
    /// [`ConsoleError::Listen`].
    pub fn bind(address: SocketAddr) -> Result<Self, ConsoleError> {
        let listener = StdListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        listener.map(Self::Tcp).map_err(|problem| failed(address.to_string(), problem))
    }

    /// Listens at a unix socket, which only the user of this process can open. A socket that a
    /// program has left there is replaced.
    ///
    /// # Errors
    /// [`ConsoleError::Listen`].
    #[cfg(unix)]
    pub fn bind_unix(path: &std::path::Path) -> Result<Self, ConsoleError> {
        use std::os::unix::{fs::FileTypeExt, net::UnixStream};
        let is_socket = std::fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_socket());
        if is_socket && UnixStream::connect(path).is_err() {
            // If this fails, the next step says why.
            let _ = std::fs::remove_file(path);
        }
        let bound = std::os::unix::net::UnixListener::bind(path).and_then(|listener| {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        bound.map(Self::Unix).map_err(|problem| failed(path.display().to_string(), problem))
    }

    /// Returns the address, if it is one.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok(),
            #[cfg(unix)]
            Self::Unix(_) => None,
        }
    }
}

fn failed(place: String, problem: io::Error) -> ConsoleError {
    ConsoleError::Listen { place, problem }
}

impl Console {
    /// Serves the console alone, until the returned future is dropped. Connections, requests and
    /// the time of each are bounded, and a client that does not read is dropped.
    ///
    /// # Errors
    /// [`ConsoleError::Open`] if other machines could connect and the console has no
    /// authentication; [`ConsoleError::NoSecret`]; [`ConsoleError::Listen`].
    pub fn serve(
        self,
        listener: ConsoleListener,
    ) -> Result<impl Future<Output = ()> + Send, ConsoleError> {
        if let Some(address) = listener.address()
            && !self.has_auth()
            && !address.ip().to_canonical().is_loopback()
        {
            return Err(ConsoleError::Open(address));
        }
        let router = self.router()?;
        Ok(serve(listener, router))
    }
}

async fn serve(listener: ConsoleListener, router: Router) {
    let seats = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    // The connections end with this future.
    let mut open = JoinSet::new();
    match listener {
        ConsoleListener::Tcp(listener) => {
            let Ok(listener) = TcpListener::from_std(listener) else { return };
            loop {
                let Some(seat) = seat(&seats, &mut open).await else { return };
                match listener.accept().await {
                    Ok((stream, from)) => {
                        let peer = Peer::Address(from.ip().to_canonical());
                        open.spawn(connection::serve(stream, peer, router.clone(), seat));
                    }
                    Err(_) => sleep(ACCEPT_AGAIN).await,
                }
            }
        }
        #[cfg(unix)]
        ConsoleListener::Unix(listener) => {
            let Ok(listener) = tokio::net::UnixListener::from_std(listener) else { return };
            loop {
                let Some(seat) = seat(&seats, &mut open).await else { return };
                match listener.accept().await {
                    Ok((stream, _)) => {
                        open.spawn(connection::serve(stream, Peer::Unix, router.clone(), seat));
                    }
                    Err(_) => sleep(ACCEPT_AGAIN).await,
                }
            }
        }
    }
}

/// Waits until another connection may come.
async fn seat(seats: &Arc<Semaphore>, open: &mut JoinSet<()>) -> Option<OwnedSemaphorePermit> {
    while open.try_join_next().is_some() {}
    seats.clone().acquire_owned().await.ok()
}
