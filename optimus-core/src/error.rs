//! The only public error type. It is opaque, with predicates for the cases that a caller can
//! handle.
//!
//! Kinds are private, so that a new kind breaks no caller. Code that branches uses a predicate; the
//! message describes the problem and what to do.

use std::{error, fmt, sync::Arc, time::Duration};

use crate::{
    broker::SizeLimit,
    control_words::BoxError,
    error_text::{
        group_cancelled, last_words, no_permit_advice, release, remedy, stands, waits_for,
    },
    group_details::LostMember,
    id::TaskId,
    limit::Shut,
    obstacle::Obstacle,
    state::{AttemptError, TaskState},
};

/// An error of an operation of Optimus. It is cheap to clone.
#[derive(Clone)]
pub struct Error(Arc<Kind>);

#[derive(Debug, thiserror::Error)]
enum Kind {
    #[error("{0}")]
    Invalid(String),
    #[error(
        "task {task:?}: the arguments take {bytes} bytes; the limit is {}; \
         store them elsewhere and pass a reference, or {}",
        limit.bytes(),
        limit.remedy()
    )]
    TooLarge { task: String, bytes: usize, limit: SizeLimit },
    #[error("task {task:?}: a layer refused the submit: {why}")]
    Refused { task: String, why: BoxError },
    #[error("{0} is unavailable: {1}; try again once it can be reached")]
    Unavailable(&'static str, String),
    #[error(
        "the outcome of the submit of {} task(s), first {}, is unknown: {why}; \
         look them up by id before you submit again",
        ids.len(),
        ids[0]
    )]
    UnknownOutcome { ids: Vec<TaskId>, why: String },
    #[error(
        "the outcome of {what} is unknown: {why}; it may have been done, and is safe to repeat"
    )]
    UnknownOperation { what: String, ids: Vec<TaskId>, why: String },
    #[error("the shard {0} is another worker's now; return from the round, and its holder goes on")]
    ShardLost(String),
    #[error("{0}")]
    Unsupported(String),
    #[error(
        "newer programs use this queue (it needs version {0} of its layout); upgrade this program \
         to their version of Optimus"
    )]
    Outdated(String),
    #[error(
        "Redis has reached its maxmemory and stored nothing; try again when workers have run some \
         of its tasks, or raise maxmemory"
    )]
    Full,
    #[error("Redis refused the credentials: {0}")]
    Unauthorized(String),
    #[error("no connection to {0}")]
    Tls(String),
    #[error("{0}")]
    Rejected(String),
    #[error("{id} is {state}, so {verb} is not possible{}", remedy(*state, verb))]
    WrongState { id: TaskId, state: TaskState, verb: &'static str },
    #[error("the biz id is held by {owner}; {}", release(*.window_end_ms))]
    Duplicate { owner: TaskId, window_end_ms: Option<u64> },
    #[error(
        "nothing is known of {0}: it ended and its history was removed, or it never existed; check \
         the id, the namespace and the URL if it should be there"
    )]
    Forgotten(TaskId),
    #[error(
        "no task has the key {0}: it was not submitted, or it has succeeded and its biz id is \
         free; check the queue, the name and the biz id"
    )]
    NoHolder(String),
    #[error(
        "{0} has succeeded, but no result of it is kept: its handler returns (), so await it with \
         a TaskHandle<()>, or the result_ttl of the task is over"
    )]
    ResultGone(TaskId),
    #[error("{id} was cancelled{}; requeue it if it must run", last_words(.because.as_ref()))]
    Cancelled { id: TaskId, because: Option<AttemptError> },
    #[error("{id} is dead{}", last_words(.last.as_ref()))]
    Dead { id: TaskId, last: Option<AttemptError> },
    #[error("{what} would wait for itself: it waits for {}; it was not {refused}", waits_for(path))]
    WaitsForItself { what: String, path: Vec<TaskId>, refused: &'static str },
    #[error("step {number} of {count} of the flow: {problem}")]
    Step { number: usize, count: usize, problem: Error },
    #[error("{lost}")]
    MemberLost {
        lost: LostMember,
        /// The task, and the group.
        tasks: [TaskId; 2],
    },
    #[error(
        "member {index} (from 0) of the group {group} is {state}, and the group has ended without \
         its result; take GroupResults, and read the end of each member with .read()"
    )]
    MemberFailed { group: TaskId, index: u32, state: TaskState },
    #[error("{}", group_cancelled(&tasks[0], .by.as_ref()))]
    GroupCancelled {
        by: Option<LostMember>,
        /// The group, and the task that has failed.
        tasks: Vec<TaskId>,
    },
    #[error(
        "the group {group} has ended ({state}), so no members can be added; submit these calls as \
         another group"
    )]
    GroupEnded { group: TaskId, state: TaskState },
    #[error(
        "nothing is known of the group {0}: its results were kept for its result_ttl and are \
         removed, or it never existed; check the id, the namespace and the URL if it should be \
         there"
    )]
    GroupForgotten(TaskId),
    #[error(
        "task {task:?}: its biz id {biz_id:?} is held by {owner}, so the flow was not stored; \
         cancel or finish that task first, or give this step another biz id"
    )]
    StepDuplicate { task: String, biz_id: String, owner: TaskId },
    #[error("no result of {id} within {waited:?}; {}", stands(id, *.state, .why.as_deref()))]
    WaitedTooLong {
        id: TaskId,
        waited: Duration,
        state: Option<TaskState>,
        why: Option<Box<Obstacle>>,
    },
    #[error("no permit of {gate} was free within {waited:?}; {}", no_permit_advice(.shut.as_ref()))]
    NoPermit { gate: String, waited: Duration, shut: Option<Shut> },
    #[error("the result of {id} does not fit the expected type: {problem}")]
    WrongResult { id: TaskId, problem: serde_json::Error },
    #[error("the client's runtime has ended; connect again on the one that is running")]
    Closed,
    #[error(
        "the runtime of the installed client has ended; connect and install one on the runtime \
         that is running, or submit through client.submit(call)"
    )]
    InstalledClosed,
    #[error(
        "the worker ended because {0}; its tasks are given back, or taken back \
         once its lease is over; start the worker again"
    )]
    Broken(String),
}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*) => $kind:expr;)*) => {
        /// These constructors are for the other Optimus crates.
        #[doc(hidden)]
        impl Error {
            $($(#[$doc])* pub fn $name($($arg: $ty),*) -> Self { Self(Arc::new($kind)) })*
        }
    };
}

constructors! {
    /// The caller's input or configuration is invalid.
    invalid(what: impl Into<String>) => Kind::Invalid(what.into());
    /// The payload is above the limit.
    too_large(task: &str, bytes: usize, limit: SizeLimit) =>
        Kind::TooLarge { task: task.to_owned(), bytes, limit };
    /// A layer refused the call.
    refused(task: &str, why: BoxError) => Kind::Refused { task: task.to_owned(), why };
    /// Redis, or the database of a service, can't be reached; nothing was done.
    unavailable(what: &'static str, why: impl Into<String>) => Kind::Unavailable(what, why.into());
    /// The submit was sent and not answered, or it was stored and not confirmed.
    unknown_outcome(ids: Vec<TaskId>, why: String) => Kind::UnknownOutcome { ids, why };
    /// An operator's call was sent and not answered.
    unknown_operation(what: String, ids: Vec<TaskId>, why: String) =>
        Kind::UnknownOperation { what, ids, why };
    /// The caller no longer holds the shard.
    shard_lost(shard: String) => Kind::ShardLost(shard);
    /// The store's version or configuration does not support the request.
    unsupported(what: impl Into<String>) => Kind::Unsupported(what.into());
    /// The queue needs newer scripts than those of this program.
    outdated(needs: &str) => Kind::Outdated(needs.to_owned());
    /// Redis is at maxmemory.
    full() => Kind::Full;
    /// Wrong user or password.
    unauthorized(why: impl Into<String>) => Kind::Unauthorized(why.into());
    /// TLS failed, or the server requires it.
    tls(why: impl Into<String>) => Kind::Tls(why.into());
    /// Redis can be reached, but refused the command.
    rejected(why: impl Into<String>) => Kind::Rejected(why.into());
    /// The verb does not apply in this state.
    wrong_state(id: TaskId, state: TaskState, verb: &'static str) =>
        Kind::WrongState { id, state, verb };
    /// Another task holds the biz id.
    duplicate(owner: TaskId, window_end_ms: Option<u64>) =>
        Kind::Duplicate { owner, window_end_ms };
    /// The task would wait for itself, through these tasks, so it was not accepted.
    waits_for_itself(what: String, path: Vec<TaskId>, refused: &'static str) =>
        Kind::WaitsForItself { what, path, refused };
    /// The store has no data about the task.
    forgotten(id: TaskId) => Kind::Forgotten(id);
    /// No task has the biz id.
    no_holder(key: String) => Kind::NoHolder(key);
    /// The task succeeded, and its result is no longer kept.
    result_gone(id: TaskId) => Kind::ResultGone(id);
    /// The task was cancelled.
    cancelled(id: TaskId, because: Option<AttemptError>) => Kind::Cancelled { id, because };
    /// The task ended Dead.
    dead(id: TaskId, last: Option<AttemptError>) => Kind::Dead { id, last };
    /// A step of a flow has failed.
    step(number: usize, count: usize, problem: Error) => Kind::Step { number, count, problem };
    /// A task of a member has failed, and the group waits until it is requeued.
    member_lost(lost: LostMember) =>
        Kind::MemberLost { tasks: [lost.id.clone(), lost.group.clone()], lost };
    /// A member has failed, and the group has ended without it.
    member_failed(group: TaskId, index: u32, state: TaskState) =>
        Kind::MemberFailed { group, index, state };
    /// The group was cancelled, possibly because of a member that has failed.
    group_cancelled(group: TaskId, by: Option<LostMember>) => Kind::GroupCancelled {
        tasks: [group].into_iter().chain(by.iter().map(|by| by.id.clone())).collect(),
        by,
    };
    /// The group has ended, and takes no members.
    group_ended(group: TaskId, state: TaskState) => Kind::GroupEnded { group, state };
    /// The store has no data about the group.
    group_forgotten(group: TaskId) => Kind::GroupForgotten(group);
    /// Another task holds the biz id of a step.
    step_duplicate(task: &str, biz_id: &str, owner: TaskId) =>
        Kind::StepDuplicate { task: task.to_owned(), biz_id: biz_id.to_owned(), owner };
    /// The wait has reached the caller's limit.
    waited_too_long(
        id: TaskId,
        waited: Duration,
        state: Option<TaskState>,
        why: Option<Obstacle>
    ) => Kind::WaitedTooLong { id, waited, state, why: why.map(Box::new) };
    /// No permit was free within the caller's limit, or the gate is paused.
    no_permit(gate: String, waited: Duration, shut: Option<Shut>) =>
        Kind::NoPermit { gate, waited, shut };
    /// The result is of another type.
    wrong_result(id: TaskId, problem: serde_json::Error) => Kind::WrongResult { id, problem };
    /// The background task of the client has ended.
    closed() => Kind::Closed;
    /// The background task of the installed client has ended.
    installed_closed() => Kind::InstalledClosed;
    /// A part that the worker needs has ended.
    broken(why: impl Into<String>) => Kind::Broken(why.into());
}

macro_rules! predicates {
    ($($(#[$doc:meta])* $name:ident => $($kind:pat_param)|+,)*) => {
        impl Error {
            $(
                $(#[$doc])*
                pub fn $name(&self) -> bool {
                    matches!(*self.kind(), $($kind)|+)
                }
            )*
        }
    };
}

predicates! {
    /// Input or configuration is invalid: fix the code that provides it.
    is_invalid => Kind::Invalid(_),
    /// The arguments are above the payload limit.
    is_too_large => Kind::TooLarge { .. },
    /// A [`Layer`](crate::Layer) refused the submit, panicked, or did not return in time. Nothing
    /// was done; see [`Error::refusal`].
    is_refused => Kind::Refused { .. },
    /// Redis, or the database of a relay, can't be reached. Nothing was done; try again later.
    is_unavailable => Kind::Unavailable(..) | Kind::Closed | Kind::InstalledClosed,
    /// The submit may have been done or not, or it was done but not confirmed as
    /// [`Durability`](crate::Durability) requires; see [`Error::task_ids`]. If the error is from an
    /// operator's call, the call may have been done, and is safe to repeat.
    is_unknown_outcome => Kind::UnknownOutcome { .. } | Kind::UnknownOperation { .. },
    /// The worker no longer holds the shard, so nothing was stored.
    is_shard_lost => Kind::ShardLost(_),
    /// The store's version or configuration does not support the request.
    is_unsupported => Kind::Unsupported(_),
    /// Newer programs use the queue, and this program would damage their data. Nothing was done;
    /// upgrade this program.
    is_outdated => Kind::Outdated(_),
    /// Redis is at maxmemory. Nothing was done; try again when workers have run some tasks.
    is_full => Kind::Full,
    /// Wrong user or password.
    is_unauthorized => Kind::Unauthorized(_),
    /// One side uses TLS and the other does not, or one side does not trust the other: a
    /// certificate has expired, is from an unknown CA or for another name, or the client's
    /// certificate is missing. The message names the reason and what to do.
    is_tls => Kind::Tls(_),
    /// Redis was reached, but refused the command (a key of another type, a missing permission).
    is_rejected => Kind::Rejected(_),
    /// The verb does not apply to the task's current state.
    is_wrong_state => Kind::WrongState { .. } | Kind::GroupEnded { .. },
    /// Another task holds the biz id; see [`Error::task_ids`].
    is_duplicate => Kind::Duplicate { .. } | Kind::StepDuplicate { .. },
    /// The task, which was not submitted or not requeued, would wait for itself: through tasks of
    /// its queue, or for its own group or a later step of its flow; see [`Error::task_ids`].
    is_cycle => Kind::WaitsForItself { .. },
    /// The store has no data about the task, or its result is gone.
    is_forgotten => Kind::Forgotten(_)
        | Kind::NoHolder(_)
        | Kind::ResultGone(_)
        | Kind::GroupForgotten(_),
    /// The task was cancelled.
    is_cancelled => Kind::Cancelled { .. }
        | Kind::GroupCancelled { .. }
        | Kind::MemberLost { lost: LostMember { state: TaskState::Cancelled, .. }, .. }
        | Kind::MemberFailed { state: TaskState::Cancelled, .. },
    /// The task ended Dead; see [`Error::attempt_error`].
    is_dead => Kind::Dead { .. }
        | Kind::MemberLost { lost: LostMember { state: TaskState::Dead, .. }, .. }
        | Kind::MemberFailed { state: TaskState::Dead, .. },
    /// A part of the worker panicked, and so the worker has ended. Start it again.
    is_broken => Kind::Broken(_),
    /// The wait took longer than its limit, which does not change the task. The message has the
    /// state of the task.
    is_timeout => Kind::WaitedTooLong { .. } | Kind::NoPermit { .. },
}

impl Error {
    /// Returns what happened; for a step of a flow, what happened to the step.
    fn kind(&self) -> &Kind {
        match &*self.0 {
            Kind::Step { problem, .. } => problem.kind(),
            kind => kind,
        }
    }

    /// Returns the tasks that the error is about. If a group waits for a member that has failed,
    /// these are the task to requeue, and the group. If a group was cancelled because of a member,
    /// these are the group, and the task that has failed.
    pub fn task_ids(&self) -> &[TaskId] {
        match self.kind() {
            Kind::UnknownOutcome { ids, .. }
            | Kind::UnknownOperation { ids, .. }
            | Kind::WaitsForItself { path: ids, .. }
            | Kind::GroupCancelled { tasks: ids, .. } => ids,
            Kind::MemberLost { tasks, .. } => tasks,
            Kind::Duplicate { owner: id, .. }
            | Kind::StepDuplicate { owner: id, .. }
            | Kind::Forgotten(id)
            | Kind::GroupForgotten(id)
            | Kind::GroupEnded { group: id, .. }
            | Kind::ResultGone(id)
            | Kind::WrongState { id, .. }
            | Kind::Cancelled { id, .. }
            | Kind::Dead { id, .. }
            | Kind::MemberFailed { group: id, .. }
            | Kind::WaitedTooLong { id, .. }
            | Kind::WrongResult { id, .. } => std::slice::from_ref(id),
            _ => &[],
        }
    }

    /// Returns the error of the [`Layer`](crate::Layer) that refused the submit.
    pub fn refusal(&self) -> Option<&(dyn error::Error + Send + Sync + 'static)> {
        match self.kind() {
            Kind::Refused { why, .. } => Some(&**why),
            _ => None,
        }
    }

    /// Returns the error of a dead task's last attempt, or the prerequisite because of which a task
    /// was cancelled: an error with [`Reason::Unmet`](crate::Reason::Unmet).
    pub fn attempt_error(&self) -> Option<&AttemptError> {
        match self.kind() {
            Kind::Dead { last: error, .. }
            | Kind::MemberLost { lost: LostMember { error, .. }, .. }
            | Kind::GroupCancelled { by: Some(LostMember { error, .. }), .. }
            | Kind::Cancelled { because: error, .. } => error.as_ref(),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&*self.0, f)
    }
}

/// Prints the same text as `Display`, because `main` prints a returned error with `Debug`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl error::Error for Error {}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
