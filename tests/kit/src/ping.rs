//! Checks whether a server is ready. It uses the inline form of the protocol, so it needs no client
//! crate.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// The time limit of one try. A server that loads its data or is paused does not answer, and the
/// caller tries again.
const PATIENCE: Duration = Duration::from_secs(1);

/// The address of a server.
#[derive(Clone, Debug)]
pub(crate) enum Address {
    /// A Unix socket.
    Socket(PathBuf),
    /// A port of the loopback interface.
    Port(u16),
}

/// Succeeds when the server at `address` accepts commands. Fails while the server starts or loads.
pub(crate) fn ping(address: &Address, password: Option<&str>) -> io::Result<()> {
    match address {
        Address::Socket(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            exchange(stream, password)
        }
        Address::Port(port) => {
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, *port))?;
            stream.set_read_timeout(Some(PATIENCE))?;
            exchange(stream, password)
        }
    }
}

fn exchange(mut stream: impl Read + Write, password: Option<&str>) -> io::Result<()> {
    // QUIT makes the server close the connection, which ends the read below.
    let login = password.map(|word| format!("AUTH {word}\r\n")).unwrap_or_default();
    stream.write_all(format!("{login}PING\r\nQUIT\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if answer.lines().any(|line| line == "+PONG") {
        Ok(())
    } else {
        Err(io::Error::other(format!("the server answers {answer:?}")))
    }
}
