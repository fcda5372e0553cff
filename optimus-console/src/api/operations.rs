//! Changes of many tasks: counted first, then confirmed.

use std::time::Duration;

use axum::Json;
use optimus_core::{
    AuditAct, Operation, OperationAct, OperationError, OperationFilter, OperationState, Reason,
    TaskState, Value,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::audited::{act_of, audited};
use crate::{
    access::{Payloads, Role},
    carrying::carry,
    problem::{ErrorBody, Problem},
    redact::{is_secret, redact_text},
    seat::{Named, Seat, Told},
    view::{OperationRow, confirmed_line, is_seen, operation_line},
};

/// How many operations are listed.
const ROWS_MAX: usize = 100;

/// What is done with each task. `retry`, the word of acts on named tasks, is taken for `requeue`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BulkAct {
    #[serde(alias = "retry")]
    Requeue,
    Cancel,
    Delete,
    RunNow,
}

/// Which tasks. They must match all that is given.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct BulkFilter {
    /// Tasks of this queue; without it, of all queues.
    queue: Option<String>,
    /// Tasks in this state; without it, in each state that the act can change.
    state: Option<String>,
    task: Option<String>,
    fingerprint: Option<String>,
    /// How the last attempt ended: `failed`, `timed_out`, `panicked`, `lost` or another reason.
    cause: Option<String>,
    /// `tenant=acme`, or `tenant` for any value.
    header: Option<String>,
    older_ms: Option<u64>,
    /// A text in the last error, as it is stored.
    text: Option<String>,
}

/// A change of many tasks.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BulkOrder {
    act: BulkAct,
    filter: BulkFilter,
    reason: Option<String>,
}

/// A confirmation.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Confirmation {
    /// The number of tasks that was counted.
    expect: u64,
    /// Without it, the reason that was given when the tasks were counted.
    reason: Option<String>,
}

/// Why an operation is cancelled.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelOrder {
    reason: Option<String>,
}

/// The operations, the latest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OperationsPage {
    rows: Vec<OperationRow>,
}

impl From<OperationError> for Problem {
    fn from(problem: OperationError) -> Self {
        match problem {
            OperationError::Store(problem) => problem.into(),
            OperationError::Unknown { .. } => Self::not_found(problem.to_string()),
            problem => Self::refused(problem.to_string()),
        }
    }
}

impl BulkAct {
    fn of(self) -> OperationAct {
        match self {
            Self::Requeue => OperationAct::Requeue,
            Self::Cancel => OperationAct::Cancel,
            Self::Delete => OperationAct::Delete,
            Self::RunNow => OperationAct::RunNow,
        }
    }
}

fn given(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

/// Returns what a field of a filter has. If an empty text were left out, all tasks would match,
/// which is more than the sender may mean.
fn wanted(field: &str, text: Option<String>) -> Result<Option<String>, Problem> {
    if text.as_deref() == Some("") {
        return Err(Problem::invalid(format!("`{field}` of the filter is empty; leave it out")));
    }
    Ok(text)
}

/// Reads the word of a reason, as errors have it.
fn cause_of(word: &str) -> Result<Reason, Problem> {
    serde_json::from_value(Value::from(word)).map_err(|_| {
        Problem::invalid(format!(
            "{word:?} is not the cause of an end; name the `reason` of an error, such as `lost`"
        ))
    })
}

fn role_of(act: OperationAct) -> Role {
    if act == OperationAct::Delete { Role::Admin } else { Role::Operator }
}

impl BulkFilter {
    fn of(self, seat: &Seat, act: OperationAct) -> Result<OperationFilter, Problem> {
        let states: Vec<TaskState> = match wanted("state", self.state)? {
            Some(state) => vec![state.parse()?],
            None => act.states().to_vec(),
        };
        let mut states = states.into_iter();
        let first = states.next().ok_or_else(|| Problem::invalid("name a state"))?;
        let mut filter = states.fold(OperationFilter::of(first), OperationFilter::or);
        match wanted("queue", self.queue)? {
            Some(queue) => filter = filter.queue(seat.queue(&queue)?)?,
            None => seat.sees_all("operations on all queues")?,
        }
        if let Some(task) = wanted("task", self.task)? {
            filter = filter.task(task);
        }
        if let Some(print) = wanted("fingerprint", self.fingerprint)? {
            filter = filter.fingerprint(print.parse()?);
        }
        if let Some(cause) = wanted("cause", self.cause)? {
            filter = filter.cause(cause_of(&cause)?);
        }
        // Who counts tasks by a text learns whether it is in what they may not see.
        let sees_secrets = seat.payloads() == Payloads::Full;
        if let Some(text) = wanted("text", self.text)? {
            if !sees_secrets {
                let why =
                    "only those who see errors in full may filter by a text; use `fingerprint`";
                return Err(Problem::forbidden(why));
            }
            filter = filter.text(text);
        }
        if let Some(header) = wanted("header", self.header)? {
            let (name, value) = match header.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (header, None),
            };
            let is_hidden = |value: &String| is_secret(&name) || redact_text(value).1;
            if value.as_ref().is_some_and(is_hidden) && !sees_secrets {
                return Err(Problem::forbidden(format!("the value of {name} is not shown to you")));
            }
            filter = filter.header(name, value);
        }
        Ok(match self.older_ms {
            Some(ms) => filter.older(Duration::from_millis(ms)),
            None => filter,
        })
    }
}

/// Lists operations.
#[utoipa::path(get, path = "/api/v1/operations", tag = "operations", responses(
    (status = 200, body = OperationsPage)))]
pub(crate) async fn list(seat: Seat) -> Result<Json<OperationsPage>, Problem> {
    let found = seat.app.client.operations().list(ROWS_MAX).await?;
    let reader = seat.reader();
    let seen = found.iter().filter(|operation| is_seen(operation, &seat.identity));
    let rows = seen.map(|operation| OperationRow::of(operation, reader)).collect();
    Ok(Json(OperationsPage { rows }))
}

/// Shows one operation.
#[utoipa::path(get, path = "/api/v1/operations/{id}", tag = "operations",
    params(("id" = String, Path, description = "the id of the operation")),
    responses((status = 200, body = OperationRow), (status = 404, body = ErrorBody)))]
pub(crate) async fn show(
    seat: Seat,
    Named(id): Named<String>,
) -> Result<Json<OperationRow>, Problem> {
    let operation = find(&seat, &id).await?;
    Ok(Json(OperationRow::of(&operation, seat.reader())))
}

async fn find(seat: &Seat, id: &str) -> Result<Operation, Problem> {
    let found = seat.app.client.operations().get(id).await?;
    let found = found.filter(|operation| is_seen(operation, &seat.identity));
    found.ok_or_else(|| Problem::not_found(format!("there is no operation {id:?} of your queues")))
}

/// Counts the tasks that match. Nothing is changed. If this takes long, the answer is still
/// `counting`.
#[utoipa::path(post, path = "/api/v1/operations", tag = "operations", request_body = BulkOrder,
    responses((status = 200, body = OperationRow), (status = 400, body = ErrorBody),
        (status = 403, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub(crate) async fn count(
    seat: Seat,
    Told(told): Told<BulkOrder>,
) -> Result<Json<OperationRow>, Problem> {
    let act = told.act.of();
    seat.needs(role_of(act))?;
    let target = told.filter.queue.clone().unwrap_or_else(|| "all queues".to_owned());
    let filter = told.filter.of(&seat, act)?;
    let note = act_of(&seat, "operation.count", target, told.reason.as_deref());
    begin(&seat, note, act, filter).await
}

/// Counts the tasks that an operation has cancelled, so that they can be requeued: the answer is
/// another operation. Nothing is changed before that one is confirmed.
#[utoipa::path(post, path = "/api/v1/operations/{id}/undo", tag = "operations",
    params(("id" = String, Path, description = "the id of the operation")),
    request_body = CancelOrder,
    responses((status = 200, body = OperationRow), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub(crate) async fn undo(
    seat: Seat,
    Named(id): Named<String>,
    Told(told): Told<CancelOrder>,
) -> Result<Json<OperationRow>, Problem> {
    let found = find(&seat, &id).await?;
    seat.needs(role_of(OperationAct::Requeue))?;
    let filter = found.undo().ok_or_else(|| {
        Problem::refused(format!(
            "operation {id} can't be undone: it has cancelled no task, and only cancelled tasks \
             can go back"
        ))
    })?;
    let target = format!("{id}: {}", operation_line(&found));
    let reason = given(told.reason).unwrap_or_else(|| format!("undo of {id}"));
    let note = act_of(&seat, "operation.undo", target, Some(&reason));
    begin(&seat, note, OperationAct::Requeue, filter).await
}

/// Counts the tasks of a new operation.
async fn begin(
    seat: &Seat,
    note: AuditAct,
    act: OperationAct,
    filter: OperationFilter,
) -> Result<Json<OperationRow>, Problem> {
    let operations = seat.app.client.operations();
    let (who, why) = (note.who.clone(), note.reason.clone());
    let operation = audited(seat, note, async move {
        let operation = operations.count_because(act, filter, who, why).await?;
        let so_far = if operation.state == OperationState::Counting { " so far" } else { "" };
        let line = operation_line(&operation);
        let Operation { id, matched, .. } = &operation;
        let text = format!("{id} counts {matched} tasks{so_far}: {line}");
        Ok((operation, text))
    })
    .await?;
    if operation.state == OperationState::Counting {
        carry(&seat.app, operation.id.clone());
    }
    seat.app.sampling.refresh_operations(&seat.app.client).await;
    Ok(Json(OperationRow::of(&operation, seat.reader())))
}

/// Lets a counted operation change its tasks, if `expect` is the number that it has counted.
#[utoipa::path(post, path = "/api/v1/operations/{id}/confirm", tag = "operations",
    params(("id" = String, Path, description = "the id of the operation")),
    request_body = Confirmation,
    responses((status = 200, body = OperationRow), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub(crate) async fn confirm(
    seat: Seat,
    Named(id): Named<String>,
    Told(told): Told<Confirmation>,
) -> Result<Json<OperationRow>, Problem> {
    let found = find(&seat, &id).await?;
    seat.needs(role_of(found.act))?;
    let target = format!("{id}: {}", confirmed_line(&found));
    let reason = given(told.reason).unwrap_or_else(|| found.reason.clone());
    let act = act_of(&seat, "operation.confirm", target, Some(&reason));
    let (operations, why, of) =
        (seat.app.client.operations(), act.reason.clone(), found.id.clone());
    let operation = audited(&seat, act, async move {
        let operation = operations.confirm(&of, told.expect, why).await?;
        Ok((operation, format!("confirmed for {} tasks", told.expect)))
    })
    .await?;
    carry(&seat.app, operation.id.clone());
    seat.app.sampling.refresh_operations(&seat.app.client).await;
    Ok(Json(OperationRow::of(&operation, seat.reader())))
}

/// Cancels an operation. What was changed stays changed.
#[utoipa::path(post, path = "/api/v1/operations/{id}/cancel", tag = "operations",
    params(("id" = String, Path, description = "the id of the operation")),
    request_body = CancelOrder,
    responses((status = 200, body = OperationRow), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub(crate) async fn cancel(
    seat: Seat,
    Named(id): Named<String>,
    Told(told): Told<CancelOrder>,
) -> Result<Json<OperationRow>, Problem> {
    let found = find(&seat, &id).await?;
    seat.needs(role_of(found.act))?;
    let target = format!("{id}: {}", operation_line(&found));
    let act = act_of(&seat, "operation.cancel", target, told.reason.as_deref());
    let (operations, of) = (seat.app.client.operations(), found.id.clone());
    let operation = audited(&seat, act, async move {
        let operation = operations.cancel(&of).await?;
        let text = operation.text();
        Ok((operation, text))
    })
    .await?;
    seat.app.sampling.refresh_operations(&seat.app.client).await;
    Ok(Json(OperationRow::of(&operation, seat.reader())))
}
