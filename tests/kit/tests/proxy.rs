//! The fault proxy causes exactly the faults that a test requests.

use std::future::Future;
use std::time::{Duration, Instant};

use optimus_testkit::{FaultProxy, RedisServer, SharedRedis, Way, namespace, shared_redis};
use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands as _, AsyncConnectionConfig, RedisResult};

/// A time that is longer than any reply takes. A longer silence means that the reply is held up.
const SILENCE: Duration = Duration::from_millis(150);
const SOON: Duration = Duration::from_secs(10);

async fn proxied() -> (SharedRedis, FaultProxy) {
    let redis = shared_redis();
    let proxy = FaultProxy::start(redis.url()).await;
    (redis, proxy)
}

async fn connect(url: &str) -> MultiplexedConnection {
    let config = AsyncConnectionConfig::new().set_response_timeout(Some(SOON));
    let client = redis::Client::open(url).unwrap();
    client.get_multiplexed_async_connection_with_config(&config).await.unwrap()
}

async fn count(connection: &mut MultiplexedConnection, key: &str) -> u64 {
    connection.get::<_, Option<u64>>(key).await.unwrap().unwrap_or(0)
}

/// Checks that the future does not finish within [`SILENCE`].
async fn is_held_up(action: impl Future) -> bool {
    tokio::time::timeout(SILENCE, action).await.is_err()
}

#[tokio::test]
async fn everything_passes_at_first_and_a_pipeline_keeps_its_order() {
    let (_redis, proxy) = proxied().await;
    let mut client = connect(&proxy.url()).await;
    let key = namespace();
    let mut pipeline = redis::pipe();
    for number in 0..200 {
        pipeline.rpush(&key, vec![b'x'; number * 100]).ignore().llen(&key);
    }
    let lengths: Vec<usize> = pipeline.query_async(&mut client).await.unwrap();
    assert_eq!(lengths, (1..=200).collect::<Vec<_>>());
    let () = client.del(&key).await.unwrap();
}

#[tokio::test]
async fn a_dropped_request_is_not_executed_and_earlier_ones_are_answered() {
    let (redis, proxy) = proxied().await;
    let (mut client, mut direct) = (connect(&proxy.url()).await, connect(redis.url()).await);
    let key = namespace();
    proxy.drop_request(2);
    let first: u64 = client.incr(&key, 1).await.unwrap();
    assert_eq!((first, proxy.struck()), (1, false));
    let lost: RedisResult<u64> = client.incr(&key, 1).await;
    assert!(lost.is_err() && proxy.struck());
    assert_eq!(count(&mut direct, &key).await, 1);

    let again: u64 = connect(&proxy.url()).await.incr(&key, 1).await.unwrap();
    assert_eq!(again, 2, "one fault hits once");
    assert_eq!(proxy.requests(), ["INCRBY", "INCRBY", "INCRBY"]);
}

#[tokio::test]
async fn a_request_whose_reply_is_dropped_is_still_executed() {
    let (redis, proxy) = proxied().await;
    let (mut client, mut direct) = (connect(&proxy.url()).await, connect(redis.url()).await);
    let key = namespace();
    proxy.drop_reply(1);
    let lost: RedisResult<u64> = client.incr(&key, 1).await;
    assert!(lost.is_err());
    assert_eq!(count(&mut direct, &key).await, 1);
}

#[tokio::test]
async fn a_duplicated_request_is_executed_twice_and_answered_once() {
    let (_redis, proxy) = proxied().await;
    let mut client = connect(&proxy.url()).await;
    let key = namespace();
    proxy.duplicate(1);
    let mut pipeline = redis::pipe();
    let answers: Vec<u64> =
        pipeline.incr(&key, 1).incr(&key, 10).query_async(&mut client).await.unwrap();
    assert_eq!(answers, [2, 12]);
}

#[tokio::test]
async fn a_black_hole_up_delivers_late_what_was_sent_into_it() {
    let (redis, proxy) = proxied().await;
    let (mut client, mut direct) = (connect(&proxy.url()).await, connect(redis.url()).await);
    let key = namespace();
    proxy.black_hole(Way::Up);
    let (mut sender, counter) = (client.clone(), key.clone());
    let mut sent = tokio::spawn(async move { sender.incr::<_, _, u64>(counter, 1).await.unwrap() });
    assert!(is_held_up(&mut sent).await);
    assert_eq!(count(&mut direct, &key).await, 0);
    proxy.pass();
    assert_eq!(sent.await.unwrap(), 1);
    assert_eq!(count(&mut client, &key).await, 1);
}

#[tokio::test]
async fn a_black_hole_down_hides_what_was_done() {
    let (redis, proxy) = proxied().await;
    let (mut client, mut direct) = (connect(&proxy.url()).await, connect(redis.url()).await);
    let key = namespace();
    proxy.black_hole(Way::Down);
    assert!(is_held_up(client.incr::<_, _, u64>(&key, 1)).await);
    assert_eq!(count(&mut direct, &key).await, 1);
}

#[tokio::test]
async fn a_half_open_connection_stays_silent_while_new_ones_work() {
    let (_redis, proxy) = proxied().await;
    let mut client = connect(&proxy.url()).await;
    proxy.half_open();
    let key = namespace();
    assert!(is_held_up(client.incr::<_, _, u64>(&key, 1)).await);
    proxy.pass();
    assert!(is_held_up(client.incr::<_, _, u64>(&key, 1)).await);
    assert_eq!(connect(&proxy.url()).await.incr::<_, _, u64>(&key, 1).await.unwrap(), 1);
}

#[tokio::test]
async fn cut_and_reset_connections_fail_at_once_and_new_ones_work() {
    let (_redis, proxy) = proxied().await;
    let end: [fn(&FaultProxy); 2] = [FaultProxy::cut, FaultProxy::reset];
    for end in end {
        let mut client = connect(&proxy.url()).await;
        let _: Option<u64> = client.get(namespace()).await.unwrap();
        let begun = Instant::now();
        end(&proxy);
        // The client may send before it has received the end of the connection.
        while client.get::<_, Option<u64>>(namespace()).await.is_ok() {
            assert!(begun.elapsed() < SOON, "the connection still works");
        }
        assert!(begun.elapsed() < SOON);
    }
    let _: Option<u64> = connect(&proxy.url()).await.get(namespace()).await.unwrap();
}

#[tokio::test]
async fn slices_and_delays_change_nothing_but_the_time() {
    let (_redis, proxy) = proxied().await;
    let mut client = connect(&proxy.url()).await;
    let (key, value) = (namespace(), "abc".repeat(500));
    proxy.slices();
    let () = client.set_ex(&key, &value, 60).await.unwrap();
    assert_eq!(client.get::<_, String>(&key).await.unwrap(), value);

    let each = Duration::from_millis(30);
    proxy.delay(each);
    let begun = Instant::now();
    assert_eq!(client.get::<_, String>(&key).await.unwrap(), value);
    assert!(begun.elapsed() >= 2 * each, "the delay applies once in each direction");
}

#[tokio::test]
async fn a_server_that_dies_and_comes_back_is_seen_through_the_proxy() {
    let mut server = RedisServer::builder().tcp().start();
    let proxy = FaultProxy::start(&server.url()).await;
    let mut client = connect(&proxy.url()).await;
    let () = redis::cmd("PING").query_async(&mut client).await.unwrap();
    server.kill();
    let dead: RedisResult<u64> = client.incr("n", 1).await;
    assert!(dead.is_err());
    server.restart();
    assert_eq!(connect(&proxy.url()).await.incr::<_, _, u64>("n", 1).await.unwrap(), 1);
}
