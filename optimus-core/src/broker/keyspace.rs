//! Reads whole keys of a slot: which keys there are, of which types, and what they hold.
//!
//! A slot is a queue, or another set of keys with one tag, such as `@fleet`. No worker uses these
//! reads, and they need commands that no worker needs; see [`PERMISSIONS`].

use std::collections::BTreeMap;

use redis::{Cmd, Value};

use super::{
    Broker, BrokerError,
    inspect::{get, texts},
    key_content::{KeyContent, KeyKind},
    keys::Keys,
    reply,
};
use crate::id::{QueueName, validate_name};

/// The permissions that these reads need besides those of a worker.
const PERMISSIONS: &str = "+scan +type +pttl +memory|usage +zscan +multi +exec";

/// How many names Redis looks at in one step of a scan.
const SCAN_STEP: &str = "1000";
/// How many keys are measured in one write.
const MEASURED_AT_ONCE: usize = 256;
/// How many entries of a key are read in one step.
const PAGE: usize = 256;

/// What Redis says of a key without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFacts {
    /// The type of the key.
    pub kind: KeyKind,
    /// The ms after which the key expires; -1 if it does not expire.
    pub left_ms: i64,
    /// About how many bytes of memory the key takes.
    pub bytes: u64,
}

/// A page of the keys of a namespace: slot and name of each, and the cursor of the next page.
pub type ScannedKeys = (Vec<(String, String)>, Option<String>);

/// The content of a key and the ms after which it expires; `None` if the key does not exist, or has
/// another type.
pub type ReadKey = Option<(KeyContent, i64)>;

impl Broker {
    /// Reads the names of some keys of the namespace, or of one slot. A key that is there during
    /// all pages is on one of them, and may be on several.
    pub async fn scan_keys(
        &self,
        slot: Option<&str>,
        cursor: Option<&str>,
    ) -> Result<ScannedKeys, BrokerError> {
        let begin = format!("{{{}:", self.namespace());
        let own = slot.map_or_else(|| "*".to_owned(), escaped);
        let pattern = format!("{}{own}:0}}:*", escaped(&begin));
        let scan = ["SCAN", cursor.unwrap_or("0"), "MATCH", &pattern, "COUNT", SCAN_STEP];
        let (next, keys) = page("SCAN", self.read_one(get(&scan)).await.map_err(with_advice)?)?;
        let names = keys.iter().filter_map(|key| {
            let key = String::from_utf8_lossy(key);
            let (slot, name) = key.strip_prefix(&begin)?.split_once(":0}:")?;
            Some((slot.to_owned(), name.to_owned()))
        });
        Ok((names.collect(), next))
    }

    /// Reads the names of some queues of all namespaces of the database: namespace and queue of
    /// each. A queue with a task or a worker is on a page; one may be on several.
    pub async fn scan_namespaces(&self, cursor: Option<&str>) -> Result<ScannedKeys, BrokerError> {
        // A queue with a task has `tasks`, and one with a worker has `meta`.
        let scan = ["SCAN", cursor.unwrap_or("0"), "MATCH", "{*:0}:[mt]*", "COUNT", SCAN_STEP];
        let (next, keys) = page("SCAN", self.read_one(get(&scan)).await.map_err(may_scan)?)?;
        let names = keys.iter().filter_map(|key| {
            let key = String::from_utf8_lossy(key);
            let (slot, name) = key.strip_prefix('{')?.split_once(":0}:")?;
            matches!(name, "meta" | "tasks").then_some(())?;
            let (namespace, queue) = slot.split_once(':')?;
            validate_name(namespace).and(validate_name(queue.trim_start_matches('@'))).ok()?;
            Some((namespace.to_owned(), queue.to_owned()))
        });
        Ok((names.collect(), next))
    }

    /// Counts the keys of the database.
    pub async fn count_keys(&self) -> Result<u64, BrokerError> {
        match self.read_one(get(&["DBSIZE"])).await.map_err(may_scan)? {
            Value::Int(count) => Ok(u64::try_from(count).unwrap_or(0)),
            other => Err(BrokerError::UnexpectedReply(format!("DBSIZE answered {other:?}"))),
        }
    }

    /// Returns the facts of each of these keys of a slot; `None` for a key that does not exist.
    pub async fn key_facts(
        &self,
        slot: &str,
        names: &[String],
    ) -> Result<Vec<Option<KeyFacts>>, BrokerError> {
        let keys = self.slot_keys(slot);
        let mut facts = Vec::with_capacity(names.len());
        for some in names.chunks(MEASURED_AT_ONCE) {
            let measure = |name: &String| {
                let key = keys.of(name);
                [get(&["TYPE", &key]), get(&["PTTL", &key]), get(&["MEMORY", "USAGE", &key])]
            };
            let answers = self.read(some.iter().flat_map(measure).collect()).await;
            let answers: Result<Vec<Value>, _> = answers.into_iter().collect();
            for answer in answers.map_err(with_advice)?.chunks_exact(3) {
                facts.push(facts_of(answer)?);
            }
        }
        Ok(facts)
    }

    /// Reads keys of a slot at one moment. Redis does nothing else meanwhile, so the keys must be
    /// small. A key of another type than that is left out.
    pub async fn read_keys_at_once(
        &self,
        slot: &str,
        names: &[(String, KeyKind)],
    ) -> Result<Vec<ReadKey>, BrokerError> {
        let keys = self.slot_keys(slot);
        let reads = names.iter().flat_map(|(name, kind)| {
            let key = keys.of(name);
            [read_whole(&key, kind), get(&["PTTL", &key])]
        });
        let commands = std::iter::once(get(&["MULTI"])).chain(reads);
        let commands: Vec<Cmd> = commands.chain([get(&["EXEC"])]).collect();
        // A command that is refused before `EXEC` says why; `EXEC` does not.
        let answers: Result<Vec<Value>, _> = self.read(commands).await.into_iter().collect();
        let Some(Value::Array(values)) = answers.map_err(with_advice)?.pop() else {
            return Err(BrokerError::UnexpectedReply("EXEC answered without a list".to_owned()));
        };
        let pairs = names.iter().zip(values.chunks_exact(2));
        pairs.map(|((_, kind), pair)| content_and_expiry(kind, pair)).collect()
    }

    /// Reads a key of a slot in short steps, between which the key may change.
    pub async fn read_key(
        &self,
        slot: &str,
        name: &str,
        kind: &KeyKind,
    ) -> Result<ReadKey, BrokerError> {
        let key = self.slot_keys(slot).of(name);
        let content = match kind {
            KeyKind::List => self.read_list_in_pages(&key).await,
            KeyKind::Hash => self.read_pairs("HSCAN", &key).await.map(KeyContent::Hash),
            KeyKind::Zset => self.read_pairs("ZSCAN", &key).await.map(KeyContent::Zset),
            _ => {
                return Ok(self
                    .read_keys_at_once(slot, &[(name.to_owned(), kind.clone())])
                    .await?
                    .pop()
                    .flatten());
            }
        };
        let left = self.read_one(get(&["PTTL", &key])).await.map_err(with_advice)?;
        match content {
            Err(BrokerError::Rejected(why)) if why.starts_with("WRONGTYPE") => Ok(None),
            content => Ok(Some((content?, whole(&left))).filter(|(_, left)| *left != GONE)),
        }
    }

    /// Reads a list from its end, because entries leave at its start: so none is passed over.
    async fn read_list_in_pages(&self, key: &str) -> Result<KeyContent, BrokerError> {
        let (mut pages, mut end) = (Vec::new(), 0);
        loop {
            let (from, to) = (format!("-{}", end + PAGE), format!("-{}", end + 1));
            let page = self.read_one(get(&["LRANGE", key, &from, &to])).await?;
            let page = reply::plain_list("LRANGE", page)?;
            let is_last = page.len() < PAGE;
            pages.push(page);
            if is_last {
                return Ok(KeyContent::List(pages.into_iter().rev().flatten().collect()));
            }
            end += PAGE;
        }
    }

    async fn read_pairs(
        &self,
        command: &'static str,
        key: &str,
    ) -> Result<Vec<(Vec<u8>, Vec<u8>)>, BrokerError> {
        let (mut all, mut cursor) = (BTreeMap::new(), "0".to_owned());
        let step = PAGE.to_string();
        loop {
            let scan = get(&[command, key, &cursor, "COUNT", &step]);
            let (next, items) = page(command, self.read_one(scan).await.map_err(with_advice)?)?;
            all.extend(pairs(items));
            match next {
                Some(next) => cursor = next,
                None => return Ok(all.into_iter().collect()),
            }
        }
    }

    /// Returns the whole name of a key of a slot, as Redis knows it.
    pub fn key_name(&self, slot: &str, name: &str) -> String {
        self.slot_keys(slot).of(name)
    }

    /// Returns the name of the key with the list of queues.
    pub fn queues_key(&self) -> String {
        super::keys::queues(&self.namespace)
    }

    fn slot_keys(&self, slot: &str) -> Keys {
        self.keys(&QueueName::of_slot(slot))
    }
}

/// What `PTTL` answers if there is no key.
const GONE: i64 = -2;

fn facts_of(answers: &[Value]) -> Result<Option<KeyFacts>, BrokerError> {
    let [kind, left, bytes] = answers else { return Ok(None) };
    let kind = reply::plain_bytes("TYPE", kind.clone())?.unwrap_or_default();
    let kind = match kind.as_slice() {
        b"none" => return Ok(None),
        b"string" => KeyKind::Text,
        b"list" => KeyKind::List,
        b"hash" => KeyKind::Hash,
        b"zset" => KeyKind::Zset,
        other => KeyKind::Other(String::from_utf8_lossy(other).into_owned()),
    };
    let bytes = u64::try_from(whole(bytes)).unwrap_or(0);
    Ok(Some(KeyFacts { kind, left_ms: whole(left), bytes }).filter(|facts| facts.left_ms != GONE))
}

fn read_whole(key: &str, kind: &KeyKind) -> Cmd {
    match kind {
        KeyKind::List => get(&["LRANGE", key, "0", "-1"]),
        KeyKind::Hash => get(&["HGETALL", key]),
        KeyKind::Zset => get(&["ZRANGE", key, "0", "-1", "WITHSCORES"]),
        KeyKind::Text | KeyKind::Other(_) => get(&["GET", key]),
    }
}

fn content_and_expiry(kind: &KeyKind, answers: &[Value]) -> Result<ReadKey, BrokerError> {
    let [content, left] = answers else { return Ok(None) };
    let left = whole(left);
    if left == GONE || matches!(content, Value::ServerError(_)) {
        return Ok(None);
    }
    let content = content.clone();
    let content = match kind {
        KeyKind::List => KeyContent::List(reply::plain_list("LRANGE", content)?),
        KeyKind::Hash => KeyContent::Hash(sorted(reply::plain_list("HGETALL", content)?)),
        KeyKind::Zset => KeyContent::Zset(sorted(reply::plain_list("ZRANGE", content)?)),
        KeyKind::Text | KeyKind::Other(_) => {
            KeyContent::Text(reply::plain_bytes("GET", content)?.unwrap_or_default())
        }
    };
    Ok(Some((content, left)))
}

/// Reads the answer of a scan: the next cursor, if there is one, and the items.
fn page(
    command: &'static str,
    answer: Value,
) -> Result<(Option<String>, Vec<Vec<u8>>), BrokerError> {
    match answer {
        Value::Array(parts) if parts.len() == 2 => {
            let mut parts = parts.into_iter();
            let cursor = texts(command, Value::Array(parts.next().into_iter().collect()))?;
            let items = reply::plain_list(command, parts.next().unwrap_or(Value::Nil))?;
            Ok((cursor.into_iter().next().filter(|cursor| cursor != "0"), items))
        }
        other => Err(BrokerError::UnexpectedReply(format!("{command} answered {other:?}"))),
    }
}

fn sorted(items: Vec<Vec<u8>>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all: Vec<_> = pairs(items).collect();
    all.sort();
    all
}

fn pairs(items: Vec<Vec<u8>>) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    let mut items = items.into_iter();
    std::iter::from_fn(move || Some((items.next()?, items.next()?)))
}

fn whole(value: &Value) -> i64 {
    match value {
        Value::Int(number) => *number,
        _ => 0,
    }
}

/// Returns the text as a pattern that matches only this text.
fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if ['*', '?', '[', ']', '\\', '^'].contains(&c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// Names the permissions that are missing.
fn may_scan(problem: BrokerError) -> BrokerError {
    match problem {
        BrokerError::Rejected(why) if why.starts_with("NOPERM") => BrokerError::Denied(format!(
            "the Redis user may not read the names of keys; add to its ACL: +scan +dbsize ({why})"
        )),
        problem => problem,
    }
}

/// Names the permissions that are missing.
fn with_advice(problem: BrokerError) -> BrokerError {
    match problem {
        BrokerError::Rejected(why) if why.starts_with("NOPERM") => BrokerError::Denied(format!(
            "the Redis user may not read whole queues; add to its ACL: {PERMISSIONS} ({why})"
        )),
        problem => problem,
    }
}
