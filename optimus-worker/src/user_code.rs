//! Calls of user code, which may panic: [`guarded`], [`discard`].
//!
//! Handlers, the texts of their errors, back-off functions and the drops of their values are user
//! code. User code may also block or never return, so it runs neither on the maintenance thread nor
//! while a lock is held.

use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
};

pub(crate) use optimus_core::panic_text;

/// Returns the result of the call, or the panic.
pub(crate) fn guarded<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|payload| {
        let text = panic_text(&*payload);
        discard(payload);
        text
    })
}

/// Drops a value of user code.
pub(crate) fn discard<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        // The subscriber may also panic at this event, and so may the drop of each payload.
        let log = || tracing::error!(panic = panic_text(&*payload), "the drop of a value panicked");
        catch_unwind(AssertUnwindSafe(log)).unwrap_or_else(mem::forget);
        mem::forget(payload);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::panic_any;

    use super::*;

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }

    #[test]
    fn a_panic_is_caught_even_if_the_drop_of_its_payload_panics_again() {
        assert_eq!(guarded(|| 1), Ok(1));
        assert_eq!(guarded(|| panic!("boom {}", 1)), Err::<(), _>("boom 1".to_owned()));
        let text = "a panic with a payload that is not a string";
        assert_eq!(guarded(|| panic_any(Bomb)), Err::<(), _>(text.to_owned()));
        discard(Bomb);
    }
}
