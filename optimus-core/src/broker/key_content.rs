//! What a key of Redis holds: [`KeyContent`].

use std::fmt;

/// The type of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyKind {
    /// A string.
    Text,
    /// A list.
    List,
    /// A hash.
    Hash,
    /// A sorted set.
    Zset,
    /// A type that no queue uses, by the name that Redis gives it.
    Other(String),
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "string",
            Self::List => "list",
            Self::Hash => "hash",
            Self::Zset => "sorted set",
            Self::Other(name) => name,
        })
    }
}

/// The content of a key. It is sorted if Redis keeps it without an order.
#[derive(Clone, PartialEq, Eq)]
pub enum KeyContent {
    /// A string.
    Text(Vec<u8>),
    /// A list, in its order.
    List(Vec<Vec<u8>>),
    /// The fields and values of a hash.
    Hash(Vec<(Vec<u8>, Vec<u8>)>),
    /// The members and scores of a sorted set.
    Zset(Vec<(Vec<u8>, Vec<u8>)>),
}

impl fmt::Debug for KeyContent {
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
