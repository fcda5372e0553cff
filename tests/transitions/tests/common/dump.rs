//! All data of a queue, to compare and to restore.

pub(crate) use optimus_fsck::{Content, Dump};
use redis::{Pipeline, Value, cmd, from_redis_value};

use crate::bench::Bench;

impl Bench {
    /// Problems of the queue, including the lifetimes of its keys, which are not in a dump.
    pub(crate) async fn fsck(&self) -> Vec<String> {
        let dump = self.dump().await;
        let lifetimes = optimus_fsck::check_lifetimes(&dump, &self.lifetimes(&dump).await);
        let wrong = optimus_fsck::check(&dump).into_iter().chain(lifetimes);
        wrong.map(|wrong| wrong.text).collect()
    }

    /// Problems of the queue except those of ledgers, which these tests do not keep.
    pub(crate) async fn fsck_of_tasks(&self) -> Vec<String> {
        let mut wrong = self.fsck().await;
        wrong.retain(|wrong| !wrong.starts_with("the ledger of"));
        wrong
    }

    /// Returns how many ms each key has left; -1 for a key without expiry.
    async fn lifetimes(&self, dump: &Dump) -> Vec<i64> {
        let mut reads = redis::pipe();
        for name in dump.keys() {
            reads.cmd("PTTL").arg(self.key(name));
        }
        self.raw_all(&reads).await
    }

    /// Returns every key with its content.
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
        let contents = kinds.iter().zip(values).map(|(kind, value)| read(kind, value));
        keys.iter().map(|key| key[prefix..].to_owned()).zip(contents).collect()
    }

    async fn keys(&self) -> Vec<String> {
        self.raw(cmd("KEYS").arg(format!("{}*", self.key("")))).await
    }

    /// Returns the names of the keys whose content differs from the dump; in order.
    pub(crate) async fn changes(&self, before: &Dump) -> Vec<String> {
        let after = self.dump().await;
        let mut names: Vec<String> = before.keys().chain(after.keys()).cloned().collect();
        names.sort();
        names.dedup();
        names.retain(|name| before.get(name) != after.get(name) && !is_operation(name));
        names
    }

    /// Fails with the difference, if there is one.
    pub(crate) async fn assert_unchanged(&self, before: &Dump) {
        let after = self.dump().await;
        for name in before.keys().chain(after.keys()) {
            assert_eq!(before.get(name), after.get(name), "the key {name}");
        }
    }

    /// Restores the queue to the dump.
    pub(crate) async fn restore(&self, dump: &Dump) {
        let mut writes = redis::pipe();
        for key in self.keys().await {
            writes.cmd("DEL").arg(key);
        }
        for (name, content) in dump {
            write(content, &mut writes, &self.key(name));
        }
        let _: Vec<Value> = self.raw_all(&writes).await;
    }
}

fn read(kind: &str, value: Value) -> Content {
    let sorted = |value| {
        let mut pairs: Vec<(Vec<u8>, Vec<u8>)> =
            from_redis_value(value).expect("hashes and zsets are pairs");
        pairs.sort();
        pairs
    };
    match kind {
        "string" => Content::Text(from_redis_value(value).expect("a string is bytes")),
        "list" => Content::List(from_redis_value(value).expect("a list is of bytes")),
        "hash" => Content::Hash(sorted(value)),
        _ => Content::Zset(sorted(value)),
    }
}

fn write(content: &Content, pipeline: &mut Pipeline, key: &str) {
    match content {
        Content::Text(text) => pipeline.cmd("SET").arg(key).arg(text),
        Content::List(items) => pipeline.cmd("RPUSH").arg(key).arg(items),
        Content::Hash(fields) => pipeline.cmd("HSET").arg(key).arg(fields),
        Content::Zset(members) => {
            let scored: Vec<_> = members.iter().map(|(member, score)| (score, member)).collect();
            pipeline.cmd("ZADD").arg(key).arg(scored)
        }
    };
}

/// Returns the key of a requeue that was done, with a name that tests do not know. It expires.
pub(crate) fn is_operation(name: &str) -> bool {
    name.starts_with("requeued:") && name != "requeued:again"
}
