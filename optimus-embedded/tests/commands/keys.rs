//! Tests of the commands for keys of any type.

use std::collections::HashSet;
use std::time::Duration;

use optimus_embedded::{Clock, Store};
use redis::AsyncCommands;

use crate::support::transcript;

#[tokio::test]
async fn keys_can_be_queried_and_removed() {
    transcript(&[
        ("SET s 1", "+OK"),
        ("HSET h f 1", "1"),
        ("RPUSH l 1", "1"),
        ("SADD set 1", "1"),
        ("ZADD z 1 a", "1"),
        ("TYPE h", "+hash"),
        ("TYPE l", "+list"),
        ("TYPE set", "+set"),
        ("TYPE z", "+zset"),
        ("TYPE none", "+none"),
        ("DBSIZE", "5"),
        ("EXISTS s h none s", "3"),
        ("KEYS s*", "[\"s\" \"set\"]"),
        ("SCAN 0 MATCH ? COUNT 100", "[\"0\" [\"z\" \"l\" \"h\" \"s\"]]"),
        ("DEL s none", "1"),
        ("UNLINK h l", "2"),
        ("FLUSHDB", "+OK"),
        ("DBSIZE", "0"),
    ])
    .await;
}

#[tokio::test]
async fn a_key_is_removed_when_it_expires() {
    let clock = Clock::manual(1_000);
    let mut connection = Store::new(clock.clone()).connection();
    let _: () = connection.set("k", 1).await.unwrap();
    let _: () = connection.pexpire("k", 1500).await.unwrap();
    assert_eq!(connection.ttl::<_, i64>("k").await.unwrap(), 2);
    clock.advance(Duration::from_micros(1_499_999));
    assert_eq!(connection.pttl::<_, i64>("k").await.unwrap(), 1);
    clock.advance(Duration::from_micros(1));
    assert_eq!(connection.pttl::<_, i64>("k").await.unwrap(), -2);
    let size: i64 = redis::cmd("DBSIZE").query_async(&mut connection).await.unwrap();
    assert_eq!(size, 0);
}

#[tokio::test]
async fn an_expiry_can_be_changed_and_removed() {
    transcript(&[
        ("EXPIRE none 5", "0"),
        ("SET k v", "+OK"),
        ("PERSIST k", "0"),
        ("EXPIRE k 5", "1"),
        ("TTL k", "5"),
        ("PEXPIREAT k 1000250", "1"),
        ("PTTL k", "250"),
        ("PERSIST k", "1"),
        ("TTL k", "-1"),
        ("PEXPIRE k -1", "1"),
        ("TTL k", "-2"),
    ])
    .await;
}

#[tokio::test]
async fn a_scan_misses_no_key_that_stays_while_others_are_removed() {
    let mut connection = Store::new(Clock::system()).connection();
    for number in 0..100 {
        let _: () = connection.hset("h", number, number).await.unwrap();
    }
    let (mut cursor, mut seen) = (0, HashSet::new());
    loop {
        let mut step = redis::cmd("HSCAN");
        step.arg("h").arg(cursor).arg("COUNT").arg(7);
        let (next, found): (u64, Vec<(u32, u32)>) =
            step.query_async(&mut connection).await.unwrap();
        seen.extend(found.iter().map(|(field, _)| *field));
        // The loop removes odd keys when it finds them, which moves other keys into their places.
        for (field, _) in found.iter().filter(|(field, _)| field % 2 == 1) {
            let _: () = connection.hdel("h", *field).await.unwrap();
        }
        cursor = next;
        if cursor == 0 {
            break;
        }
    }
    assert!((0..100).step_by(2).all(|even| seen.contains(&even)), "{seen:?}");
}

#[tokio::test]
async fn the_iterators_of_the_redis_crate_work() {
    let mut connection = Store::new(Clock::system()).connection();
    for number in 0..50 {
        let _: () = connection.set(format!("key:{number}"), number).await.unwrap();
    }
    let mut keys = connection.scan_match::<_, String>("key:*").await.unwrap();
    let mut seen = HashSet::new();
    while let Some(key) = keys.next_item().await {
        seen.insert(key.unwrap());
    }
    assert_eq!(seen.len(), 50);
}
