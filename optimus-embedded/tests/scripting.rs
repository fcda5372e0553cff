//! Scripts: how the store finds them, what they may do, and which writes of a refused script
//! remain.

#[path = "support/mod.rs"]
mod support;

use std::time::Duration;

use optimus_embedded::{Clock, Connection, Room, Store};
use support::{send, show, words};

/// Runs a script with one key, `k`, and formats its reply.
async fn eval(connection: &mut Connection, script: &str) -> String {
    let command = ["EVAL", script, "1", "k"].map(|word| word.as_bytes().to_vec());
    show(&send(connection, &command).await)
}

#[tokio::test]
async fn a_loaded_script_is_found_by_its_hash() {
    let sha = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
    let mut connection = Store::new(Clock::system()).connection();
    let mut reply_to = async |line: &str| show(&send(&mut connection, &words(line)).await);
    let unknown = "!NOSCRIPT No matching script. Please use EVAL.";
    assert_eq!(reply_to(&format!("EVALSHA {sha} 0")).await, unknown);
    let mut load = words("SCRIPT LOAD");
    load.push(b"return 1".to_vec());
    assert_eq!(show(&send(&mut connection, &load).await), format!("\"{sha}\""));
    let mut reply_to = async |line: &str| show(&send(&mut connection, &words(line)).await);
    assert_eq!(reply_to(&format!("EVALSHA {} 0", sha.to_uppercase())).await, "1");
    assert_eq!(reply_to(&format!("SCRIPT EXISTS {sha} other")).await, "[1 0]");
    assert_eq!(reply_to("SCRIPT FLUSH").await, "+OK");
    assert_eq!(reply_to(&format!("EVALSHA {sha} 0")).await, unknown);
}

#[tokio::test]
async fn the_redis_crate_reloads_a_script_that_was_forgotten() {
    let mut connection = Store::new(Clock::system()).connection();
    let script = redis::Script::new("return {KEYS[1], ARGV[1]}");
    for _ in 0..2 {
        let reply: (String, String) =
            script.key("a").arg("b").invoke_async(&mut connection).await.unwrap();
        assert_eq!(reply, ("a".to_owned(), "b".to_owned()));
        send(&mut connection, &words("SCRIPT FLUSH")).await;
    }
}

#[tokio::test]
async fn a_refused_command_ends_the_script_and_keeps_earlier_writes() {
    let mut connection = Store::new(Clock::system()).connection();
    let script = "redis.call('SET', KEYS[1], 'kept') redis.call('LPUSH', KEYS[1], 1) return 1";
    let reply = eval(&mut connection, script).await;
    assert!(reply.starts_with("!WRONGTYPE Operation against a key"), "{reply}");
    assert!(reply.ends_with("on @user_script:1."), "{reply}");
    assert_eq!(show(&send(&mut connection, &words("GET k")).await), "\"kept\"");
}

#[tokio::test]
async fn a_script_sees_nothing_of_the_previous_script() {
    let mut connection = Store::new(Clock::system()).connection();
    let leak = eval(&mut connection, "leak = 1 return leak").await;
    assert!(leak.contains("Attempt to modify a readonly table"), "{leak}");
    let read = eval(&mut connection, "return leak").await;
    assert!(read.contains("nonexistent global variable 'leak'"), "{read}");
    assert_eq!(eval(&mut connection, "KEYS[2] = 'mine' return #KEYS").await, "2");
    assert_eq!(eval(&mut connection, "return #KEYS").await, "1");
}

#[tokio::test]
async fn functions_that_reach_outside_a_script_do_not_exist() {
    let mut connection = Store::new(Clock::system()).connection();
    for name in [
        "print",
        "load",
        "loadstring",
        "dofile",
        "require",
        "rawset",
        "os",
        "io",
        "debug",
        "getfenv",
    ] {
        let reply = eval(&mut connection, &format!("return {name}")).await;
        assert!(reply.contains("nonexistent global variable"), "{name}: {reply}");
    }
    let shebang = eval(&mut connection, "#!lua\nreturn 1").await;
    assert_eq!(shebang, "!ERR optimus-embedded does not implement 'script shebang'");
}

#[tokio::test]
async fn an_unimplemented_command_is_also_an_error_in_a_script() {
    let mut connection = Store::new(Clock::system()).connection();
    let reply = eval(&mut connection, "return redis.call('XADD', KEYS[1], '*', 'a', 1)").await;
    assert!(reply.starts_with("!ERR optimus-embedded does not implement 'XADD'"), "{reply}");
}

#[tokio::test]
async fn a_full_store_stops_a_script_at_its_first_write_only() {
    let store = Store::new(Clock::system());
    let mut connection = store.connection();
    store.set_room(Room::Full);
    let grows_first = "redis.call('HSET', KEYS[1], 'a', 1) return 1";
    let reply = eval(&mut connection, grows_first).await;
    assert!(reply.starts_with("!OOM command not allowed when used memory"), "{reply}");
    let reads_first = "redis.call('HGET', KEYS[1], 'a') redis.call('HSET', KEYS[1], 'a', 1)";
    assert!(eval(&mut connection, reads_first).await.starts_with("!OOM"));
    assert_eq!(show(&send(&mut connection, &words("DBSIZE")).await), "0");
    let removes_first =
        "redis.call('HDEL', KEYS[1], 'a') redis.call('HSET', KEYS[1], 'a', 1) return 1";
    assert_eq!(eval(&mut connection, removes_first).await, "1");
}

#[tokio::test]
async fn time_stands_still_while_a_script_runs() {
    let clock = Clock::manual(5_000);
    let mut connection = Store::new(clock.clone()).connection();
    send(&mut connection, &words("SET k v PX 100")).await;
    clock.advance(Duration::from_millis(99));
    let script = "local t = redis.call('TIME') return {t[1], t[2], redis.call('PTTL', KEYS[1])}";
    assert_eq!(eval(&mut connection, script).await, "[\"5\" \"99000\" 1]");
}

#[tokio::test]
async fn random_numbers_are_the_same_in_every_store() {
    let script = "return {math.random(1000000), math.random(5, 6), tostring(math.random())}";
    let mut first = Store::new(Clock::system()).connection();
    let mut second = Store::new(Clock::system()).connection();
    let (one, two) = (eval(&mut first, script).await, eval(&mut first, script).await);
    assert_ne!(one, two);
    assert_eq!(eval(&mut second, script).await, one);
}

#[tokio::test]
async fn arguments_are_binary_safe() {
    let mut connection = Store::new(Clock::system()).connection();
    let bytes: Vec<u8> = (0..=255).collect();
    let script =
        redis::Script::new("redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])");
    let back: Vec<u8> = script.key(&bytes).arg(&bytes).invoke_async(&mut connection).await.unwrap();
    assert_eq!(back, bytes);
}

#[tokio::test]
async fn taking_from_the_head_of_a_long_list_does_not_move_the_rest() {
    let mut connection = Store::new(Clock::system()).connection();
    let fill = "for i = 1, 1000 do local t = {} for j = 1, 1000 do t[j] = j end
                redis.call('RPUSH', KEYS[1], unpack(t)) end return redis.call('LLEN', KEYS[1])";
    assert_eq!(eval(&mut connection, fill).await, "1000000");
    let claim = "for i = 1, 5000 do redis.call('LRANGE', KEYS[1], 0, 99)
                 redis.call('LTRIM', KEYS[1], 100, -1) end return redis.call('LLEN', KEYS[1])";
    let begun = std::time::Instant::now();
    assert_eq!(eval(&mut connection, claim).await, "500000");
    // If each call moved half a million elements, 5,000 calls would take minutes.
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}
