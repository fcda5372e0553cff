//! What the compiler says if a call, a flow, a group or a handle is awaited without a verb.
//!
//! Each of these types is a future only if a trait holds that is never implemented, so that the
//! compiler explains what to do. The bound is on another type than the one that is awaited, because
//! for that one the compiler would only report that it is not a future.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{self, Poll},
};

use crate::{
    call::Call,
    call_submit::ErasedCall,
    client::{FlowHandle, GroupHandle, TaskHandle},
    flow::Flow,
    group_calls::Group,
    task::Task,
};

/// What a verb has not submitted.
#[doc(hidden)]
pub struct NotSubmitted;

/// What was submitted, and is not awaited by itself.
#[doc(hidden)]
pub struct NotAFuture;

/// Never implemented; see the top of this file.
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

/// Never implemented; see the top of this file.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a call of any task does nothing until a client submits it",
    label = "awaited without a verb",
    note = "to submit it, write `client.submit(call).await`, or `client.submit_all(calls).await`"
)]
pub trait AwaitedErased<T> {
    fn never() -> Poll<Infallible>;
}

/// Never implemented; see the top of this file.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a flow does nothing until a verb submits it",
    label = "awaited without a verb",
    note = "to submit it, write `.perform_async().await` or `client.submit_flow(flow).await`; then \
            `.result().await` waits for its end"
)]
pub trait AwaitedFlow<T> {
    fn never() -> Poll<Infallible>;
}

/// Never implemented; see the top of this file.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a group does nothing until a verb submits it",
    label = "awaited without a verb",
    note = "to submit it, write `.perform_async().await` or `client.submit_group(group).await`; \
            then `.results().await` waits for the ends of its members"
)]
pub trait AwaitedGroup<T> {
    fn never() -> Poll<Infallible>;
}

/// Never implemented; see the top of this file.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a handle is not a future",
    label = "awaited without a verb",
    note = "to wait for the end, write `.result().await`, or `.result_within(timeout).await`"
)]
pub trait AwaitedHandle<T> {
    fn never() -> Poll<Infallible>;
}

/// Never implemented; see the top of this file.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a handle is not a future",
    label = "awaited without a verb",
    note = "to wait for the ends of the members, write `.results().await`; `.ends().await` reads \
            many results in pages"
)]
pub trait AwaitedGroupHandle<T> {
    fn never() -> Poll<Infallible>;
}

macro_rules! never_a_future {
    ($([$($generics:tt)*] $type:ty: $by:ty: $awaited:ident<$of:ty>;)*) => {
        $(#[doc(hidden)]
        impl<$($generics)*> Future for $type
        where
            $by: $awaited<$of>,
        {
            type Output = Infallible;

            fn poll(self: Pin<&mut Self>, _: &mut task::Context<'_>) -> Poll<Infallible> {
                <$by as $awaited<$of>>::never()
            }
        })*
    };
}

never_a_future! {
    [T: Task, In] Call<T, In>: NotSubmitted: Awaited<(T, In)>;
    [Out, In] Flow<'_, Out, In>: NotSubmitted: AwaitedFlow<(Out, In)>;
    [T, In] Group<'_, T, In>: NotSubmitted: AwaitedGroup<(T, In)>;
    [T] TaskHandle<T>: NotAFuture: AwaitedHandle<T>;
    [T] FlowHandle<T>: NotAFuture: AwaitedHandle<T>;
    [T] GroupHandle<T>: NotAFuture: AwaitedGroupHandle<T>;
}

#[doc(hidden)]
impl Future for ErasedCall
where
    for<'a> NotSubmitted: AwaitedErased<&'a ()>,
{
    type Output = Infallible;

    fn poll(self: Pin<&mut Self>, _: &mut task::Context<'_>) -> Poll<Infallible> {
        <NotSubmitted as AwaitedErased<&()>>::never()
    }
}
