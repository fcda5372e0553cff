//! BLPOP: which clients wait, which clients are served, and what happens when a client leaves.

#[path = "support/mod.rs"]
mod support;

use std::time::Duration;

use futures_util::future::FutureExt;
use optimus_embedded::{Clock, Connection, Store};
use redis::Value;
use support::{send, show, words};
use tokio::task::JoinHandle;

/// Starts a BLPOP. Returns once the BLPOP waits.
async fn waiting(connection: &Connection, line: &str) -> JoinHandle<String> {
    let (mut connection, line) = (connection.clone(), words(line));
    let (begun, begins) = tokio::sync::oneshot::channel();
    let task = tokio::spawn(async move {
        let mut pop = Box::pin(send(&mut connection, &line));
        // One poll is enough, because the command either replies at once or waits in the queue.
        let first: Option<Value> = (&mut pop).now_or_never();
        begun.send(()).expect("the client waits in the queue");
        show(&match first {
            Some(reply) => reply,
            None => pop.await,
        })
    });
    begins.await.expect("the task has polled its command");
    task
}

#[tokio::test]
async fn an_element_is_popped_at_once_from_the_first_list_that_has_one() {
    let mut connection = Store::new(Clock::system()).connection();
    send(&mut connection, &words("RPUSH b 1 2")).await;
    send(&mut connection, &words("RPUSH c 3")).await;
    let reply = send(&mut connection, &words("BLPOP a b c 0")).await;
    assert_eq!(show(&reply), "[\"b\" \"1\"]");
}

#[tokio::test]
async fn the_first_waiter_is_served_first() {
    let mut connection = Store::new(Clock::system()).connection();
    let first = waiting(&connection, "BLPOP l 0").await;
    let second = waiting(&connection, "BLPOP other l 0").await;
    send(&mut connection, &words("RPUSH l 1 2 3")).await;
    assert_eq!(first.await.unwrap(), "[\"l\" \"1\"]");
    assert_eq!(second.await.unwrap(), "[\"l\" \"2\"]");
    assert_eq!(show(&send(&mut connection, &words("LRANGE l 0 -1")).await), "[\"3\"]");
}

#[tokio::test]
async fn a_wait_delays_no_other_command_of_its_connection() {
    let mut connection = Store::new(Clock::system()).connection();
    let wait = waiting(&connection, "BLPOP l 0").await;
    assert_eq!(show(&send(&mut connection, &words("PING")).await), "+PONG");
    send(&mut connection, &words("RPUSH l 1")).await;
    assert_eq!(wait.await.unwrap(), "[\"l\" \"1\"]");
}

#[tokio::test]
async fn a_script_that_pushes_serves_waiters_when_it_has_ended() {
    let mut connection = Store::new(Clock::system()).connection();
    let wait = waiting(&connection, "BLPOP l 0").await;
    let script = redis::Script::new(
        "redis.call('RPUSH', KEYS[1], 'a') local len = redis.call('LLEN', KEYS[1])
         redis.call('LPUSH', KEYS[1], 'b') return len",
    );
    let len: i64 = script.key("l").invoke_async(&mut connection).await.unwrap();
    assert_eq!(len, 1, "the script still sees its own push");
    assert_eq!(wait.await.unwrap(), "[\"l\" \"b\"]");
}

#[tokio::test]
async fn an_element_that_a_script_takes_back_serves_no_waiter() {
    let mut connection = Store::new(Clock::system()).connection();
    let wait = waiting(&connection, "BLPOP l 0").await;
    let script = redis::Script::new(
        "redis.call('RPUSH', KEYS[1], 'a') redis.call('DEL', KEYS[1])
         redis.call('SET', KEYS[1], 'text')",
    );
    let _: () = script.key("l").invoke_async(&mut connection).await.unwrap();
    send(&mut connection, &words("DEL l")).await;
    send(&mut connection, &words("RPUSH l later")).await;
    assert_eq!(wait.await.unwrap(), "[\"l\" \"later\"]");
}

#[tokio::test]
async fn a_waiter_that_leaves_before_the_push_takes_nothing() {
    let mut connection = Store::new(Clock::system()).connection();
    let gone = waiting(&connection, "BLPOP l 0").await;
    let stays = waiting(&connection, "BLPOP l 0").await;
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    send(&mut connection, &words("RPUSH l 1")).await;
    assert_eq!(stays.await.unwrap(), "[\"l\" \"1\"]");
}

#[tokio::test]
async fn a_waiter_that_leaves_after_the_push_gives_the_element_to_the_next() {
    let store = Store::new(Clock::system());
    let (mut leaver, mut connection) = (store.connection(), store.connection());
    let line = words("BLPOP l 0");
    let mut gone = Box::pin(send(&mut leaver, &line));
    assert!((&mut gone).now_or_never().is_none());
    let next = waiting(&connection, "BLPOP l 0").await;
    send(&mut connection, &words("RPUSH l 1")).await;
    drop(gone);
    assert_eq!(next.await.unwrap(), "[\"l\" \"1\"]");
}

#[tokio::test]
async fn an_element_that_is_put_back_expires_with_its_list() {
    let clock = Clock::manual(1_000);
    let store = Store::new(clock.clone());
    let (mut leaver, mut connection) = (store.connection(), store.connection());
    let line = words("BLPOP l 0");
    let mut gone = Box::pin(send(&mut leaver, &line));
    assert!((&mut gone).now_or_never().is_none());
    let push = "redis.call('RPUSH', KEYS[1], 'a') redis.call('PEXPIRE', KEYS[1], 500)";
    let _: () = redis::Script::new(push).key("l").invoke_async(&mut connection).await.unwrap();
    drop(gone);
    assert_eq!(show(&send(&mut connection, &words("LRANGE l 0 -1")).await), "[\"a\"]");
    clock.advance(Duration::from_millis(500));
    assert_eq!(show(&send(&mut connection, &words("EXISTS l")).await), "0");
}

#[tokio::test]
async fn a_waiter_that_leaves_after_the_push_puts_the_element_back_in_front() {
    let store = Store::new(Clock::system());
    let (mut leaver, mut connection) = (store.connection(), store.connection());
    let line = words("BLPOP l 0");
    let mut gone = Box::pin(send(&mut leaver, &line));
    assert!((&mut gone).now_or_never().is_none());
    send(&mut connection, &words("RPUSH l 1 2")).await;
    assert_eq!(show(&send(&mut connection, &words("LRANGE l 0 -1")).await), "[\"2\"]");
    drop(gone);
    assert_eq!(show(&send(&mut connection, &words("LRANGE l 0 -1")).await), "[\"1\" \"2\"]");
}

#[tokio::test]
async fn a_timeout_runs_on_the_manual_clock() {
    let clock = Clock::manual(0);
    let store = Store::new(clock.clone());
    let connection = store.connection();
    let wait = waiting(&connection, "BLPOP l 1.5").await;
    clock.advance(Duration::from_millis(1499));
    tokio::task::yield_now().await;
    assert!(!wait.is_finished());
    clock.advance(Duration::from_millis(1));
    assert_eq!(wait.await.unwrap(), "nil");
}

#[tokio::test(start_paused = true)]
async fn a_timeout_on_the_system_clock_is_tokios() {
    let mut connection = Store::new(Clock::system()).connection();
    let begun = tokio::time::Instant::now();
    assert_eq!(show(&send(&mut connection, &words("BLPOP l 3600")).await), "nil");
    assert_eq!(begun.elapsed().as_secs(), 3600);
}

#[tokio::test]
async fn an_invalid_timeout_is_refused() {
    support::transcript(&[
        ("BLPOP l x", "!ERR timeout is not a float or out of range"),
        ("BLPOP l -1", "!ERR timeout is negative"),
    ])
    .await;
}

#[tokio::test]
async fn many_waiters_on_many_threads_get_each_element_once() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().unwrap();
    let store = Store::new(Clock::system());
    let elements = 200;
    let waits: Vec<_> = (0..elements)
        .map(|_| {
            let mut connection = store.connection();
            runtime.spawn(async move { show(&send(&mut connection, &words("BLPOP l 0")).await) })
        })
        .collect();
    for element in 0..elements {
        let mut connection = store.connection();
        runtime.spawn(async move {
            send(&mut connection, &words(&format!("RPUSH l {element}"))).await;
        });
    }
    let mut popped = std::collections::HashSet::new();
    for wait in waits {
        popped.insert(wait.await.unwrap());
    }
    assert_eq!(popped.len(), elements);
    runtime.shutdown_background();
}
