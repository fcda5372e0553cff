//! Many listeners and slow clients do not fill the memory.

use std::{fs, time::Duration};

use serde_json::json;
use tokio::{io::AsyncReadExt as _, net::TcpStream, time::timeout};

use crate::{
    events::Events,
    stage::{SOON, Served, Stage, call},
};

/// Returns the memory of this process, in bytes; only known on Linux.
fn memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

#[tokio::test(flavor = "multi_thread")]
async fn of_1000_listeners_those_above_the_limit_are_refused_and_memory_is_bounded() {
    let stage = Stage::new().await;
    stage.client.submit(call("x")).await.unwrap();
    let served = Served::of(stage.console().listeners_max(200));
    served.browser.look("overview").await;
    let before = memory();
    let (mut open, mut refused) = (Vec::new(), 0);
    for _ in 0..1_000 {
        // Nobody reads what those say that stay open.
        let mut events = Events::open(&served.browser, "").await;
        let first = events.until("\r\n\r\n").await;
        if first.contains(" 503 ") {
            assert!(first.contains("unavailable"), "{first}");
            refused += 1;
        } else {
            open.push(events);
        }
    }
    assert_eq!((open.len(), refused), (200, 800));
    // News are sent to each, and one reads them.
    let listener = open.last_mut().expect("it listens");
    for number in 0..20 {
        let why = json!({ "reason": format!("number {number}.") });
        served.browser.act("queues/mail/pause", &why).await.is(204);
        listener.until(&format!("number {number}.")).await;
    }
    if let (Some(before), Some(after)) = (before, memory()) {
        let grown = after.saturating_sub(before);
        assert!(grown < 64 << 20, "200 listeners take {grown} bytes");
    }
    served.browser.look("session").await;
    // Seats that are left can be taken again.
    open.clear();
    optimus_testkit::eventually("there is room", SOON, async || {
        let mut events = Events::open(&served.browser, "").await;
        events.until("\r\n\r\n").await.contains(" 200 ")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_send_nothing_or_byte_by_byte_are_dropped() {
    let stage = Stage::new().await;
    let served = stage.open();
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(TcpStream::connect(served.browser.address).await.unwrap());
    }
    served.browser.look("session").await;
    for mut stream in silent {
        let mut rest = Vec::new();
        let read = timeout(Duration::from_secs(60), stream.read_to_end(&mut rest)).await;
        assert!(read.is_ok(), "a silent client is dropped after 20 s");
    }
    served.browser.look("session").await;
}
