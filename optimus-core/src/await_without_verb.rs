//! What the compiler says if a call, a flow, a group or a handle is awaited without a verb.
//!
//! Each of these types is a future only if a trait holds that is never implemented, so that the
//! compiler explains what to do. The bound is on a tuple of the type that is awaited, because for
//! the type itself the compiler would only report that it is not a future. The future returns what
//! the verb would, so that the compiler reports no second error at a `?`.

use std::{
    pin::Pin,
    task::{self, Poll},
};

use serde_json::Value;

use crate::{
    Error,
    call::Call,
    call_submit::ErasedCall,
    client::{FlowHandle, GroupHandle, TaskHandle},
    flow::Flow,
    group_calls::Group,
    task::Task,
};

/// Never implemented; see the top of this file.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a call does nothing until a verb submits it",
    label = "awaited without a verb",
    note = "to submit it, write `.perform_async().await`, `.perform_in(delay).await` or \
            `.perform_at(time).await`",
    note = "to run it here, without a queue, write `.perform_inline().await`"
)]
pub trait Awaited {
    fn never<T>() -> Poll<T>;
}

/// Never implemented; see the top of this file.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a call of any task does nothing until a client submits it",
    label = "awaited without a verb",
    note = "to submit it, write `client.submit(call).await`, or `client.submit_all(calls).await`"
)]
pub trait AwaitedErased {
    fn never<T>() -> Poll<T>;
}

/// Never implemented; see the top of this file.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a flow does nothing until a verb submits it",
    label = "awaited without a verb",
    note = "to submit it, write `.perform_async().await` or `client.submit_flow(flow).await`; then \
            `.result().await` waits for its end"
)]
pub trait AwaitedFlow {
    fn never<T>() -> Poll<T>;
}

/// Never implemented; see the top of this file.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a group does nothing until a verb submits it",
    label = "awaited without a verb",
    note = "to submit it, write `.perform_async().await` or `client.submit_group(group).await`; \
            then `.results().await` waits for the ends of its members"
)]
pub trait AwaitedGroup {
    fn never<T>() -> Poll<T>;
}

/// Never implemented; see the top of this file.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a handle is not a future",
    label = "awaited without a verb",
    note = "to wait for the end, write `.result().await`, or `.result_within(timeout).await`"
)]
pub trait AwaitedHandle {
    fn never<T>() -> Poll<T>;
}

/// Never implemented; see the top of this file.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a handle is not a future",
    label = "awaited without a verb",
    note = "to wait for the ends of the members, write `.results().await`; `.ends().await` reads \
            many results in pages"
)]
pub trait AwaitedGroupHandle {
    fn never<T>() -> Poll<T>;
}

macro_rules! never_a_future {
    ($([$($generics:tt)*] $type:ty: $awaited:ident => $output:ty;)*) => {
        $(#[doc(hidden)]
        impl<$($generics)*> Future for $type
        where
            ($type,): $awaited,
        {
            type Output = Result<$output, Error>;

            fn poll(self: Pin<&mut Self>, _: &mut task::Context<'_>) -> Poll<Self::Output> {
                <($type,) as $awaited>::never()
            }
        })*
    };
}

never_a_future! {
    [T: Task, In] Call<T, In>: Awaited => TaskHandle<T::Output>;
    ['a, Out, In] Flow<'a, Out, In>: AwaitedFlow => FlowHandle<Out>;
    ['a, T, In] Group<'a, T, In>: AwaitedGroup => GroupHandle<T>;
    [T] TaskHandle<T>: AwaitedHandle => T;
    [T] FlowHandle<T>: AwaitedHandle => T;
    [T] GroupHandle<T>: AwaitedGroupHandle => Vec<T>;
}

// The compiler checks a bound without parameters and lifetimes early.
#[doc(hidden)]
impl Future for ErasedCall
where
    for<'a> (&'a ErasedCall,): AwaitedErased,
{
    type Output = Result<TaskHandle<Value>, Error>;

    fn poll(self: Pin<&mut Self>, _: &mut task::Context<'_>) -> Poll<Self::Output> {
        <(&ErasedCall,) as AwaitedErased>::never()
    }
}
