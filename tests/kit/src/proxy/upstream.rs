//! The server behind a proxy: [`Upstream`].

use std::io;
use std::path::PathBuf;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// A connection to the server, of either kind.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Where the server listens.
#[derive(Clone, Debug)]
pub(crate) enum Upstream {
    Tcp(String),
    Unix(PathBuf),
}

impl Upstream {
    pub(crate) fn parse(url: &str) -> Self {
        if let Some(path) = url.strip_prefix("unix://") {
            return Self::Unix(path.into());
        }
        let address = url.strip_prefix("redis://").map(|rest| rest.trim_end_matches('/'));
        let address = address.filter(|address| !address.contains(['@', '/']));
        Self::Tcp(address.expect("a URL of a server of the test kit").to_owned())
    }

    pub(crate) async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            Self::Unix(path) => Box::new(UnixStream::connect(path).await?),
            Self::Tcp(address) => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
        })
    }
}
