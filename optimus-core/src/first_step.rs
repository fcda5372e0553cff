//! What the compiler says if a step that takes a result is submitted by itself.
//!
//! The verbs of such a step exist only to explain this: each needs a trait that is never
//! implemented. Without them the compiler would say that there is no such method.

use std::{convert::Infallible, future::Ready, marker::PhantomData, time::Duration};

use chrono::{DateTime, Utc};

use crate::{
    Error,
    call::Call,
    client::{FlowHandle, GroupHandle, TaskHandle},
    control_words::BoxError,
    flow::Flow,
    group_calls::Group,
    parameter::{NoInput, Takes},
    task::Task,
};

/// What the first step of a flow may take when it is submitted: nothing.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a step with `_` can't be submitted by itself: no step before it has a result",
    label = "the first step takes a result",
    note = "give the first step all its arguments, as in `chain![reserve(order), pay(account, _)]`"
)]
pub trait Begins {}

#[diagnostic::do_not_recommend]
impl Begins for NoInput {}

/// The first step takes an `R`; never made.
#[doc(hidden)]
pub struct First<R>(Infallible, PhantomData<R>);

/// See the top of this file.
#[doc(hidden)]
impl<T: Task, R> Call<T, Takes<R>> {
    pub fn perform_async(self) -> Ready<Result<TaskHandle<T::Output>, Error>>
    where
        First<R>: Begins,
    {
        unreachable!("it does not compile")
    }

    pub fn perform_in(self, delay: Duration) -> Ready<Result<TaskHandle<T::Output>, Error>>
    where
        First<R>: Begins,
    {
        let _ = delay;
        unreachable!("it does not compile")
    }

    pub fn perform_at(self, at: DateTime<Utc>) -> Ready<Result<TaskHandle<T::Output>, Error>>
    where
        First<R>: Begins,
    {
        let _ = at;
        unreachable!("it does not compile")
    }

    pub fn perform_inline(self) -> Ready<Result<T::Output, BoxError>>
    where
        First<R>: Begins,
    {
        unreachable!("it does not compile")
    }
}

/// See the top of this file.
#[doc(hidden)]
impl<Out, R> Flow<'_, Out, Takes<R>> {
    pub fn perform_async(self) -> Ready<Result<FlowHandle<Out>, Error>>
    where
        First<R>: Begins,
    {
        unreachable!("it does not compile")
    }
}

/// See the top of this file.
#[doc(hidden)]
impl<T, R> Group<'_, T, Takes<R>> {
    pub fn perform_async(self) -> Ready<Result<GroupHandle<T>, Error>>
    where
        First<R>: Begins,
    {
        unreachable!("it does not compile")
    }
}
