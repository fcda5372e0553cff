//! What the compiler says of a step in `chain!` whose biz id, lane or `by` is made of the argument
//! that is the result of the step before it, unless the step sets that option itself.
//!
//! `chain!` calls the methods of [`Hole`] for the options that the step does not set. The methods
//! that refuse need a trait that is never implemented. For an argument that is in no template they
//! do not exist, and those of [`NotNeeded`] are called, which do nothing.

use std::marker::PhantomData;

use crate::parameter::Given;

/// The argument `N` of the task `T`, which is not known yet.
#[doc(hidden)]
#[derive(Debug)]
pub struct Hole<T, const N: usize>(PhantomData<fn() -> T>);

/// Returns the argument that is missing.
#[doc(hidden)]
pub fn hole<T, const N: usize>(_: &Given<T>) -> Hole<T, N> {
    Hole(PhantomData)
}

/// The biz id is made of the argument `N`.
#[doc(hidden)]
pub trait MakesBizId<const N: usize> {}

/// The lane is made of the argument `N`.
#[doc(hidden)]
pub trait MakesLane<const N: usize> {}

/// The key by which calls are gathered is made of the argument `N`.
#[doc(hidden)]
pub trait MakesBy<const N: usize> {}

/// What the options of `T` are made of; never made.
#[doc(hidden)]
#[derive(Debug)]
pub struct Unfilled<T>(PhantomData<fn() -> T>);

/// Never implemented; see the top of this file.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the `biz_id` of this step is made of the result of the step before it, which is not \
               known when the flow is submitted",
    label = "its `biz_id` is made of this argument",
    note = "set one on the step, as in `pay(account, _).biz_id(…)`"
)]
pub trait FillsBizId {}

/// Never implemented; see the top of this file.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the `lane` of this step is made of the result of the step before it, which is not \
               known when the flow is submitted",
    label = "its `lane` is made of this argument",
    note = "set one on the step, as in `pay(account, _).lane(…)`"
)]
pub trait FillsLane {}

/// Never implemented; see the top of this file.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the `by` of this step is made of the result of the step before it, which is not \
               known when the flow is submitted",
    label = "its `by` is made of this argument",
    note = "set one on the step, as in `store(_).by(…)`"
)]
pub trait FillsBy {}

#[doc(hidden)]
impl<T: MakesBizId<N>, const N: usize> Hole<T, N> {
    pub fn biz_id(&self)
    where
        Unfilled<T>: FillsBizId,
    {
    }
}

#[doc(hidden)]
impl<T: MakesLane<N>, const N: usize> Hole<T, N> {
    pub fn lane(&self)
    where
        Unfilled<T>: FillsLane,
    {
    }
}

#[doc(hidden)]
impl<T: MakesBy<N>, const N: usize> Hole<T, N> {
    pub fn by(&self)
    where
        Unfilled<T>: FillsBy,
    {
    }
}

/// The options that are not made of the argument.
#[doc(hidden)]
pub trait NotNeeded {
    /// The biz id does not need it.
    fn biz_id(&self) {}
    /// The lane does not need it.
    fn lane(&self) {}
    /// The key by which calls are gathered does not need it.
    fn by(&self) {}
}

impl<T, const N: usize> NotNeeded for Hole<T, N> {}
