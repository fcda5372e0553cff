//! Not public API: items that the generated code of `#[optimus::task]` uses.
//!
//! The traits here do nothing at run time. They give each misuse a name, so that the compiler
//! reports it once, with a message that states what to do.

#[path = "private_shards.rs"]
mod shards;
#[path = "private_sources.rs"]
mod sources;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};

pub use self::shards::{EndsRound, IsShard, round_of, shard_data};
pub use self::sources::{
    Archives, FindsRows, IsPage, NotesFailure, Stands, Tables, archived, found_of, noted,
    page_data, standing_of, table_names,
};
pub use optimus_core::{
    Archive, PageFacts, Row, RowFacts, RunningArchive, RunningCheck, RunningNote, RunningScan,
    Source, SourceOptions, SourceParts, Tier,
};
pub use optimus_core::{
    Backoff, BoxError, Call, Context, Data, DataKey, Each, Key, KeyTemplate, KeyTexts, LaneFailure,
    MakesBizId, MakesBy, MakesLane, Missed, NextStep, NotNeeded, OnLost, Overlap, Parameter,
    PrerequisiteFailure, Rate, Round, RunningRound, Schedule, Shard, Sharded, ShardedOptions, Task,
    TaskDefinition, TaskFn, TaskOptions, TaskResult, Tick, Walk, first, follow, give, hole,
    inventory, none_given, take,
};
pub use optimus_macros::{write_chain, write_step};
pub use serde;

/// Types that can be stored until a worker claims the task.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be an argument of a task: it is not serializable",
    label = "an argument is stored in Redis as JSON",
    note = "derive `serde::Serialize` and `serde::Deserialize` for `{Self}`; if it is a resource \
            of the worker, not an argument, put `#[data]` on the parameter"
)]
pub trait Argument: Serialize + DeserializeOwned {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned> Argument for T {}

/// Asserts that `T` is an [`Argument`].
pub const fn argument<T: Argument>() {}

/// Replaces the derived code of an argument that is not an [`Argument`]. The compiler has then
/// already reported the failed assertion, and this type prevents further errors.
pub trait NoJson {
    /// Panics. The generated code never calls this function.
    ///
    /// # Errors
    /// None.
    fn serialize<T, S: Serializer>(_: &T, _: S) -> Result<S::Ok, S::Error> {
        unreachable!("the program did not compile")
    }

    /// Panics. The generated code never calls this function.
    ///
    /// # Errors
    /// None.
    fn deserialize<'de, T, D: Deserializer<'de>>(_: D) -> Result<T, D::Error> {
        unreachable!("the program did not compile")
    }
}

impl<T> NoJson for T {}

/// The name of a task in one package, as a type.
pub struct TaskName<const HIGH: u64, const LOW: u64>;

/// Shows that the name belongs to the task `T`. `I` is always `u8`.
#[diagnostic::on_unimplemented(
    message = "two tasks of this package have the same name",
    label = "another task has this name, too",
    note = "a worker finds a task by its name: rename one of the functions, or name its task: \
            `#[optimus::task(name = \"…\")]`"
)]
pub trait Owner<T, I> {}

/// Asserts that only one task has the name. The macro calls this function with the literal 0, which
/// is a `u8` only if there is one `T`.
pub const fn one_task_has_the_name<T, N: Owner<T, I>, I: Copy>(_: I) {}

/// Provides the `#[data]` of each attempt.
pub struct Worker;

/// Types that a worker can provide to each attempt. The trait has `T` as a parameter and not as
/// `Self`, because the compiler would otherwise suggest to borrow it.
#[diagnostic::on_unimplemented(
    message = "`{T}` can't be `#[data]`: each attempt is given a clone, on any thread",
    label = "not `Clone + Send + Sync + 'static`",
    note = "wrap it: `Arc<{T}>` if it is `Send + Sync`, `Arc<Mutex<{T}>>` if it is only `Send`"
)]
pub trait Gives<T> {
    /// Returns a clone of the attempt's value of that type.
    fn give(ctx: &Context) -> Option<T>;
    /// Returns a clone of the worker's value of that type.
    fn give_of(data: &Data) -> Option<T>;
}

#[diagnostic::do_not_recommend]
impl<T: Clone + Send + Sync + 'static> Gives<T> for Worker {
    fn give(ctx: &Context) -> Option<T> {
        ctx.data()
    }

    fn give_of(data: &Data) -> Option<T> {
        data.get()
    }
}

/// Returns the value of a `#[data]` parameter.
///
/// # Errors
/// Names the type if the worker has no such value.
pub fn data<T>(ctx: &Context) -> Result<T, BoxError>
where
    Worker: Gives<T>,
{
    Worker::give(ctx).ok_or_else(|| {
        let name = std::any::type_name::<T>();
        format!("no data of type {name}: add it to the worker with `.data(…)`").into()
    })
}

/// Types that a task may return.
#[diagnostic::on_unimplemented(
    message = "a task can't return `{Self}`",
    label = "neither `()` nor a `Result` with an error",
    note = "return nothing, or a `Result<T, E>` where `E` implements `std::error::Error` (and \
            `Send + Sync`), or is a `String`, or converts into \
            `Box<dyn std::error::Error + Send + Sync>`"
)]
pub trait Returned {
    /// The value that the task returns on success.
    type Value;
}

#[diagnostic::do_not_recommend]
impl<R: TaskResult> Returned for R {
    type Value = R::Output;
}

/// Types that can be kept as a task's result.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be kept as the result of a task: it is not serializable",
    label = "a result is stored in Redis as JSON",
    note = "derive `serde::Serialize` and `serde::Deserialize` for `{Self}`; if nobody reads the \
            result, set `result_ttl = 0`"
)]
pub trait Kept: Serialize + DeserializeOwned + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + Send + 'static> Kept for T {}

/// Types that can be kept as the result of each call of a run.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be kept as the result of a task: it is not serializable",
    label = "each call of the run gets this result, which is stored in Redis as JSON",
    note = "if the calls of a run end in different ways, return `Each<T>`, which has a result or \
            an error for each call: collect your `Result<T, E>`s into it",
    note = "else derive `serde::Serialize` and `serde::Deserialize` for `{Self}`; if nobody reads \
            the result, set `result_ttl = 0`"
)]
pub trait KeptOfRun {}

#[diagnostic::do_not_recommend]
impl<T: Kept> KeptOfRun for T {}

/// Asserts that a task may return the type.
pub const fn returns<R: Returned>() {}

/// Shows whether the assertion about `R` holds. The constants of this type have the bounds of the
/// assertion. If `R` does not meet these bounds, the constants of [`NotReturnable`] apply.
pub struct ReturnKind<R>(std::marker::PhantomData<R>);

impl<R: TaskResult<Output: Kept>> ReturnKind<R> {
    /// The result is kept.
    pub const KEEPS: u8 = 1;
}

impl<R: TaskResult> ReturnKind<R> {
    /// The result is dropped.
    pub const RETURNS: u8 = 2;
}

impl<R: TaskResult<Output: OfEachCall<Result: Kept>>> ReturnKind<R> {
    /// The result of each call of a run is kept.
    pub const KEEPS_EACH: u8 = 3;
}

impl<R: TaskResult<Output: OfEachCall>> ReturnKind<R> {
    /// Each call of a run has its own result.
    pub const RETURNS_EACH: u8 = 4;
}

/// The fallback for an assertion that does not hold. It prevents further compiler errors.
pub trait NotReturnable {
    /// The results of the calls can't be kept.
    const KEEPS_EACH: u8 = 0;
    /// The calls have one result.
    const RETURNS_EACH: u8 = 0;
    /// The result can't be kept.
    const KEEPS: u8 = 0;
    /// The function returns no result.
    const RETURNS: u8 = 0;
}

impl<R> NotReturnable for ReturnKind<R> {}

/// Converts the return value of a function to the output of the task, according to its
/// [`ReturnKind`].
pub struct Answer<const KIND: u8>;

impl Answer<2> {
    /// Asserts that the function's result can be kept.
    pub const fn keeps<R: Returned<Value: Kept>>() {}

    /// Asserts that the result of a run can be kept.
    pub const fn keeps_of_run<R: Returned<Value: KeptOfRun>>() {}
}

impl Answer<4> {
    /// Asserts that the result of each call can be kept.
    pub const fn keeps_of_run<R: Returned<Value: OfEachCall<Result: Kept>>>() {}
}

impl Answer<0> {
    /// Accepts a type that is not returnable, because another assertion reports that.
    pub const fn keeps<R>() {}
}

/// See [`Answer`].
pub trait Answers<R> {
    /// The output of the task.
    type Output: Kept;
    /// Converts the return value of the function.
    ///
    /// # Errors
    /// Returns the error of the function.
    fn of(returned: R) -> Result<Self::Output, BoxError>;
}

impl<R: TaskResult<Output: Kept>> Answers<R> for Answer<1> {
    type Output = R::Output;
    fn of(returned: R) -> Result<R::Output, BoxError> {
        returned.into_result()
    }
}

impl<R: TaskResult> Answers<R> for Answer<2> {
    type Output = ();
    fn of(returned: R) -> Result<(), BoxError> {
        returned.into_result().map(drop)
    }
}

impl<R> Answers<R> for Answer<0> {
    type Output = ();
    fn of(_: R) -> Result<(), BoxError> {
        unreachable!("the program did not compile")
    }
}

/// The results of the calls of a run: [`Each`].
pub trait OfEachCall {
    /// The result of one call.
    type Result;
    /// Returns the results.
    fn results(self) -> Each<Self::Result>;
}

impl<T> OfEachCall for Each<T> {
    type Result = T;
    fn results(self) -> Self {
        self
    }
}

/// Asserts that a task which gathers no calls does not return [`Each`].
pub const fn of_one_call(returns_each: u8) {
    assert!(
        returns_each == 0,
        "`Each` has a result for each call of a run, and this task gathers no calls: add \
         `gather = \"10s | 500\"`, or return the result itself"
    );
}

/// Converts the return value of a function that gathers calls to the results of these calls.
pub trait AnswersRun<R> {
    /// The output of a call.
    type Output: Kept;
    /// Converts the return value of the function.
    ///
    /// # Errors
    /// Returns the error of the function.
    fn of_run(returned: R) -> Result<Each<Self::Output>, BoxError>;
}

impl<R: TaskResult<Output: Kept>> AnswersRun<R> for Answer<1> {
    type Output = R::Output;
    fn of_run(returned: R) -> Result<Each<R::Output>, BoxError> {
        returned.into_result().map(Each::same)
    }
}

impl<R: TaskResult> AnswersRun<R> for Answer<2> {
    type Output = ();
    fn of_run(returned: R) -> Result<Each<()>, BoxError> {
        returned.into_result().map(|_| Each::same(()))
    }
}

impl<R: TaskResult<Output: OfEachCall<Result: Kept>>> AnswersRun<R> for Answer<3> {
    type Output = <R::Output as OfEachCall>::Result;
    fn of_run(returned: R) -> Result<Each<Self::Output>, BoxError> {
        returned.into_result().map(OfEachCall::results)
    }
}

impl<R: TaskResult<Output: OfEachCall>> AnswersRun<R> for Answer<4> {
    type Output = ();
    fn of_run(returned: R) -> Result<Each<()>, BoxError> {
        returned.into_result().map(|each| each.results().map(drop))
    }
}

impl<R> AnswersRun<R> for Answer<0> {
    type Output = ();
    fn of_run(_: R) -> Result<Each<()>, BoxError> {
        unreachable!("the program did not compile")
    }
}

/// A parameter whose type is written `Context`.
#[diagnostic::on_unimplemented(
    message = "this `Context` is `{Self}`, not `optimus::Context`",
    label = "a parameter of a type named `Context` is given the attempt's context",
    note = "`use optimus::Context;`, or put `#[data]` on the parameter if the worker provides it, \
            or import the type under another name if it is an argument"
)]
pub trait IsContext {
    /// Returns the context itself.
    fn of(ctx: Context) -> Self;
}

impl IsContext for Context {
    fn of(ctx: Context) -> Self {
        ctx
    }
}

/// A parameter whose type is written `Tick`, under `#[optimus::cron]`.
#[diagnostic::on_unimplemented(
    message = "this `Tick` is `{Self}`, not `optimus::Tick`",
    label = "a parameter of a type named `Tick` is given the instant of the schedule",
    note = "`use optimus::Tick;`, or put `#[data]` on the parameter if the worker provides it"
)]
pub trait IsTick {
    /// Returns the instant of the attempt's task.
    fn of(ctx: &Context) -> Self;
}

impl IsTick for Tick {
    fn of(ctx: &Context) -> Self {
        ctx.tick().cloned().unwrap_or_else(|| Self::of_call(ctx.id()))
    }
}

/// Tasks whose outcome is remembered, so that another definition can name them in `after`. The
/// compiler would show the hidden type of the task's arguments, so the message has no `Self`.
#[diagnostic::on_unimplemented(
    message = "a task can't wait for this one: its outcome is not remembered",
    label = "its definition has no `outcome_ttl`",
    note = "add `outcome_ttl = \"7d\"` to its `#[optimus::task]`: a task that waits for it may be \
            submitted this long after its success"
)]
pub trait Remembered {}

impl Remembered for Refused {}

/// Names the task of a function with this biz id.
pub fn remembered<Args, F: TaskFn<Args, Task: Remembered>>(task: F, biz_id: &str) -> Key {
    optimus_core::key(task, biz_id)
}

/// Replaces a task whose definition was refused, so that its callers compile.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Refused {}

impl Task for Refused {
    const NAME: &'static str = "refused";
    type Output = ();

    async fn run(self, _: Context) -> Result<(), BoxError> {
        match self {}
    }
}
