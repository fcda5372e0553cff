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
pub use optimus_macros::task;

pub use optimus_core::{After, IntoPrerequisite, Key, Prerequisite, PrerequisiteFailure, key};
pub use optimus_core::{
    BACKOFF_MAX, Backoff, BackoffFn, Interrupted, Lane, LaneFailure, OnLost, PRIORITY_MAX,
};
pub use optimus_core::{Call, Due, ErasedCall, Submission, Submit};
pub use optimus_core::{Gate, GateHandle, Limit, LimitDetails, Permit, Rate, Shut, TaskLimit};

pub use optimus_core::{CancelAnswer, DeleteAnswer, GateAnswer, LaneCancelled, QueueAnswer};
pub use optimus_core::{Client, ClientBuilder, Credentials, Durability};
pub use optimus_core::{NAMESPACE_DEFAULT, QueueName};
pub use optimus_core::{Results, SubmitAllError, TaskHandle, TaskId};

pub use optimus_core::{Done, End, Layer, Next, Outcome};

pub use optimus_core::{BoxError, Cancel, Context, Data, DataKey, Fatal, Retry, Snooze};
pub use optimus_worker::{Worker, WorkerBuilder};

pub use optimus_core::{AttemptError, Error, InvalidName, Reason, TaskState};
pub use optimus_core::{Counts, Inspector, LaneDetails, PrerequisiteDetails, ServerFacts};
pub use optimus_core::{Explanation, Obstacle};
pub use optimus_core::{PAGE_MAX, PageCursor, TaskPage, TaskRow};
pub use optimus_core::{RecordError, TaskRecord, WorkerDescription, WorkerId};
pub use optimus_core::{TaskDetails, WorkerDetails};

// Types of other crates in public signatures.
#[doc(no_inline)]
pub use optimus_core::{DateTime, Utc, Uuid, Value};

/// A result. Its error type is [`Error`] unless another one is named.
pub type Result<T, E = Error> = std::result::Result<T, E>;
