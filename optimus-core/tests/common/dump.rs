//! All that a queue keeps, to compare before and after and to put back.

use std::{collections::BTreeMap, fmt};

use redis::{Pipeline, Value, cmd, from_redis_value};

use crate::bench::Bench;

/// Every key of the queue, without the prefix they share, and its content.
pub(crate) type Dump = BTreeMap<String, Content>;

/// The content of a key. What Redis keeps without order is sorted.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Content {
    Text(Vec<u8>),
    List(Vec<Vec<u8>>),
    Hash(Vec<(Vec<u8>, Vec<u8>)>),
    /// Member and score.
    Zset(Vec<(Vec<u8>, Vec<u8>)>),
}

impl Content {
    fn read(kind: &str, value: Value) -> Self {
        let sorted = |value| {
            let mut pairs: Vec<(Vec<u8>, Vec<u8>)> =
                from_redis_value(value).expect("hashes and zsets are pairs");
            pairs.sort();
            pairs
        };
        match kind {
            "string" => Self::Text(from_redis_value(value).expect("a string is bytes")),
            "list" => Self::List(from_redis_value(value).expect("a list is of bytes")),
            "hash" => Self::Hash(sorted(value)),
            _ => Self::Zset(sorted(value)),
        }
    }

    fn write(&self, pipeline: &mut Pipeline, key: &str) {
        match self {
            Self::Text(text) => pipeline.cmd("SET").arg(key).arg(text),
            Self::List(items) => pipeline.cmd("RPUSH").arg(key).arg(items),
            Self::Hash(fields) => pipeline.cmd("HSET").arg(key).arg(fields),
            Self::Zset(members) => {
                let scored: Vec<_> =
                    members.iter().map(|(member, score)| (score, member)).collect();
                pipeline.cmd("ZADD").arg(key).arg(scored)
            }
        };
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = |pairs: &[(Vec<u8>, Vec<u8>)]| -> Vec<String> {
            pairs.iter().map(|(a, b)| format!("{} = {}", shown(a), shown(b))).collect()
        };
        match self {
            Self::Text(text) => write!(f, "text {}", shown(text)),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(|item| shown(item)).collect();
                write!(f, "list {items:?}")
            }
            Self::Hash(fields) => write!(f, "hash {:?}", pairs(fields)),
            Self::Zset(members) => write!(f, "zset {:?}", pairs(members)),
        }
    }
}

fn shown(bytes: &[u8]) -> String {
    let start = &bytes[..bytes.len().min(200)];
    start.escape_ascii().to_string()
}

impl Bench {
    /// Every key with its content.
    pub(crate) async fn dump(&self) -> Dump {
        let keys = self.keys().await;
        let mut kinds = redis::pipe();
        for key in &keys {
            kinds.cmd("TYPE").arg(key);
        }
        let kinds: Vec<String> = self.raw_all(&kinds).await;
        let mut reads = redis::pipe();
        for (key, kind) in keys.iter().zip(&kinds) {
            match kind.as_str() {
                "string" => reads.cmd("GET").arg(key),
                "list" => reads.cmd("LRANGE").arg(key).arg(0).arg(-1),
                "hash" => reads.cmd("HGETALL").arg(key),
                "zset" => reads.cmd("ZRANGE").arg(key).arg(0).arg(-1).arg("WITHSCORES"),
                other => panic!("{key} is a {other}"),
            };
        }
        let values: Vec<Value> = self.raw_all(&reads).await;
        let prefix = self.key("").len();
        let contents = kinds.iter().zip(values).map(|(kind, value)| Content::read(kind, value));
        keys.iter().map(|key| key[prefix..].to_owned()).zip(contents).collect()
    }

    async fn keys(&self) -> Vec<String> {
        self.raw(cmd("KEYS").arg(format!("{}*", self.key("")))).await
    }

    /// The names of the keys whose content is another than in the dump; in order.
    pub(crate) async fn changes(&self, before: &Dump) -> Vec<String> {
        let after = self.dump().await;
        let mut names: Vec<String> = before.keys().chain(after.keys()).cloned().collect();
        names.sort();
        names.dedup();
        names.retain(|name| before.get(name) != after.get(name));
        names
    }

    /// Fails with what differs, if anything does.
    pub(crate) async fn assert_unchanged(&self, before: &Dump) {
        let after = self.dump().await;
        for name in before.keys().chain(after.keys()) {
            assert_eq!(before.get(name), after.get(name), "the key {name}");
        }
    }

    /// Makes the queue what the dump says.
    pub(crate) async fn restore(&self, dump: &Dump) {
        let mut writes = redis::pipe();
        for key in self.keys().await {
            writes.cmd("DEL").arg(key);
        }
        for (name, content) in dump {
            content.write(&mut writes, &self.key(name));
        }
        let _: Vec<Value> = self.raw_all(&writes).await;
    }
}
