//! Why a console can't start: [`ConsoleError`].

use std::{io, net::SocketAddr};

/// Why a console can't start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConsoleError {
    /// A token or a password can't be used.
    #[error("{0}")]
    Secret(String),
    /// No header has the name.
    #[error("{0}")]
    Header(String),
    /// Others could connect, and nothing says who they are.
    #[error(
        "the console would listen on {0}, where other machines can connect, and it has no \
         authentication: configure one, or listen on 127.0.0.1 or a unix socket"
    )]
    Open(SocketAddr),
    /// The authentication has no secrets, so nobody could sign in.
    #[error("the authentication of the console has no secret, so nobody could sign in: add one")]
    NoSecret,
    /// The system refuses to listen.
    #[error("can't listen on {place}: {problem}; is another program there?")]
    Listen {
        /// The address or the path.
        place: String,
        /// What the system says.
        problem: io::Error,
    },
}
