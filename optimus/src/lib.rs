//! Optimus: an async task queue for Rust on Redis.
//!
//! `#[optimus::task]` makes a [task](macro@task) from a function. The application submits calls of
//! it, and a worker runs them: on any machine, at least once. No acknowledged task is lost.
//!
//! ```
//! use optimus::{Client, Context, Worker};
//!
//! #[optimus::task(timeout = "1m", max_retry = 3)]
//! async fn greet(
//!     name: String,
//!     #[data] greeting: &'static str,
//!     ctx: Context,
//! ) -> Result<String, std::io::Error> {
//!     Ok(format!("{greeting} {name}, at attempt {}", ctx.attempt()))
//! }
//!
//! #[tokio::main]
//! async fn main() -> optimus::Result<()> {
//!     // The application. `memory://` needs no server and is for first steps and tests; production
//!     // uses `redis://…`.
//!     Client::connect("memory://quickstart").await?.install();
//!     let handle = greet("Ann".to_owned()).perform_async().await?;
//!
//!     // The worker, usually a separate program: `Worker::from_env()?.data("Hello").run().await`.
//!     let worker = Worker::builder("memory://quickstart").data("Hello").build()?;
//!     let answer = worker.run_until(handle.result()).await??;
//!     assert_eq!(answer, "Hello Ann, at attempt 1");
//!     Ok(())
//! }
//! ```
//!
//! The main types, in the order in which a task uses them:
//!
//! - [`task`](macro@task), or [`Task`] by hand: the code of a task, and its [`TaskOptions`].
//! - [`Call`]: a task with its arguments, such as `greet("Ann".to_owned())`. Nothing happens before
//!   a verb: [`perform_async`](Call::perform_async), [`perform_in`](Call::perform_in),
//!   [`perform_at`](Call::perform_at), or [`perform_inline`](Call::perform_inline) for unit tests.
//! - [`Client`]: connects, submits one or many calls, cancels, requeues. [`TaskHandle`] waits for a
//!   result, [`Client::results`] for those of many tasks.
//! - [`Worker`]: runs tasks. A handler gets its arguments, `#[data]` and a [`Context`], and may end
//!   with a control word: [`Retry`], [`Snooze`], [`Fatal`] or [`Cancel`].
//! - [`TaskState`] is the state of a task, [`Reason`] is why it failed, and [`Inspector`] reads
//!   tasks, queues and workers without changing them.
//!
//! All types that an inspector returns are exported, so a program can name them:
//!
//! ```
//! use optimus::{Counts, Inspector, QueueName, TaskId, TaskRecord, TaskDetails, WorkerDetails};
//!
//! async fn look(
//!     inspector: &Inspector,
//!     queue: &QueueName,
//! ) -> optimus::Result<(Counts, Vec<WorkerDetails>)> {
//!     Ok((inspector.counts(queue).await?, inspector.workers(queue).await?))
//! }
//!
//! async fn page(
//!     inspector: &Inspector,
//!     queue: &QueueName,
//!     after: Option<&optimus::PageCursor>,
//! ) -> optimus::Result<Vec<optimus::TaskRow>> {
//!     let page: optimus::TaskPage =
//!         inspector.list(queue, optimus::TaskState::Dead, after, optimus::PAGE_MAX).await?;
//!     Ok(page.rows)
//! }
//!
//! fn record(task: TaskDetails) -> Option<TaskRecord> {
//!     task.record?.ok()
//! }
//!
//! fn id(text: &str) -> Result<TaskId, optimus::InvalidName> {
//!     text.parse()
//! }
//!
//! fn needs() -> Vec<optimus::DataKey> {
//!     vec![optimus::DataKey::of::<String>()]
//! }
//! ```
//!
//! The tasks of a library are found only if the program names that library: `use my_tasks as _;` is
//! enough.
//!
//! The [`glossary`] has the words of this documentation.

pub mod glossary;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;

pub use optimus_core::{Task, TaskFn, TaskOptions, TaskResult};
pub use optimus_macros::{cron, sharded, source, task};

pub use optimus_core::{
    Archive, Found, KEY_BYTES_MAX, PAGE_ROWS_MAX, Page, Row, SliceDetails, SliceScans, Source,
    SourceDetails, SourceHandle, SourceOptions, TABLES_MAX, Tier,
};
pub use optimus_core::{Round, Shard, Sharded, ShardedOptions, ShardsHandle, Walk};
pub use optimus_core::{ShardDetails, ShardFailure, ShardHolder, ShardWorker, ShardsDetails};

pub use optimus_core::{CurrentGroup, Group, GroupHandle, GroupProgress, GroupResults, Member};
pub use optimus_core::{Flow, FlowHandle, IntoFlow, Step, StepHandle};
pub use optimus_core::{GroupCursor, GroupDetails, GroupPage, LostMember, MemberPlace, group};
pub use optimus_core::{Input, MemberEnd, MemberEnds, NoInput, Parameter, Takes};

pub use optimus_core::{After, IntoPrerequisite, Key, Prerequisite, PrerequisiteFailure, key};
pub use optimus_core::{
    BACKOFF_MAX, Backoff, BackoffFn, Interrupted, Lane, LaneFailure, OnLost, PRIORITY_MAX,
};
pub use optimus_core::{Call, Due, ErasedCall, NamedCall, Submission, Submit};
pub use optimus_core::{
    Each, Gate, GateHandle, Gather, Limit, LimitDetails, Permit, Rate, Shut, TaskLimit,
};

pub use optimus_core::{
    ASSIGNEE_BYTES_MAX, Added, AssignedRow, AssigneeRow, Dispenser, DispenserDetails,
    DispenserError, HELD_MAX, Held, HeldItem, ITEM_BYTES_MAX, Item, ItemPlace, ONCE_BYTES_MAX,
    OpenRow, Rebuild, Settled,
};
pub use optimus_core::{
    CancelAnswer, DeleteAnswer, FlowCancelled, ForgetAnswer, GateAnswer, LaneCancelled,
    PauseAnswer, QueueAnswer, RunNowAnswer, WidthAnswer,
};
pub use optimus_core::{CancelCall, LaneHandle};
pub use optimus_core::{Client, ClientBuilder, Credentials, Durability};
pub use optimus_core::{NAMESPACE_DEFAULT, QueueName};
pub use optimus_core::{Results, SubmitAllError, TaskHandle, TaskId};

pub use optimus_core::{
    Missed, Overdue, OverdueCause, Overlap, Schedule, ScheduleCursor, ScheduleDetails,
    SchedulePace, SchedulePage, ScheduleTick, Schedules, Tick, TickOutcome,
};

pub use optimus_core::{Done, End, Layer, Next, Outcome};
#[cfg(feature = "otel")]
pub use optimus_otel as otel;

pub use optimus_core::{BoxError, Cancel, Context, Data, DataKey, Fatal, Retry, Snooze};
pub use optimus_worker::{Worker, WorkerBuilder};

pub use optimus_core::{AuditAct, AuditCursor, AuditNote, AuditPage, AuditRow};

pub use optimus_core::{AttemptError, Error, InvalidName, Reason, TaskState};
pub use optimus_core::{Counts, Inspector, LaneDetails, PrerequisiteDetails, ServerFacts};
pub use optimus_core::{
    Distribution, OTHER_TASKS, Stats, StatsRow, StatsSum, StatsUnit, TaskStats, Totals,
};
pub use optimus_core::{Explanation, Obstacle};
pub use optimus_core::{Fingerprint, FingerprintRow, Fingerprints};
pub use optimus_core::{
    HISTORY_BYTES_MIN, HISTORY_DAYS_MAX, HistoryCursor, HistoryDay, HistoryDetails, HistoryFilter,
    HistoryOptions, HistoryPage, HistoryRow,
};
pub use optimus_core::{LogLine, TaskDetails, TaskLog, TaskProgress, WorkerDetails};
pub use optimus_core::{
    Operation, OperationAct, OperationError, OperationFilter, OperationProblem, OperationSample,
    OperationState, Operations,
};
pub use optimus_core::{PAGE_MAX, PageCursor, QueueOverview, TaskPage, TaskRow};
pub use optimus_core::{ProcessAbout, ProcessAnswer, ProcessCursor, ProcessDetails, ProcessDoing};
pub use optimus_core::{ProcessHandle, ProcessPage, RunningTask};
pub use optimus_core::{RecordError, TaskRecord, WorkerDescription, WorkerId};

// Types of other crates in public signatures.
#[doc(no_inline)]
pub use optimus_core::{DateTime, FixedOffset, NaiveDate, Span, Utc, Uuid, Value};

/// Makes a [`Flow`] of steps that run one after the other. The first is a call. Each one after it
/// is:
///
/// - a task function, such as `pay`, whose only argument is the result of the step before it;
/// - a call in which that result is the argument `_`, such as `pay(account, _)`, with options if
///   there are any: `pay(account, _).queue("money").max_retry(7)`;
/// - a whole call, such as `notify("sold")`, which only waits for the step before it;
/// - a [`group`], or another flow.
///
/// The compiler checks that each step takes what the one before it returns.
///
/// ```standalone_crate
/// use optimus::{BoxError, Client, Worker, chain};
///
/// #[optimus::task]
/// async fn reserve(order: u64) -> Result<String, BoxError> {
///     Ok(format!("shelf {order}"))
/// }
///
/// #[optimus::task]
/// async fn pay(account: u64, shelf: String) -> Result<String, BoxError> {
///     Ok(format!("{shelf}, paid by {account}"))
/// }
///
/// #[optimus::task]
/// async fn ship(paid: String) -> Result<String, BoxError> {
///     Ok(format!("{paid}, shipped"))
/// }
///
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() -> optimus::Result<()> {
///     let client = Client::connect("memory://chain").await?;
///     let sale = client.submit_flow(chain![reserve(7), pay(22, _).max_retry(7), ship]).await?;
///     let worker = Worker::builder("memory://chain").build()?;
///     let sold = worker.run_until(sale.result()).await??;
///     assert_eq!(sold, "shelf 7, paid by 22, shipped");
///     Ok(())
/// }
/// ```
#[macro_export]
macro_rules! chain {
    ($($steps:tt)*) => { $crate::__private::write_chain!($crate; $($steps)*) };
}

/// Makes one step of a [`Flow`], in which the result of the step before it is the argument `_`, for
/// [`Flow::then`] and for the members of a [`group`] after another step. [`chain!`] needs no
/// `step!`.
///
/// ```
/// use optimus::{BoxError, group, step};
///
/// #[optimus::task]
/// async fn load(image: u64) -> Result<Vec<u8>, BoxError> {
///     Ok(image.to_le_bytes().to_vec())
/// }
///
/// #[optimus::task]
/// async fn resize(image: Vec<u8>, width: u32) -> Result<u32, BoxError> {
///     Ok(width * image.len() as u32)
/// }
///
/// let sizes = load(7).then(group([100, 200].map(|width| step!(resize(_, width)))));
/// # drop(sizes);
/// ```
#[macro_export]
macro_rules! step {
    ($($step:tt)*) => { $crate::__private::write_step!($crate; $($step)*) };
}

/// A result. Its error type is [`Error`] unless another one is named.
pub type Result<T, E = Error> = std::result::Result<T, E>;
