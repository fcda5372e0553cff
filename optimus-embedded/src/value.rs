//! The values of keys.

use std::collections::VecDeque;

use indexmap::{IndexMap, IndexSet};

use crate::zset::ZSet;

pub(crate) type Bytes = Vec<u8>;
pub(crate) type Hash = IndexMap<Bytes, Bytes>;
pub(crate) type List = VecDeque<Bytes>;
pub(crate) type Set = IndexSet<Bytes>;

/// The value of a key.
#[derive(Clone, Debug)]
pub(crate) enum Data {
    String(Bytes),
    Hash(Hash),
    List(List),
    Set(Set),
    ZSet(ZSet),
}

impl Data {
    /// Returns the name that TYPE replies.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::String(_) => "string",
            Self::Hash(_) => "hash",
            Self::List(_) => "list",
            Self::Set(_) => "set",
            Self::ZSet(_) => "zset",
        }
    }

    /// Returns whether the value is empty, so that the key must be removed. An empty string does
    /// not count as empty.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::String(_) => false,
            Self::Hash(hash) => hash.is_empty(),
            Self::List(list) => list.is_empty(),
            Self::Set(set) => set.is_empty(),
            Self::ZSet(zset) => zset.is_empty(),
        }
    }
}

/// One of the types of [`Data`].
pub(crate) trait Kind: Sized {
    fn of(data: &Data) -> Option<&Self>;
    fn of_mut(data: &mut Data) -> Option<&mut Self>;
    fn wrap(self) -> Data;
}

macro_rules! kind {
    ($type:ty, $variant:ident) => {
        impl Kind for $type {
            fn of(data: &Data) -> Option<&Self> {
                if let Data::$variant(value) = data { Some(value) } else { None }
            }
            fn of_mut(data: &mut Data) -> Option<&mut Self> {
                if let Data::$variant(value) = data { Some(value) } else { None }
            }
            fn wrap(self) -> Data {
                Data::$variant(self)
            }
        }
    };
}

kind!(Bytes, String);
kind!(Hash, Hash);
kind!(List, List);
kind!(Set, Set);
kind!(ZSet, ZSet);
