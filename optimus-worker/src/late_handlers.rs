//! Handlers that go on although their attempts have timed out: [`LateHandlers`].

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::attempts::Attempt;

/// The attempts that have ended because of their timeout, while their handlers block a thread and
/// so can't be dropped. The executor of such an attempt keeps it until its handler ends, and the
/// report and the log of its end may keep it for some moments more.
#[derive(Debug, Default)]
pub(crate) struct LateHandlers(Mutex<Vec<Weak<Attempt>>>);

impl LateHandlers {
    pub(crate) fn add(&self, attempt: &Arc<Attempt>) {
        let mut late = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        late.retain(|attempt| attempt.strong_count() > 0);
        late.push(Arc::downgrade(attempt));
    }

    /// Returns the attempts that somebody keeps.
    pub(crate) fn all(&self) -> Vec<Arc<Attempt>> {
        let mut late = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        late.retain(|attempt| attempt.strong_count() > 0);
        late.iter().filter_map(Weak::upgrade).collect()
    }
}
