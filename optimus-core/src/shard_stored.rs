//! What a crate that knows a database needs to know of a shard. The database has its fences, and
//! may have its positions, in the user's own transactions.

use std::sync::atomic::Ordering;

use serde::Serialize;

use crate::{
    Error,
    shard::{POSITION_MAX, Shard, lock},
};

#[doc(hidden)]
impl Shard {
    /// Returns the generation with which an operator has begun the last pass, if one has.
    pub fn restarted(&self) -> Option<u64> {
        self.facts.progress.before.restarted
    }

    /// Returns whether the present holder of the shard has passed the guard of its generation.
    pub fn was_guarded(&self) -> bool {
        self.facts.progress.is_guarded.load(Ordering::Relaxed)
    }

    /// Takes in the positions that the database has: that of this shard, or those of the
    /// generation before, of which the smallest one counts.
    pub fn note_guarded(&self, positions: Vec<String>) {
        self.facts.progress.is_guarded.store(true, Ordering::Relaxed);
        *lock(&self.facts.progress.stored) = positions;
    }

    /// Returns the namespace of the worker that holds the shard; empty without a worker.
    pub fn namespace(&self) -> &str {
        self.facts.holder.as_ref().map_or("", |(broker, _)| broker.namespace())
    }

    /// Returns the name that the last guard of this holder has found for the function.
    pub fn name_there(&self) -> Option<String> {
        lock(&self.facts.progress.name_there).clone()
    }

    /// Notes the name that the database has for the function.
    pub fn note_name_there(&self, name: &str) {
        *lock(&self.facts.progress.name_there) = Some(name.to_owned());
    }

    /// Writes a position as it is stored.
    ///
    /// # Errors
    /// [`Error::is_invalid`] if the value is no JSON or above 64 KiB.
    pub fn position_text<T: Serialize>(position: &T) -> Result<String, Error> {
        let text = serde_json::to_string(position).map_err(|problem| {
            Error::invalid(format!("the position can't be written as JSON: {problem}"))
        })?;
        if text.len() > POSITION_MAX {
            return Err(Error::invalid(format!(
                "the position takes {} bytes; the limit is {POSITION_MAX}; store the key of the \
                 last row only",
                text.len()
            )));
        }
        Ok(text)
    }
}
