//! The commands with which a client queries a server about itself.

use std::time::Duration;

use optimus_embedded::{Clock, Store};

use crate::support::{send, show, transcript, words};

#[tokio::test]
async fn the_connection_commands_of_a_client_are_answered() {
    transcript(&[
        ("PING", "+PONG"),
        ("ping hello", "\"hello\""),
        ("ECHO hi", "\"hi\""),
        ("SELECT 0", "+OK"),
        ("TIME", "[\"1000\" \"0\"]"),
        ("CLIENT GETNAME", "nil"),
        ("CLIENT SETNAME me", "+OK"),
        ("CLIENT GETNAME", "\"me\""),
        ("CLIENT ID", "1"),
        ("CLIENT SETINFO lib-name x", "+OK"),
        ("CLIENT NO-EVICT on", "+OK"),
        (
            "CONFIG GET maxmemory-policy appendonly",
            "[\"maxmemory-policy\" \"noeviction\" \"appendonly\" \"no\"]",
        ),
        ("HELLO 3", "!NOPROTO unsupported protocol version"),
    ])
    .await;
}

#[tokio::test]
async fn info_shows_that_this_is_not_a_server() {
    let mut connection = Store::new(Clock::system()).connection();
    let info = show(&send(&mut connection, &words("INFO")).await);
    for line in
        ["redis_version:7.", "redis_mode:embedded", "maxmemory_policy:noeviction", "loading:0"]
    {
        assert!(info.contains(line), "{info}");
    }
}

#[tokio::test]
async fn time_follows_the_clock_of_the_store() {
    let clock = Clock::manual(1_500);
    let mut connection = Store::new(clock.clone()).connection();
    clock.advance(Duration::from_micros(7));
    let time = send(&mut connection, &words("TIME")).await;
    assert_eq!(show(&time), "[\"1\" \"500007\"]");
    clock.set_ms(3_000);
    assert_eq!(clock.now_ms(), 3_000);
    assert_eq!(show(&send(&mut connection, &words("TIME")).await), "[\"3\" \"0\"]");
}

#[tokio::test]
async fn stores_are_shared_by_name_and_private_without_one() {
    let mut first = Store::named("shared-by-name").connection();
    let mut second = Store::named("shared-by-name").connection();
    let mut other = Store::named("another-name").connection();
    let mut private = Store::new(Clock::system()).connection();
    send(&mut first, &words("SET k v")).await;
    assert_eq!(show(&send(&mut second, &words("GET k")).await), "\"v\"");
    assert_eq!(show(&send(&mut other, &words("GET k")).await), "nil");
    assert_eq!(show(&send(&mut private, &words("GET k")).await), "nil");
    assert_ne!(
        show(&send(&mut first, &words("CLIENT ID")).await),
        show(&send(&mut second, &words("CLIENT ID")).await)
    );
}
