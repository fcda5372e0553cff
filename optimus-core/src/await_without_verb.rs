//! What the compiler says if a call is awaited without a verb.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{self, Poll},
};

use crate::{call::Call, task::Task};

/// A call without a verb.
#[doc(hidden)]
pub struct NotSubmitted;

/// Never implemented, so that the compiler can explain what to do if a call is awaited without a
/// verb. The bound is on another type than the call, because for the call the compiler would only
/// report that it is not a future.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a call does nothing until a verb submits it",
    label = "awaited without a verb",
    note = "to submit it, write `.perform_async().await`, `.perform_in(delay).await` or \
            `.perform_at(time).await`",
    note = "to run it here, without a queue, write `.perform_inline().await`"
)]
pub trait Awaited<T> {
    fn never() -> Poll<Infallible>;
}

#[doc(hidden)]
impl<T: Task> Future for Call<T>
where
    NotSubmitted: Awaited<T>,
{
    type Output = Infallible;

    fn poll(self: Pin<&mut Self>, _: &mut task::Context<'_>) -> Poll<Infallible> {
        <NotSubmitted as Awaited<T>>::never()
    }
}
