//! A port that is open, before anything is served: [`Listener`].

use std::{
    io,
    net::{SocketAddr, TcpListener},
};

/// An open port. Clients can connect, and wait until a [`Server`](crate::Server) serves it.
#[derive(Debug)]
pub struct Listener {
    pub(crate) listener: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Opens a port. Port 0 is any free one.
    ///
    /// # Errors
    /// The system refuses it, for example because another program uses the port.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Returns the address with the port that is open.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Reads an address such as `127.0.0.1:9000`.
///
/// # Errors
/// A sentence that says what to write.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.trim().parse().map_err(|_| {
        format!(
            "{text:?} is not an address with a port; write 127.0.0.1:9000 for this machine alone, \
             or 0.0.0.0:9000 for all that can reach it"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_port_is_refused_with_an_example() {
        for text in ["", "9000", "localhost", "localhost:9000", "127.0.0.1", "http://1.2.3.4:5"] {
            assert!(parse_address(text).unwrap_err().contains("127.0.0.1:9000"), "{text}");
        }
        for text in ["127.0.0.1:9000", " 0.0.0.0:1 ", "[::1]:9000"] {
            assert!(parse_address(text).is_ok(), "{text}");
        }
    }
}
