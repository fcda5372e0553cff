//! Runs the same random commands and scripts on the embedded store and on a real server. Every
//! reply and all remaining keys must be equal. The comparison applies to servers of the release
//! that the store follows. Other releases differ, for example in error texts.

mod generate;
mod scripts;
mod server;
#[path = "../support/mod.rs"]
mod support;

use optimus_embedded::{Clock, Store};
use proptest::collection::vec;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use redis::Value;
use redis::aio::ConnectionLike;

use generate::Step;
use server::Server;
use support::{send, show, words};

/// The release that the store follows.
const RELEASE: &str = "7.0.";
/// The longest sequence of steps in one case.
const STEPS: usize = 40;
const CASES: u32 = 400;

#[test]
fn random_commands_answer_as_a_real_server_does() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut server = Server::start();
    let mut real = runtime.block_on(server.connect());
    if !runtime.block_on(is_of_the_release(&mut real)) {
        return;
    }
    let cases = Config::default().cases.max(CASES);
    let config =
        Config { cases, failure_persistence: None, max_shrink_iters: 4000, ..Config::default() };
    let outcome = TestRunner::new(config).run(&vec(generate::step(), 1..STEPS), |steps| {
        runtime.block_on(compare(&mut real.clone(), &steps)).map_err(TestCaseError::fail)
    });
    if let Err(difference) = outcome {
        panic!("{difference}");
    }
}

#[test]
fn every_script_answers_as_on_a_real_server() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut server = Server::start();
    let mut real = runtime.block_on(server.connect());
    if !runtime.block_on(is_of_the_release(&mut real)) {
        return;
    }
    let types = ["SET a 1", "RPUSH a x y", "HSET a m 1", "ZADD a 1 m 2.5 n", "SADD a m", "DEL a"];
    for first in types {
        for script in scripts::SCRIPTS {
            let mut eval = vec![b"EVAL".to_vec(), script.as_bytes().to_vec(), b"2".to_vec()];
            eval.extend(words("a b m 5 2.5"));
            let steps = [Step(words(first)), Step(eval)];
            if let Err(difference) = runtime.block_on(compare(&mut real, &steps)) {
                panic!("after {first}, {difference}");
            }
        }
    }
}

/// Returns whether the server is of that release. If it is not, prints a message.
async fn is_of_the_release(real: &mut impl ConnectionLike) -> bool {
    let info = show(&send(real, &words("INFO server")).await);
    let same = info.contains(&format!("redis_version:{RELEASE}"));
    if !same {
        eprintln!("the test compared nothing: the server here is not Redis {RELEASE}x");
    }
    same
}

/// Runs the steps on both sides, starting with an empty store.
async fn compare(real: &mut impl ConnectionLike, steps: &[Step]) -> Result<(), String> {
    let mut embedded = Store::new(Clock::system()).connection();
    send(real, &words("FLUSHALL")).await;
    send(real, &words("SCRIPT FLUSH")).await;
    for step in steps {
        let (ours, theirs) = (send(&mut embedded, &step.0).await, send(real, &step.0).await);
        same(step, &ours, &theirs).map_err(|difference| format!("{step:?}: {difference}"))?;
    }
    let (ours, theirs) = (dump(&mut embedded).await, dump(real).await);
    if ours == theirs {
        Ok(())
    } else {
        Err(format!("the remaining keys are {ours:#?}, should be {theirs:#?}"))
    }
}

fn same(step: &Step, ours: &Value, theirs: &Value) -> Result<(), String> {
    let name = String::from_utf8_lossy(&step.0[0]).to_ascii_uppercase();
    if let ("TTL" | "PTTL", Value::Int(ours), Value::Int(theirs)) = (&*name, ours, theirs) {
        // The reply depends on the time, which passes between the two calls.
        let slack = if name == "TTL" { 2 } else { 2000 };
        if (*ours > 0) == (*theirs > 0) && (ours - theirs).abs() <= slack {
            return Ok(());
        }
    }
    let (ours, theirs) = (show(&ordered(&name, ours)), show(&ordered(&name, theirs)));
    if ours == theirs { Ok(()) } else { Err(format!("answered {ours}, should be {theirs}")) }
}

/// Returns the reply, sorted where Redis defines no order.
fn ordered(name: &str, value: &Value) -> Value {
    let Value::Array(items) = value else { return value.clone() };
    let mut items = items.clone();
    match name {
        "HKEYS" | "HVALS" | "SMEMBERS" | "KEYS" | "SPOP" | "HRANDFIELD" => items.sort_by_key(show),
        "HGETALL" => return pairs(&items),
        "SCAN" | "SSCAN" => items[1] = ordered("KEYS", &items[1]),
        "HSCAN" => items[1] = ordered("HGETALL", &items[1]),
        _ => {}
    }
    Value::Array(items)
}

fn pairs(items: &[Value]) -> Value {
    let mut pairs: Vec<_> = items.chunks(2).map(|pair| Value::Array(pair.to_vec())).collect();
    pairs.sort_by_key(show);
    Value::Array(pairs)
}

/// Returns every key with its type, whether it expires, and its value.
async fn dump(connection: &mut impl ConnectionLike) -> Vec<String> {
    let keys = send(connection, &words("KEYS *")).await;
    let Value::Array(keys) = ordered("KEYS", &keys) else { panic!("KEYS replies an array") };
    let mut lines = Vec::new();
    for key in keys {
        let Value::BulkString(key) = key else { panic!("a key is a bulk string") };
        let of = |line: &str| [words(line), vec![key.clone()]].concat();
        let kind = show(&send(connection, &of("TYPE")).await);
        let mut read = match kind.as_str() {
            "+string" => of("GET"),
            "+hash" => of("HGETALL"),
            "+set" => of("SMEMBERS"),
            "+list" => of("LRANGE"),
            _ => of("ZRANGE"),
        };
        if matches!(kind.as_str(), "+list" | "+zset") {
            read.extend(words("0 -1"));
        }
        if kind == "+zset" {
            read.extend(words("WITHSCORES"));
        }
        let value = send(connection, &read).await;
        let name = String::from_utf8_lossy(&read[0]).into_owned();
        let expires = show(&send(connection, &of("PTTL")).await) != "-1";
        let value = show(&ordered(&name, &value));
        lines.push(format!("{} {kind} expires:{expires} {value}", key.escape_ascii()));
    }
    lines
}
