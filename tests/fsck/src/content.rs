//! The whole content of a queue at one moment: [`Dump`].

use std::{collections::BTreeMap, fmt};

/// Every key of the queue, without their common prefix, and its content.
pub type Dump = BTreeMap<String, Content>;

/// The content of a key. It is sorted if Redis keeps it without an order.
#[derive(Clone, PartialEq, Eq)]
pub enum Content {
    /// A string.
    Text(Vec<u8>),
    /// A list, in its order.
    List(Vec<Vec<u8>>),
    /// The fields and values of a hash.
    Hash(Vec<(Vec<u8>, Vec<u8>)>),
    /// The members and scores of a sorted set.
    Zset(Vec<(Vec<u8>, Vec<u8>)>),
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
