//! A plain HTTP client for tests: [`http_get`].

use std::{
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// How long a test waits for an answer.
const WITHIN: Duration = Duration::from_secs(20);

/// The answer of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// The headers, with their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The text.
    pub body: String,
}

impl HttpAnswer {
    /// Returns the value of a header; empty if it is missing.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value.as_str())
    }
}

/// Sends one request, such as `GET /metrics`, over its own connection, and blocks until the answer.
///
/// # Errors
/// The server can't be reached, closes the connection, or does not answer in 20 s.
pub fn http_get(address: SocketAddr, request: &str) -> io::Result<HttpAnswer> {
    let mut stream = TcpStream::connect_timeout(&address, WITHIN)?;
    stream.set_read_timeout(Some(WITHIN))?;
    write!(stream, "{request} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let strange = || io::Error::new(io::ErrorKind::InvalidData, format!("no answer: {text:?}"));
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(strange)?;
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let pair = |line: &str| {
        let (name, value) = line.split_once(": ")?;
        Some((name.to_lowercase(), value.to_owned()))
    };
    let (status, headers) = (status.ok_or_else(strange)?, lines.filter_map(pair).collect());
    let mut answer = HttpAnswer { status, headers, body: body.to_owned() };
    if answer.header("transfer-encoding") == "chunked" {
        answer.body = joined(body).ok_or_else(strange)?;
    }
    Ok(answer)
}

/// Joins the chunks of a body.
fn joined(mut body: &str) -> Option<String> {
    let mut all = String::new();
    loop {
        let (length, rest) = body.split_once("\r\n")?;
        let length = usize::from_str_radix(length, 16).ok()?;
        if length == 0 {
            return Some(all);
        }
        all.push_str(rest.get(..length)?);
        body = rest.get(length..)?.strip_prefix("\r\n")?;
    }
}
