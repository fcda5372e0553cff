//! Core types and Redis access of the Optimus task queue.
//!
//! Applications use the facade crate `optimus`. These are the types in the order of a task's life:
//! a [`Task`] defines a task, a [`Call`] has its arguments and options, and a [`Client`] submits
//! the call as a [`Submission`]. Redis stores a [`TaskRecord`]. A worker claims the task with a
//! [`Lease`] and runs it with a [`Context`]. A [`TaskState`] shows where the task is, and an
//! [`Inspector`] reads all of this.
//!
//! `broker` has one method for each Lua script. Only `broker` uses Redis.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod after;
mod after_options;
mod answers;
mod arguments;
mod attempt_data;
mod attempt_end;
mod call;
mod call_after;
mod client;
mod context;
mod control;
mod credentials;
mod current_context;
mod data;
mod definition;
mod discard;
mod durability;
mod error;
mod explain;
mod gate;
mod headers;
mod id;
mod inspect;
mod lane;
mod layer;
mod layers;
mod lease;
mod limit;
mod not_submitted;
mod options;
mod page_cursor;
mod poll_interval;
mod prerequisite_key;
mod rate;
mod record;
mod record_debug;
mod record_header;
mod retry;
mod state;
mod submission;
mod task;
mod task_page;
mod threads;

#[doc(hidden)]
pub mod broker;
#[doc(hidden)]
pub mod environment;
#[doc(hidden)]
pub mod log;
#[doc(hidden)]
pub mod platform;

pub use self::{
    after::{After, Prerequisite, PrerequisiteFailure},
    answers::{CancelAnswer, DeleteAnswer, QueueAnswer},
    attempt_end::{End, Outcome},
    call::{Call, ErasedCall, Submit},
    client::{
        Client, ClientBuilder, GateHandle, NAMESPACE_DEFAULT, Permit, Results, SubmitAllError,
        TaskHandle,
    },
    context::Context,
    control::{BoxError, Cancel, Chain, Control, Fatal, Retry, Snooze},
    credentials::Credentials,
    data::{Data, DataKey},
    definition::{RunError, RunOutput, Running, TaskDefinition},
    durability::Durability,
    error::Error,
    explain::{Explanation, Obstacle},
    gate::Gate,
    id::{InvalidName, NAME_BYTES_MAX, QueueName, TaskId, WorkerId, validate_name},
    inspect::{
        Counts, Inspector, LaneDetails, PrerequisiteDetails, ServerFacts, TaskDetails,
        WorkerDescription, WorkerDetails,
    },
    lane::{Lane, LaneFailure},
    layer::{Done, Layer, Next},
    lease::{Lease, Token},
    limit::{Limit, LimitDetails, Shut, TaskLimit},
    options::{Due, OnLost, PRIORITY_MAX, TaskOptions},
    page_cursor::PageCursor,
    poll_interval::interval,
    prerequisite_key::{IntoPrerequisite, Key, key},
    rate::Rate,
    record::{RECORD_VERSION, RecordError, TaskRecord},
    retry::{BACKOFF_MAX, Backoff, BackoffFn, Interrupted},
    state::{AttemptError, Reason, TaskState},
    submission::{BLOB_BYTES_MIN, Submission},
    task::{TIMEOUT_GRACE, Task, TaskFn, TaskResult},
    task_page::{PAGE_MAX, TaskPage, TaskRow},
};
#[doc(hidden)]
pub use self::{
    client::OwnClient,
    context::AttemptFacts,
    credentials::AskCredentials,
    discard::panic_text,
    gate::ShutScope,
    layers::Layers,
    not_submitted::{Awaited, NotSubmitted},
    threads::Threads,
};
#[doc(hidden)]
pub use inventory;
#[doc(no_inline)]
pub use {
    chrono::{DateTime, Utc},
    serde_json::Value,
    uuid::Uuid,
};
