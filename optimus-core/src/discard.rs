//! The end of values of the user's, whose drop may panic: [`discard`].

use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Drops it. A panic ends here; its payload may panic again, and is leaked.
pub(crate) fn discard<T>(value: T) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        mem::forget(panic);
    }
}
