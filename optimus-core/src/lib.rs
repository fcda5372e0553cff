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
mod archive;
mod arguments;
mod attempt_end;
mod attempt_facts;
mod attempt_values;
mod audit;
mod await_without_verb;
mod blocking_threads;
#[cfg(test)]
mod bomb_waker;
mod bounded_text;
mod call;
mod call_debug;
mod call_prerequisites;
mod call_submit;
mod call_verbs;
mod client;
mod context;
mod control_words;
mod credentials;
mod cron_expression;
mod cron_instants;
mod cron_nearest;
mod current_context;
mod current_group;
mod data;
mod dispenser;
mod dispenser_error;
mod distribution;
mod due;
mod durability;
mod each;
mod erased_task;
mod error;
mod error_text;
mod explain;
mod explain_cycle;
mod explain_group;
mod explain_limits;
mod explain_workers;
mod explanation;
mod failures;
mod fingerprint;
mod fingerprint_words;
mod fingerprints;
mod first_step;
mod flow;
mod flow_debug;
mod found;
mod gate;
mod gather;
mod group;
mod group_calls;
mod group_details;
mod group_list;
mod group_page;
mod group_results;
mod guarded_drop;
mod headers;
mod history_options;
mod history_page;
mod history_read;
mod holders;
mod id;
mod inspect;
mod key_template;
mod lane;
mod layer;
mod layers;
mod lease;
mod limit;
mod limit_setters;
mod log_desk;
mod named_call;
mod obstacle;
mod obstacle_end_text;
mod obstacle_text;
mod operation;
mod operation_counted;
mod operation_error;
mod operation_filter;
mod operation_progress;
mod operator_answers;
mod options;
mod overview;
mod pace;
mod page;
mod page_cursor;
mod page_order;
mod panic_place;
mod parameter;
mod part;
mod plain_header;
mod prerequisite_key;
mod process_leases;
mod process_page;
mod rate;
mod record;
mod record_debug;
mod record_json;
mod retry;
mod roster;
mod said;
mod sampler;
mod schedule;
mod schedule_details;
mod schedule_overdue;
mod scheduled_task;
mod service;
mod settle_schedule;
mod shard;
mod shard_failure;
mod shard_position;
mod shard_stored;
mod sharded;
mod shards_details;
mod shared_interval;
mod source;
mod source_details;
mod source_row;
mod state;
mod stats;
mod stats_sum;
mod step;
mod stop_signal;
mod store_schedule;
mod stored_call;
mod submission;
mod task;
mod task_log;
mod task_page;
mod task_progress;
mod tick;
mod time_zone;
mod timing;
mod unknown_argument;
mod want_slots;

#[doc(hidden)]
pub mod broker;
#[doc(hidden)]
pub mod environment;
#[doc(hidden)]
pub mod log;
#[doc(hidden)]
pub mod platform;
#[doc(hidden)]
pub mod redact;

pub use self::{
    after::{After, Input, Prerequisite, PrerequisiteFailure},
    archive::Archive,
    attempt_end::{End, Outcome},
    audit::{AuditAct, AuditCursor, AuditNote, AuditPage, AuditRow},
    call::Call,
    call_submit::{ErasedCall, Submit},
    client::{
        CancelCall, Client, ClientBuilder, Dispenser, FlowHandle, GateHandle, GroupHandle,
        LaneHandle, NAMESPACE_DEFAULT, Operations, Permit, ProcessAnswer, ProcessHandle, Rebuild,
        Results, Schedules, ShardsHandle, SourceHandle, StepHandle, SubmitAllError, TaskHandle,
    },
    context::Context,
    control_words::{BoxError, Cancel, Chain, Control, Fatal, Retry, Snooze},
    credentials::Credentials,
    current_group::CurrentGroup,
    data::{Data, DataKey},
    dispenser::{
        ASSIGNEE_BYTES_MAX, Added, AssignedRow, AssigneeRow, DispenserDetails, HELD_MAX, Held,
        HeldItem, ITEM_BYTES_MAX, Item, ItemPlace, OpenRow, Settled,
    },
    dispenser_error::{DispenserError, ONCE_BYTES_MAX},
    distribution::Distribution,
    durability::Durability,
    each::Each,
    erased_task::{CallOutput, Ran, RunError, RunOutput, Running, RunningCalls, TaskDefinition},
    error::Error,
    explanation::Explanation,
    fingerprint::Fingerprint,
    fingerprints::{FingerprintRow, Fingerprints},
    flow::Flow,
    found::{Found, KEY_BYTES_MAX},
    gate::Gate,
    gather::Gather,
    group::{GroupProgress, Member},
    group_calls::{Group, group},
    group_details::{GroupDetails, LostMember, MemberPlace},
    group_page::{GroupCursor, GroupPage},
    group_results::{GroupResults, MemberEnd, MemberEnds},
    history_options::{
        HISTORY_BYTES_MIN, HISTORY_DAYS_MAX, HistoryDay, HistoryDetails, HistoryOptions,
    },
    history_page::{HistoryCursor, HistoryFilter, HistoryPage, HistoryRow},
    id::{InvalidName, NAME_BYTES_MAX, QueueName, TaskId, WorkerId, validate_name},
    inspect::{
        Counts, Inspector, LaneDetails, PrerequisiteDetails, ServerFacts, TaskDetails, Totals,
        WorkerDescription, WorkerDetails,
    },
    lane::{Lane, LaneFailure},
    layer::{Done, Layer, Next},
    lease::{Lease, Token},
    limit::{Limit, LimitDetails, Shut, TaskLimit},
    named_call::NamedCall,
    obstacle::Obstacle,
    operation::{Operation, OperationAct, OperationState},
    operation_error::OperationError,
    operation_filter::OperationFilter,
    operation_progress::{OperationProblem, OperationSample},
    operator_answers::{
        CancelAnswer, DeleteAnswer, FlowCancelled, ForgetAnswer, GateAnswer, LaneCancelled,
        PauseAnswer, QueueAnswer, RunNowAnswer, WidthAnswer,
    },
    options::{Due, OnLost, PRIORITY_MAX, TaskOptions},
    overview::QueueOverview,
    page::Page,
    page_cursor::PageCursor,
    parameter::{NoInput, Parameter, Takes},
    prerequisite_key::{IntoPrerequisite, Key, key},
    process_page::{
        ProcessAbout, ProcessCursor, ProcessDetails, ProcessDoing, ProcessPage, RunningTask,
    },
    rate::Rate,
    record::{RECORD_VERSION, RecordError, TaskRecord},
    retry::{BACKOFF_MAX, Backoff, BackoffFn, Interrupted},
    schedule::{Missed, Overlap, Schedule},
    schedule_details::{
        ScheduleCursor, ScheduleDetails, SchedulePace, SchedulePage, ScheduleTick, TickOutcome,
    },
    schedule_overdue::{Overdue, OverdueCause},
    shard::Shard,
    shard_failure::ShardFailure,
    sharded::{Round, Sharded, ShardedOptions, Walk},
    shards_details::{ShardDetails, ShardHolder, ShardWorker, ShardsDetails},
    shared_interval::interval,
    source::{PAGE_ROWS_MAX, Source, SourceOptions, TABLES_MAX, Tier},
    source_details::{SliceDetails, SliceScans, SourceDetails},
    source_row::Row,
    state::{AttemptError, Reason, TaskState},
    stats::{OTHER_TASKS, Stats, StatsRow, StatsUnit, TaskStats},
    stats_sum::StatsSum,
    step::{IntoFlow, Step},
    submission::{BLOB_BYTES_MIN, Submission},
    task::{TIMEOUT_GRACE, Task, TaskFn, TaskResult},
    task_log::{LogLine, TaskLog},
    task_page::{PAGE_MAX, TaskPage, TaskRow},
    task_progress::TaskProgress,
    tick::Tick,
};
#[doc(hidden)]
pub use self::{
    attempt_facts::AttemptFacts,
    await_without_verb::{
        Awaited, AwaitedErased, AwaitedFlow, AwaitedGroup, AwaitedGroupHandle, AwaitedHandle,
    },
    blocking_threads::Threads,
    bounded_text::{Bounded, TEXT_BYTES_MAX, cut},
    client::{Carrier, Deferral, FoundEnd, OwnClient, StoredFlow, Wish},
    control_words::LastChain,
    credentials::AskCredentials,
    failures::{Dying, Failures},
    first_step::{Begins, First},
    found::{FoundPage, FoundRow, NOTE_WITHIN, RowTask, found_rows},
    gate::ShutScope,
    group::MemberResult,
    group_list::{ListError, list_members, takes_list},
    guarded_drop::panic_text,
    key_template::{KeyTemplate, KeyTexts},
    layers::Layers,
    limit_setters::{LimitSetters, REMOVE as LIMIT_REMOVE, SET as LIMIT_SET},
    log_desk::{AttemptLog, LogDesk, LogSeat},
    pace::{PACED, Pace},
    page::{PageFacts, Stamp},
    panic_place::{PanicPlace, panic_sentence, with_place},
    parameter::{Given, give, given, none_given, take},
    process_page::RUNNING_SHOWN,
    roster::{Changes, Granted, Heard, HeldPosts, POSTS_MAX, Post, RosterName, Stay},
    sampler::{QueueSample, Sample, Sampler},
    schedule::CheckedSchedule,
    service::{RunningService, Service, ServiceHost, WithService},
    settle_schedule::settle_schedule,
    shard::{Progress, ShardFacts},
    sharded::RunningRound,
    source::{RunningArchive, RunningCheck, RunningNote, RunningScan, SourceParts},
    source_row::{RowFacts, SOURCE_HEADER, Standing, source_that_counts},
    step::{AfterGroup, Before, Follows, IntoGroup, NextStep, first, follow},
    stop_signal::StopSignal,
    store_schedule::{Moment, StoredAs, store_schedule, store_schedule_at},
    timing::{Fire, Plan, Timing},
    unknown_argument::{
        FillsBizId, FillsBy, FillsLane, Hole, MakesBizId, MakesBy, MakesLane, NotNeeded, Unfilled,
        hole,
    },
};
#[doc(hidden)]
pub use each::miscounted;
#[doc(hidden)]
pub use inventory;
#[doc(no_inline)]
pub use {
    chrono::{DateTime, FixedOffset, NaiveDate, Utc},
    serde_json::Value,
    tracing::Span,
    uuid::Uuid,
};
