//! The arguments of a call, of which one may be the result of another task: [`Parameter`],
//! [`Takes`].

use std::{fmt, marker::PhantomData};

use serde::Serialize;

use crate::{call::Call, key_template::KeyTexts, part::Part, task::Task};

/// The mark of a [`Call`] that has all its arguments.
#[derive(Debug, Clone, Copy)]
pub enum NoInput {}

/// The mark of a [`Call`] or a [`Flow`](crate::Flow) that takes a result `R` as an argument.
pub struct Takes<R>(PhantomData<fn(R)>);

impl<R> Clone for Takes<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Takes<R> {}

impl<R> fmt::Debug for Takes<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Takes")
    }
}

/// The argument with the number `N` of a task. `#[task]` implements it for each argument without a
/// serde attribute that changes how it is encoded. Implement it for a type that implements [`Task`]
/// by hand, so that the argument can be the result of another task. For a step that takes a result,
/// such a type's own [`Task::biz_id`], [`Task::lane`], [`Task::by`] and [`Task::after`] are not
/// called, because they need all arguments: set these options on the step.
///
/// ```
/// # use optimus_core::{BoxError, Call, Context, Parameter, Task};
/// # use serde::{Deserialize, Serialize};
/// #[derive(Serialize, Deserialize)]
/// struct Ship { order: u64 }
///
/// impl Task for Ship {
///     const NAME: &'static str = "ship";
///     type Output = ();
///     async fn run(self, _: Context) -> Result<(), BoxError> { Ok(()) }
/// }
///
/// impl Parameter<0> for Ship {
///     const NAME: &'static str = "order";
///     type Type = u64;
/// }
///
/// fn ship(order: u64) -> Call<Ship> { Ship { order }.call() }
/// # fn reserve(order: u64) -> Call<Ship> { Ship { order }.call() }
/// # drop(ship(7));
/// ```
#[diagnostic::on_unimplemented(
    message = "this argument can't be the result of another task",
    label = "its task does not say how the argument is encoded",
    note = "`#[optimus::task]` says it for each argument without a serde attribute such as `with` \
            or `flatten`; for a type that implements `Task` by hand, implement `Parameter<{N}>`"
)]
pub trait Parameter<const N: usize>: Task {
    /// The name of the argument in the JSON object of the arguments.
    const NAME: &'static str;
    /// The type of the argument.
    type Type;

    /// Whether the definition makes its biz id, its lane or its `by` of this argument.
    #[doc(hidden)]
    const IS_IN_TEMPLATE: bool = false;

    /// Adds what this value means for the options that the definition makes of the arguments.
    #[doc(hidden)]
    fn fill(_value: &Self::Type, _texts: &mut KeyTexts) {}
}

/// The arguments of a call.
#[derive(Debug, Clone)]
pub(crate) enum Arguments<T> {
    /// All arguments.
    All(T),
    /// All but one, which is the result of another task.
    Part(Part),
}

/// The arguments of a task that are given, for the macros `chain!` and `step!`.
#[doc(hidden)]
#[derive(Debug)]
pub struct Given<T> {
    part: Part,
    task: PhantomData<fn() -> T>,
}

/// Stands for the arguments in a closure that is never called.
#[doc(hidden)]
#[derive(Debug)]
pub enum Unknown {}

impl Unknown {
    /// Stands for an argument of any type.
    pub fn argument<A>(&self) -> A {
        match *self {}
    }
}

/// Returns no arguments of the task that the closure would call. The closure is never called.
#[doc(hidden)]
pub fn none_given<T: Task>(_: impl FnOnce(Unknown) -> Call<T>) -> Given<T> {
    Given { part: Part::none_given(), task: PhantomData }
}

/// As [`none_given`], for steps that are written without a macro.
#[doc(hidden)]
pub fn given<T: Task>(call: impl FnOnce() -> Call<T>) -> Given<T> {
    none_given(|_| call())
}

impl<T: Task> Given<T> {
    /// Adds an argument; see [`give`].
    #[must_use]
    pub fn give<const N: usize>(self, value: <T as Parameter<N>>::Type) -> Self
    where
        T: Parameter<N>,
        <T as Parameter<N>>::Type: Serialize,
    {
        give(self, value)
    }

    /// Returns the call; see [`take`].
    pub fn take<const N: usize>(self) -> Call<T, Takes<<T as Parameter<N>>::Type>>
    where
        T: Parameter<N>,
    {
        take(self)
    }
}

/// Adds an argument.
#[doc(hidden)]
#[must_use]
pub fn give<T, const N: usize>(mut given: Given<T>, value: <T as Parameter<N>>::Type) -> Given<T>
where
    T: Parameter<N>,
    <T as Parameter<N>>::Type: Serialize,
{
    given.part.give::<T, N>(&value);
    drop(value);
    given
}

/// Returns the call, in which the result of another task is the last argument.
#[doc(hidden)]
pub fn take<T, const N: usize>(given: Given<T>) -> Call<T, Takes<<T as Parameter<N>>::Type>>
where
    T: Parameter<N>,
{
    Call::of(Arguments::Part(given.part.take::<T, N>()))
}
