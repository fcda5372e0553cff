//! The values of one attempt, in addition to those of its worker: [`Values`].

use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::data::Data;

/// The values of one attempt. The set allocates nothing before the first value. User code (a clone,
/// a drop) runs without the lock.
#[derive(Debug, Default)]
pub(crate) struct Values(Mutex<Held>);

#[derive(Debug, Default)]
enum Held {
    #[default]
    Nothing,
    Values(Data),
    /// The attempt is over.
    Taken,
}

impl Values {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a value, and replaces an earlier one of the same type. If the attempt is over, the
    /// value is dropped at once.
    pub(crate) fn insert<T: Clone + Send + Sync + 'static>(&self, value: T) {
        let value = Arc::new(value);
        let mut held = self.held();
        if matches!(*held, Held::Nothing) {
            *held = Held::Values(Data::new());
        }
        let unused = match &mut *held {
            Held::Values(values) => values.replace(value),
            Held::Nothing | Held::Taken => Some(value as _),
        };
        drop(held);
        drop(unused);
    }

    /// Returns a clone of the value of type `T`.
    pub(crate) fn get<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        let value = match &*self.held() {
            Held::Values(values) => values.shared::<T>(),
            Held::Nothing | Held::Taken => None,
        };
        let value = value?;
        value.downcast_ref().cloned()
    }

    /// Takes the values out, because the attempt is over.
    pub(crate) fn take(&self) -> Option<Data> {
        match mem::replace(&mut *self.held(), Held::Taken) {
            Held::Values(values) => Some(values),
            Held::Nothing | Held::Taken => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_held_by_type_until_they_are_taken() {
        let (values, counted) = (Values::default(), Arc::new(()));
        assert_eq!(values.get::<u8>(), None);
        values.insert(1_u8);
        values.insert(2_u8);
        values.insert(counted.clone());
        assert_eq!((values.get(), values.get::<u16>()), (Some(2_u8), None));
        assert_eq!(Arc::strong_count(&counted), 2);
        drop(values.take().unwrap());
        assert_eq!((values.get::<u8>(), Arc::strong_count(&counted)), (None, 1));
        values.insert(counted.clone());
        assert_eq!(Arc::strong_count(&counted), 1);
    }
}
