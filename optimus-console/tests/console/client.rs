//! A plain HTTP client, which sends what a test writes.

use std::{fmt::Write as _, net::SocketAddr, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

/// How long a test waits for an answer.
const WITHIN: Duration = Duration::from_secs(30);

/// The answer of the console.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    /// Returns the value of a header; empty if it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.body);
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), "application/json", "{}", self.body);
        serde_json::from_str(&self.body).unwrap_or_else(|why| panic!("{why}: {}", self.body))
    }

    /// Fails unless this is an error of that status and code.
    #[track_caller]
    pub(crate) fn fails(&self, status: u16, code: &str) {
        assert_eq!((self.status, self.json()["error"].as_str()), (status, Some(code)), "{self:?}");
        assert!(self.json()["message"].as_str().is_some_and(|text| text.len() > 5), "{self:?}");
    }
}

/// Somebody who asks a console.
#[derive(Debug, Clone)]
pub(crate) struct Browser {
    pub(crate) address: SocketAddr,
    /// What each request has.
    pub(crate) headers: Vec<(String, String)>,
}

impl Browser {
    /// Returns a browser that shows a page of the console.
    pub(crate) fn new(address: SocketAddr) -> Self {
        let own = [("sec-fetch-site", "same-origin")];
        let headers = own.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        Self { address, headers }
    }

    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut browser = self.clone();
        browser.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        browser.headers.push((name.to_owned(), value.to_owned()));
        browser
    }

    pub(crate) fn without(&self, name: &str) -> Self {
        let mut browser = self.clone();
        browser.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        browser
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None).await
    }

    pub(crate) async fn look(&self, path: &str) -> Value {
        self.get(&format!("/api/v1/{path}")).await.is(200).json()
    }

    /// Sends an act.
    pub(crate) async fn act(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", &format!("/api/v1/{path}"), Some(&body.to_string())).await
    }

    /// Sends a request with a JSON body, if there is one.
    pub(crate) async fn send(&self, method: &str, path: &str, body: Option<&str>) -> Answer {
        let is_set = |name: &str| self.headers.iter().any(|(known, _)| known == name);
        let mut text = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        if !is_set("host") {
            let _ = write!(text, "host: {}\r\n", self.address);
        }
        for (name, value) in &self.headers {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        if let Some(body) = body {
            if !is_set("content-type") {
                text.push_str("content-type: application/json\r\n");
            }
            let _ = write!(text, "content-length: {}\r\n", body.len());
        }
        text.push_str("\r\n");
        text.push_str(body.unwrap_or_default());
        self.raw(text.as_bytes()).await
    }

    /// Sends these bytes, and reads the answer.
    pub(crate) async fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.expect("the console listens");
        // It may close the connection before it has read all.
        let _ = stream.write_all(bytes).await;
        let mut text = Vec::new();
        let _ = timeout(WITHIN, stream.read_to_end(&mut text)).await.expect("it answers");
        let text = String::from_utf8_lossy(&text).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let pair = |line: &str| {
            let (name, value) = line.split_once(": ")?;
            Some((name.to_lowercase(), value.to_owned()))
        };
        let headers: Vec<_> = lines.filter_map(pair).collect();
        let is_chunked = headers.iter().any(|(name, _)| name == "transfer-encoding");
        let body = if is_chunked { unchunked(body) } else { body.to_owned() };
        Answer { status: status.unwrap_or(0), headers, body }
    }
}

fn unchunked(body: &str) -> String {
    let (mut whole, mut rest) = (String::new(), body);
    while let Some((size, more)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap_or(0);
        if size == 0 || more.len() < size {
            break;
        }
        whole.push_str(&more[..size]);
        rest = more[size..].trim_start_matches("\r\n");
    }
    whole
}
