//! The parts of `once` that an attempt has run: [`Claim`].

use std::{
    any::Any,
    ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use optimus_core::Context;
use sqlx::Pool;

use crate::{Error, OutboxDb};

/// The parts of an attempt, each with the options of its pool, by which pools are told apart.
#[derive(Clone, Default)]
struct Parts(Arc<Mutex<Vec<Part>>>);

type Part = (String, Arc<dyn Any + Send + Sync>);

/// A part that this attempt runs. Unless it is kept, the attempt may run it again.
pub(crate) struct Claim {
    parts: Parts,
    part: Option<Part>,
}

impl Claim {
    /// Claims a part of this attempt in a database.
    pub(crate) fn of<DB: OutboxDb>(
        ctx: &Context,
        name: &str,
        pool: &Pool<DB>,
    ) -> Result<Self, Error> {
        let parts = ctx.data::<Parts>().unwrap_or_else(|| {
            ctx.insert(Parts::default());
            ctx.data().unwrap_or_default()
        });
        let part: Part = (name.to_owned(), pool.connect_options());
        let mut taken = parts.lock();
        if taken.iter().any(|one| is_same(one, &part)) {
            return Err(Error::SamePart { part: part.0 });
        }
        taken.push(part.clone());
        drop(taken);
        Ok(Self { parts, part: Some(part) })
    }

    /// Keeps the part until the end of the attempt, because it is applied.
    pub(crate) fn keep(mut self) {
        self.part = None;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(part) = self.part.take() {
            self.parts.lock().retain(|one| !is_same(one, &part));
        }
    }
}

impl Parts {
    fn lock(&self) -> MutexGuard<'_, Vec<Part>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_same(one: &Part, other: &Part) -> bool {
    one.0 == other.0 && ptr::addr_eq(Arc::as_ptr(&one.1), Arc::as_ptr(&other.1))
}
