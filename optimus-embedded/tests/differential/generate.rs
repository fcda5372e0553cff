//! Random commands. They use few keys, so that types conflict, and collections are created and
//! removed.

use std::fmt;

use proptest::collection::vec;
use proptest::prelude::{BoxedStrategy, Strategy, any, prop_oneof};
use proptest::sample::select;

use crate::scripts::SCRIPTS;

/// A command. Its display is typed text.
#[derive(Clone)]
pub(crate) struct Step(pub(crate) Vec<Vec<u8>>);

impl fmt::Debug for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.0.iter().map(|word| format!("'{}'", String::from_utf8_lossy(word)));
        formatter.write_str(&words.collect::<Vec<_>>().join(" "))
    }
}

/// Draws one command. In the templates, a capitalized word in braces is drawn each time.
pub(crate) fn step() -> BoxedStrategy<Step> {
    prop_oneof![
        9 => select(TEMPLATES).prop_flat_map(fill),
        2 => script(),
    ]
    .boxed()
}

const TEMPLATES: &[&str] = &[
    "GET {KEY}",
    "SET {KEY} {TEXT}",
    "SET {KEY} {INT} {SETOPTION}",
    "SET {KEY} {TEXT} {SETOPTION} {SETOPTION}",
    "MGET {KEY} {KEY} {KEY}",
    "MSET {KEY} {TEXT} {KEY} {TEXT}",
    "DEL {KEY}",
    "UNLINK {KEY} {KEY}",
    "EXISTS {KEY} {KEY}",
    "TYPE {KEY}",
    "STRLEN {KEY}",
    "INCR {KEY}",
    "INCRBY {KEY} {INT}",
    "EXPIRE {KEY} {LIFETIME}",
    "PEXPIRE {KEY} {LIFETIME}",
    "SET {KEY} {TEXT} PX {LIFETIME}",
    "SET {KEY} {TEXT} EX {LIFETIME} {SETOPTION}",
    "PEXPIREAT {KEY} 4000000000000",
    "TTL {KEY}",
    "PTTL {KEY}",
    "PERSIST {KEY}",
    "HGET {KEY} {TEXT}",
    "HSET {KEY} {TEXT} {INT}",
    "HSET {KEY} {TEXT} {TEXT} {TEXT} {INT}",
    "HSET {KEY} {TEXT} {TEXT} {TEXT}",
    "HSETNX {KEY} {TEXT} {TEXT}",
    "HMGET {KEY} {TEXT} {TEXT}",
    "HDEL {KEY} {TEXT} {TEXT}",
    "HEXISTS {KEY} {TEXT}",
    "HLEN {KEY}",
    "HGETALL {KEY}",
    "HKEYS {KEY}",
    "HVALS {KEY}",
    "HINCRBY {KEY} {TEXT} {INT}",
    "HSTRLEN {KEY} {TEXT}",
    "HSCAN {KEY} 0 COUNT 1000",
    "HSCAN {KEY} 0 COUNT 0",
    "HRANDFIELD {KEY} 1000",
    "LPUSH {KEY} {TEXT} {TEXT}",
    "RPUSH {KEY} {TEXT} {TEXT} {INT}",
    "LPOP {KEY}",
    "LPOP {KEY} {INT}",
    "RPOP {KEY}",
    "RPOP {KEY} {INT}",
    "LRANGE {KEY} {INT} {INT}",
    "LRANGE {KEY} 0 -1",
    "LTRIM {KEY} {INT} {INT}",
    "LLEN {KEY}",
    "LINDEX {KEY} {INT}",
    "LREM {KEY} {INT} {TEXT}",
    "LSET {KEY} {INT} {TEXT}",
    "LPOS {KEY} {TEXT}",
    "BLPOP {KEY} {KEY} 0.001",
    "SADD {KEY} {TEXT} {TEXT} {INT}",
    "SREM {KEY} {TEXT} {INT}",
    "SCARD {KEY}",
    "SISMEMBER {KEY} {TEXT}",
    "SMISMEMBER {KEY} {TEXT} {INT}",
    "SMEMBERS {KEY}",
    "SSCAN {KEY} 0 COUNT 1000",
    "SPOP {KEY} 1000",
    "ZADD {KEY} {SCORE} {TEXT}",
    "ZADD {KEY} {SCORE} {TEXT} {SCORE} {TEXT} {SCORE} {TEXT}",
    "ZADD {KEY} {ZOPTION} {SCORE} {TEXT}",
    "ZADD {KEY} {ZOPTION} {ZOPTION} {SCORE} {TEXT} {SCORE} {TEXT}",
    "ZINCRBY {KEY} {SCORE} {TEXT}",
    "ZREM {KEY} {TEXT} {TEXT}",
    "ZSCORE {KEY} {TEXT}",
    "ZMSCORE {KEY} {TEXT} {TEXT}",
    "ZCARD {KEY}",
    "ZCOUNT {KEY} {BOUND} {BOUND}",
    "ZRANK {KEY} {TEXT}",
    "ZRANGE {KEY} {INT} {INT}",
    "ZRANGE {KEY} {INT} {INT} REV WITHSCORES",
    "ZRANGE {KEY} {BOUND} {BOUND} BYSCORE WITHSCORES",
    "ZRANGE {KEY} {BOUND} {BOUND} BYSCORE REV",
    "ZRANGE {KEY} {BOUND} {BOUND} BYSCORE LIMIT {INT} {INT}",
    "ZRANGE {KEY} {INT} {INT} LIMIT {INT} {INT}",
    "ZRANGESTORE {KEY} {KEY} {INT} {INT}",
    "ZRANGESTORE {KEY} {KEY} {INT} {INT} REV",
    "ZRANGESTORE {KEY} {KEY} {BOUND} {BOUND} BYSCORE LIMIT {INT} {INT}",
    "ZREVRANGE {KEY} {INT} {INT} WITHSCORES",
    "ZRANGEBYSCORE {KEY} {BOUND} {BOUND}",
    "ZRANGEBYSCORE {KEY} {BOUND} {BOUND} WITHSCORES LIMIT {INT} {INT}",
    "ZREMRANGEBYRANK {KEY} {INT} {INT}",
    "ZREMRANGEBYSCORE {KEY} {BOUND} {BOUND}",
    "ZPOPMIN {KEY}",
    "ZPOPMIN {KEY} {INT}",
    "PING",
    "PING {TEXT}",
    "ECHO {TEXT}",
    "SELECT 0",
    "CONFIG GET maxmemory*policy",
    "DBSIZE",
    "KEYS *",
    "KEYS {PATTERN}",
    "SCAN 0 COUNT 1000",
    "SCAN 0 MATCH {PATTERN} COUNT 1000",
    "SCRIPT EXISTS {TEXT}",
    "EVALSHA {TEXT} 0",
    "EVAL return{INT} {INT} {TEXT}",
    "GET",
    "HSET {KEY} {TEXT}",
    "ZADD {KEY} {SCORE}",
    "FLUSHALL {TEXT}",
];

/// Draws the words of a template.
fn fill(template: &'static str) -> BoxedStrategy<Step> {
    template.split(' ').map(word).collect::<Vec<_>>().prop_map(Step).boxed()
}

fn word(word: &'static str) -> BoxedStrategy<Vec<u8>> {
    let of = |words: &'static [&'static str]| {
        select(words).prop_map(|word| word.as_bytes().to_vec()).boxed()
    };
    match word {
        "{KEY}" => of(&["a", "b", "c", "d"]),
        "{TEXT}" => text(),
        "{INT}" => of(&[
            "0",
            "1",
            "2",
            "3",
            "5",
            "-1",
            "-2",
            "-3",
            "10",
            "-100",
            "100",
            "01",
            "x",
            "1.5",
            "",
            "9223372036854775807",
            "-9223372036854775808",
        ]),
        // The lifetimes are long, so that a key can't expire on one side first.
        "{LIFETIME}" => of(&[
            "100000",
            "200000",
            "0",
            "-1",
            "01",
            "x",
            "",
            "9223372036854775807",
            "-9223372036854775808",
        ]),
        "{SCORE}" => of(&["0", "1", "-1", "2", "2.5", "-0.25", "inf", "-inf", "1e3", "nan", "x"]),
        "{BOUND}" => {
            of(&["-inf", "+inf", "inf", "(inf", "(-inf", "0", "(0", "1", "(1", "2.5", "x"])
        }
        "{SETOPTION}" => of(&["NX", "XX", "GET", "KEEPTTL", "nx"]),
        "{ZOPTION}" => of(&["NX", "XX", "GT", "LT", "CH", "INCR", "ch"]),
        "{PATTERN}" => of(&["a", "?", "[a-c]", "[^a]", "*b*", "x*", "\\a"]),
        "return{INT}" => of(&["return 1", "return {1,2,3}"]),
        plain => proptest::strategy::Just(plain.as_bytes().to_vec()).boxed(),
    }
}

/// Draws one of a few short texts that repeat, or sometimes random bytes.
fn text() -> BoxedStrategy<Vec<u8>> {
    prop_oneof![
        12 => select(&["m", "n", "o", "p", "7", ""][..]).prop_map(|text| text.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 0..6),
    ]
    .boxed()
}

/// Draws one of the scripts, with two keys and three arguments.
fn script() -> BoxedStrategy<Step> {
    let arguments = ["{KEY}", "{KEY}", "{TEXT}", "{INT}", "{SCORE}"].map(word).to_vec();
    (select(SCRIPTS), arguments)
        .prop_map(|(script, arguments)| {
            let mut words = vec![b"EVAL".to_vec(), script.as_bytes().to_vec(), b"2".to_vec()];
            words.extend(arguments);
            Step(words)
        })
        .boxed()
}
