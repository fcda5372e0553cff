//! What a worker has logged, so that it logs it once: [`LoggedOnce`].

use std::{borrow::Borrow, collections::HashSet, hash::Hash};

/// How many things are remembered. At this number, all are forgotten.
const LOGGED_MAX: usize = 10_000;

/// What was logged.
#[derive(Debug)]
pub(crate) struct LoggedOnce<T>(HashSet<T>);

impl<T> Default for LoggedOnce<T> {
    fn default() -> Self {
        Self(HashSet::new())
    }
}

impl<T: Eq + Hash> LoggedOnce<T> {
    /// Returns whether this is not logged yet. After this call, it counts as logged.
    pub(crate) fn is_new<Q: ?Sized + Eq + Hash + ToOwned<Owned = T>>(&mut self, what: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        if self.0.contains(what) {
            return false;
        }
        if self.0.len() >= LOGGED_MAX {
            self.0.clear();
        }
        self.0.insert(what.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_is_new_once_and_only_so_many_are_remembered() {
        let mut logged = LoggedOnce::default();
        assert!(logged.is_new("a") && !logged.is_new("a") && logged.is_new("b"));
        for other in 0..2 * LOGGED_MAX {
            assert!(logged.is_new(other.to_string().as_str()));
        }
        assert!(logged.0.len() <= LOGGED_MAX);
    }
}
