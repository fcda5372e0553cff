//! Drops values of user types, whose drop may panic: [`discard`]. Wakes futures of users, whose
//! wakers may panic: [`send`].

use std::{
    any::Any,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
};

use tokio::sync::oneshot;

use crate::bounded_text::{TEXT_BYTES_MAX, cut};

/// Drops a value. A panic ends here. Its payload may panic when it is dropped, so it is leaked.
pub(crate) fn discard<T>(value: T) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        mem::forget(panic);
    }
}

/// Sends an answer to a future that a user's executor may poll. The receiver may be gone.
pub(crate) fn send<T>(sender: oneshot::Sender<T>, answer: T) {
    let wake = AssertUnwindSafe(|| drop(sender.send(answer)));
    catch_unwind(wake).unwrap_or_else(mem::forget);
}

/// Returns the text of a panic, or its beginning; for the other Optimus crates.
pub fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic with a payload that is not a string");
    cut(text, TEXT_BYTES_MAX).to_owned()
}
