//! The stream of events.

use std::fmt::Write as _;

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use crate::{
    client::Browser,
    stage::{SOON, Stage, call},
};

/// An open stream.
pub(crate) struct Events {
    stream: TcpStream,
    text: String,
}

impl Events {
    pub(crate) async fn open(browser: &Browser, query: &str) -> Self {
        let mut stream = TcpStream::connect(browser.address).await.unwrap();
        let mut text =
            format!("GET /api/v1/events{query} HTTP/1.1\r\nhost: {}\r\n", browser.address);
        for (name, value) in &browser.headers {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        text.push_str("\r\n");
        stream.write_all(text.as_bytes()).await.unwrap();
        Self { stream, text: String::new() }
    }

    /// Waits for a text, and returns all that came so far.
    pub(crate) async fn until(&mut self, part: &str) -> &str {
        let read = timeout(SOON, async {
            let mut buffer = [0; 4096];
            while !self.text.contains(part) {
                let count = self.stream.read(&mut buffer).await.unwrap();
                assert!(count > 0, "the stream has ended: {}", self.text);
                self.text.push_str(&String::from_utf8_lossy(&buffer[..count]));
            }
        });
        assert!(read.await.is_ok(), "{part} does not come: {}", self.text);
        &self.text
    }

    /// Waits for an overview, and returns the number of the last one.
    async fn last_overview(&mut self) -> u64 {
        let text = self.until("data: {").await;
        let id = text.rsplit("id: ").next().and_then(|rest| rest.lines().next());
        id.and_then(|id| id.trim().parse().ok()).expect("an overview has a number")
    }

    /// Waits for the end of the stream.
    async fn ends(&mut self) {
        let mut rest = Vec::new();
        let read = timeout(SOON, self.stream.read_to_end(&mut rest)).await;
        read.expect("the stream ends").unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_who_listen_hear_of_an_act_at_once_and_of_named_queues() {
    let stage = Stage::new().await;
    stage.client.submit(call("x")).await.unwrap();
    let served = stage.open();
    let mut one = Events::open(&served.browser, "?queue=mail").await;
    let mut other = Events::open(&served.browser, "").await;
    let first = one.until("event: queue").await;
    assert!(first.contains("content-type: text/event-stream"), "{first}");
    assert!(first.contains("event: overview") && first.contains("id: "), "{first}");
    other.until("event: overview").await;
    served.browser.act("queues/mail/pause", &json!({ "reason": "why not" })).await.is(204);
    one.until("why not").await;
    other.until("why not").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_comes_back_is_not_sent_what_it_has() {
    let stage = Stage::new().await;
    stage.client.submit(call("x")).await.unwrap();
    let served = stage.open();
    let mut first = Events::open(&served.browser, "").await;
    let text = first.until("id: ").await;
    let id = text.split("id: ").nth(1).unwrap().split('\n').next().unwrap().trim().to_owned();
    drop(first);
    let mut again = Events::open(&served.browser.with("last-event-id", &id), "").await;
    served.browser.act("queues/mail/pause", &json!({ "reason": "news" })).await.is(204);
    let text = again.until("news").await;
    assert_eq!(text.matches("event: overview").count(), 1, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_its_session() {
    let stage = Stage::new().await;
    stage.client.submit(call("x")).await.unwrap();
    let served = stage.guarded();
    let ann = served.signed_in("ann").await;
    let mut events = Events::open(&ann, "").await;
    events.until("event: overview").await;
    ann.act("sign-out", &json!({})).await.is(204);
    events.ends().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_is_not_read_while_nobody_watches() {
    let stage = Stage::new().await;
    stage.client.submit(call("x")).await.unwrap();
    let (watched, other) = (stage.open(), stage.open());
    let mut clock = Events::open(&watched.browser, "").await;
    let mut events = Events::open(&other.browser, "").await;
    let before = events.last_overview().await;
    drop(events);
    // A console that somebody watches reads three times more meanwhile.
    let begun = clock.last_overview().await;
    clock.until(&format!("id: {}\n", begun + 3)).await;
    // The browser that comes back makes it read; another read may have been under way.
    let after = Events::open(&other.browser, "").await.last_overview().await;
    assert!((before + 1..=before + 2).contains(&after), "{before} and {after}");
}
