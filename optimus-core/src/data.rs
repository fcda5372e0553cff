//! Values that handlers get in addition to their arguments: connections, clients, configuration.

use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
    fmt,
    sync::Arc,
};

use crate::guarded_drop::discard;

/// Identifies a type that a handler wants as a `#[data]` parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataKey {
    id: TypeId,
    name: &'static str,
}

impl DataKey {
    /// Returns the key of `T`.
    pub fn of<T: 'static>() -> Self {
        Self { id: TypeId::of::<T>(), name: type_name::<T>() }
    }

    /// Returns the type's name, for messages.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

/// A value of any type.
type Shared = Arc<dyn Any + Send + Sync>;

/// A set of values, one for each type.
#[derive(Clone, Default)]
pub struct Data(HashMap<TypeId, (&'static str, Shared)>);

impl Data {
    /// Makes an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value, and replaces an earlier one of the same type.
    pub fn with<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.insert(value);
        self
    }

    /// Adds a value, and replaces an earlier one of the same type.
    pub fn insert<T: Clone + Send + Sync + 'static>(&mut self, value: T) {
        drop(self.replace(Arc::new(value)));
    }

    /// Adds a value; returns the one that it replaces.
    pub(crate) fn replace<T: Send + Sync + 'static>(&mut self, value: Arc<T>) -> Option<Shared> {
        self.0.insert(TypeId::of::<T>(), (type_name::<T>(), value)).map(|(_, before)| before)
    }

    /// Returns the value of type `T` itself.
    pub(crate) fn shared<T: 'static>(&self) -> Option<Shared> {
        self.0.get(&TypeId::of::<T>()).map(|(_, value)| value.clone())
    }

    /// Returns a clone of the value of type `T`.
    pub fn get<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.0.get(&TypeId::of::<T>())?.1.downcast_ref().cloned()
    }

    /// Returns the name of a type in the set that may be the right one: the type in another
    /// wrapper, such as `Arc`, or a type with the same last word.
    #[doc(hidden)]
    pub fn similar(&self, key: DataKey) -> Option<&'static str> {
        let names = self.0.values().map(|(name, _)| *name);
        names.filter(|name| last_word(name) == last_word(key.name)).min()
    }

    /// Returns whether the set has a value of that type.
    pub fn holds(&self, key: DataKey) -> bool {
        self.0.contains_key(&key.id)
    }
}

/// Returns the last word of the innermost type: `Db` of `alloc::sync::Arc<app::Db>`.
fn last_word(name: &str) -> &str {
    let inner = name.rsplit('<').next().unwrap_or(name).trim_end_matches('>');
    inner.rsplit("::").next().unwrap_or(inner)
}

/// The last holder may be a part of the worker, which must survive a panic in the drop of a value.
impl Drop for Data {
    fn drop(&mut self) {
        self.0.drain().for_each(|(_, value)| discard(value));
    }
}

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.values().map(|(name, _)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone)]
    struct Bomb<const N: u8>(#[expect(dead_code, reason = "dropped")] Arc<Fuse>);
    struct Fuse;

    impl Drop for Fuse {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }

    #[test]
    fn values_whose_drop_panics_are_dropped_without_a_panic() {
        let (one, other) = (Bomb::<1>(Fuse.into()), Bomb::<2>(Fuse.into()));
        let data = Data::new().with(one).with(1_u8).with(other);
        drop(data);
    }

    #[test]
    fn one_value_of_each_type_is_held_the_latest() {
        let data = Data::new().with(1_u8).with("text").with(2_u8);
        assert_eq!((data.get(), data.get()), (Some(2_u8), Some("text")));
        assert_eq!(data.get::<i64>(), None);
        assert!(data.holds(DataKey::of::<u8>()) && !data.holds(DataKey::of::<i64>()));
        assert_eq!(format!("{:?}", Data::new().with(1_u8)), "{\"u8\"}");
        assert_eq!(DataKey::of::<u8>().name(), "u8");
        let data = Data::new().with(Arc::new(DataKey::of::<u8>())).with(2_u16);
        let similar = data.similar(DataKey::of::<DataKey>()).unwrap();
        assert!(similar.contains("Arc<") && similar.contains("DataKey"), "{similar}");
        assert_eq!(data.similar(DataKey::of::<u8>()), None);
    }
}
