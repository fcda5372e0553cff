//! What can follow a step of a flow: [`Step`], [`IntoFlow`].

use std::any::type_name;

use crate::{
    call::Call,
    call_submit::ErasedCall,
    flow::{Flow, Stage, StepTask},
    group_calls::Group,
    group_results::GroupResults,
    parameter::{Arguments, NoInput, Parameter, Takes},
    part::{Part, TASK_TYPE_PREFIX},
    task::Task,
};

/// How the text of a result becomes an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub enum Form {
    /// As it is.
    Same,
    /// The results of all members of a group, in a list.
    AllMembers,
}

/// A type of argument that can be made of a result `R`: the same type, and `Vec<T>` after a group.
#[doc(hidden)]
pub trait MadeOf<R> {
    /// How it is made.
    const FORM: Form;
}

impl<R> MadeOf<R> for R {
    const FORM: Form = Form::Same;
}

impl<T> MadeOf<GroupResults<T>> for Vec<T> {
    const FORM: Form = Form::AllMembers;
}

/// What a call or a flow takes from the step before it: nothing ([`NoInput`]) or its result
/// ([`Takes`]).
#[doc(hidden)]
pub trait Accepts<R> {
    /// How the argument is made of the result.
    const FORM: Form;
}

impl<R> Accepts<R> for NoInput {
    const FORM: Form = Form::Same;
}

impl<R, P: MadeOf<R>> Accepts<R> for Takes<P> {
    const FORM: Form = P::FORM;
}

/// Types that are a flow of their own: a [`Call`], an [`ErasedCall`], a [`Group`] and a [`Flow`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a call, a group or a flow",
    label = "not a call",
    note = "a flow begins with a call, such as `reserve(order)`; a function that takes a result, \
            such as `pay`, comes after it",
    note = "the members of a group are calls, too: `group(orders.into_iter().map(reserve))`"
)]
pub trait IntoFlow<'a> {
    /// The result of the last step.
    type Output;
    /// What the first step takes.
    type Input;
    /// Returns the flow.
    fn into_flow(self) -> Flow<'a, Self::Output, Self::Input>;
}

#[diagnostic::do_not_recommend]
impl<'a, T: Task, In> IntoFlow<'a> for Call<T, In> {
    type Output = T::Output;
    type Input = In;
    fn into_flow(self) -> Flow<'a, T::Output, In> {
        Flow::of(vec![Stage::Task(Box::new(StepTask::of(&self)))])
    }
}

#[diagnostic::do_not_recommend]
impl<'a> IntoFlow<'a> for ErasedCall {
    type Output = serde_json::Value;
    type Input = NoInput;
    fn into_flow(self) -> Flow<'a, serde_json::Value> {
        Flow::of(vec![Stage::Task(Box::new(StepTask::made(self.0)))])
    }
}

#[diagnostic::do_not_recommend]
impl<'a, T, In> IntoFlow<'a> for Group<'a, T, In> {
    type Output = GroupResults<T>;
    type Input = In;
    fn into_flow(self) -> Flow<'a, GroupResults<T>, In> {
        Flow::of(vec![Stage::Group(Box::new(self.erase()))])
    }
}

#[diagnostic::do_not_recommend]
impl<'a, Out, In> IntoFlow<'a> for Flow<'a, Out, In> {
    type Output = Out;
    type Input = In;
    fn into_flow(self) -> Self {
        self
    }
}

/// Returns the flow of a first step.
#[doc(hidden)]
pub fn first<'a, C, Out, In>(call: C) -> Flow<'a, Out, In>
where
    C: IntoFlow<'a, Output = Out, Input = In>,
{
    call.into_flow()
}

/// The mark of a step that is a function of the type `P`.
#[doc(hidden)]
#[derive(Debug)]
pub enum ByFunction<P> {
    /// Never made.
    Never(std::convert::Infallible, P),
}

/// The mark of a step that is a call, a group or a flow.
#[doc(hidden)]
#[derive(Debug)]
pub enum ByValue {}

/// Types that can follow a step that returns `R`:
///
/// - a task function whose only argument is an `R`, such as `pay`;
/// - `step!(pay(account, _))`, where the result is the argument `_`;
/// - a whole call, such as `notify("x")`, which only waits for the step;
/// - a [`Group`] or a [`Flow`].
///
/// After a group, the function takes a `Vec` of the results, or a [`GroupResults`].
///
/// A function whose definition makes its biz id, its lane or its `by` of the argument is refused:
/// they are needed before the result is known. Write the call with `_`, and set the option on it.
///
/// ```compile_fail,E0080
/// # use optimus_core::{BoxError, Call, Context, Parameter, Task};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # struct Ship { order: u64 }
/// # impl Task for Ship {
/// #     const NAME: &'static str = "ship";
/// #     type Output = u64;
/// #     async fn run(self, _: Context) -> Result<u64, BoxError> { Ok(self.order) }
/// # }
/// # impl Parameter<0> for Ship {
/// #     const NAME: &'static str = "order";
/// #     type Type = u64;
/// #     const IS_IN_TEMPLATE: bool = true;
/// # }
/// # fn reserve(order: u64) -> Call<Ship> { Ship { order }.call() }
/// # fn ship(order: u64) -> Call<Ship> { Ship { order }.call() }
/// // `#[task(biz_id = "{order}")] fn ship(order: u64)`
/// let flow = reserve(7).then(ship);
/// # drop(flow);
/// ```
pub trait Step<'a, R, Kind> {
    /// The result of the step.
    type Output;
    /// Returns the step as a flow, and how the result becomes its argument.
    #[doc(hidden)]
    fn into_step(self) -> (Vec<Stage<'a>>, Form);
}

#[diagnostic::do_not_recommend]
impl<'a, R, P, F, T> Step<'a, R, ByFunction<P>> for F
where
    F: Fn(P) -> Call<T>,
    P: MadeOf<R>,
    T: Parameter<0, Type = P>,
{
    type Output = T::Output;
    fn into_step(self) -> (Vec<Stage<'a>>, Form) {
        const {
            assert!(
                !<T as Parameter<0>>::IS_IN_TEMPLATE,
                "the biz_id, the lane or the by of this step is made of the result of the step \
                 before it, which is not known when the flow is submitted: write the step as \
                 pay(_) in chain! or step!, and set the option on it, as in pay(_).biz_id(…)"
            );
        }
        drop(self);
        let part = if is_function_of::<F, T>() {
            Part::none_given().take::<T, 0>()
        } else {
            Part::refused(format!(
                "this step is not a task function itself, but a function or a closure that makes \
                 a call, and a flow never calls it; write the call, with `_` for the result, in \
                 `chain!` or `step!`, such as `step!({}(_))`",
                <T as Task>::NAME
            ))
        };
        let call: Call<T, Takes<P>> = Call::of(Arguments::Part(part));
        (call.into_flow().stages, P::FORM)
    }
}

/// Whether the function is that of the task: for the type of `#[task]` it has the same name in the
/// same module, and for a type that implements [`Task`] by hand any function that has a name.
fn is_function_of<F, T>() -> bool {
    let (function, task) = (type_name::<F>(), type_name::<T>());
    match task.rsplit_once(TASK_TYPE_PREFIX) {
        Some((module, name)) => {
            function.strip_prefix(module).is_some_and(|rest| rest.trim_start_matches("r#") == name)
        }
        None => !function.contains("{{closure}}") && !function.starts_with("fn("),
    }
}

#[diagnostic::do_not_recommend]
impl<'a, R, S> Step<'a, R, ByValue> for S
where
    S: IntoFlow<'a>,
    S::Input: Accepts<R>,
{
    type Output = S::Output;
    fn into_step(self) -> (Vec<Stage<'a>>, Form) {
        (self.into_flow().stages, <S::Input as Accepts<R>>::FORM)
    }
}

/// Results that a step of the type `S` can follow, which returns `O`: any for which it is a
/// [`Step`]. The compiler explains a wrong step by the result: by the type of a function, it would
/// propose to call it.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "this step can't follow one that returns `{Self}`",
    label = "does not take `{Self}`",
    note = "a step is a task function whose only argument is `{Self}`, or a call in which such an \
            argument is `_`, as in `pay(account, _)`; outside of `chain!`, write \
            `step!(pay(account, _))`",
    note = "after a group, which returns `GroupResults<T>`, the argument may be a `Vec<T>`, too"
)]
pub trait Before<'a, S, Kind, O> {
    /// Returns the step as a flow, and how the result becomes its argument.
    fn stages(step: S) -> (Vec<Stage<'a>>, Form);
}

#[diagnostic::do_not_recommend]
impl<'a, R, Kind, O, S: Step<'a, R, Kind, Output = O>> Before<'a, S, Kind, O> for R {
    fn stages(step: S) -> (Vec<Stage<'a>>, Form) {
        step.into_step()
    }
}

/// A step of `chain!` after the first. The compiler shows a wrong one at its own place.
#[doc(hidden)]
#[derive(Debug)]
pub struct NextStep<S>(pub S);

/// A step that can follow one that returns `R`. It says the same as [`Before`], for `chain!`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "this step can't follow one that returns `{R}`",
    label = "does not take `{R}`",
    note = "a step is a task function whose only argument is `{R}`, or a call in which such an \
            argument is `_`, as in `pay(account, _)`",
    note = "after a group, which returns `GroupResults<T>`, the argument may be a `Vec<T>`, too"
)]
pub trait Follows<'a, R, Kind, O> {
    /// Returns the step as a flow, and how the result becomes its argument.
    fn stages(self) -> (Vec<Stage<'a>>, Form);
}

#[diagnostic::do_not_recommend]
impl<'a, R: Before<'a, S, Kind, O>, S, Kind, O> Follows<'a, R, Kind, O> for NextStep<S> {
    fn stages(self) -> (Vec<Stage<'a>>, Form) {
        R::stages(self.0)
    }
}

/// Adds a step to a chain.
#[doc(hidden)]
pub fn follow<'a, Out, In, Kind, S, O>(
    chain: Flow<'a, Out, In>,
    step: NextStep<S>,
) -> Flow<'a, O, In>
where
    NextStep<S>: Follows<'a, Out, Kind, O>,
{
    chain.followed_by(step.stages())
}

/// Results of the members of a group that a callback of the type `S` can take.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "this step can't follow a group whose members return `{Self}`",
    label = "takes neither `Vec<{Self}>` nor `GroupResults<{Self}>`",
    note = "the callback of a group is a task function whose only argument is a `Vec<{Self}>` or a \
            `GroupResults<{Self}>`, or a call in which such an argument is `_`, as in \
            `step!(report(day, _))`"
)]
pub trait AfterGroup<'a, S, Kind, O> {
    /// Returns the step as a flow, and how the results become its argument.
    fn stages(step: S) -> (Vec<Stage<'a>>, Form);
}

#[diagnostic::do_not_recommend]
impl<'a, T, Kind, O, S: Step<'a, GroupResults<T>, Kind, Output = O>> AfterGroup<'a, S, Kind, O>
    for T
{
    fn stages(step: S) -> (Vec<Stage<'a>>, Form) {
        step.into_step()
    }
}

/// What [`Client::submit_group`](crate::Client::submit_group) takes: a [`Group`].
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a group without a callback",
    label = "not a group",
    note = "`client.submit_group(…)` takes what `group(calls)` makes; for a flow, such as a group \
            with `.then(…)`, write `client.submit_flow(…)`, and for a call `client.submit(…)`"
)]
pub trait IntoGroup<'a>: IntoFlow<'a> {
    /// The result of each member.
    type Member;
}

#[diagnostic::do_not_recommend]
impl<'a, T, In> IntoGroup<'a> for Group<'a, T, In> {
    type Member = T;
}
