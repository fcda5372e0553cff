//! Acts on queues and processes.

use axum::{Json, http::StatusCode};
use optimus_core::{Gate, ProcessAnswer, QueueName, WorkerId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    audited::{act_of, audited},
    processes::find,
};
use crate::{
    access::Role,
    problem::{ErrorBody, Problem},
    seat::{Named, QUEUE_IN_PATH, Seat, Segment, Told},
};

/// Why somebody acts.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Because {
    reason: Option<String>,
}

/// What an act has done.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Said {
    pub(super) text: String,
}

/// Stops the claims of a queue. What runs goes on.
#[utoipa::path(post, path = "/api/v1/queues/{queue}/pause", tag = "act", request_body = Because,
    params(("queue" = String, Path, description = QUEUE_IN_PATH)),
    responses((status = 204, description = "it is paused"), (status = 403, body = ErrorBody)))]
pub(crate) async fn pause(
    seat: Seat,
    Named(Segment(name)): Named<Segment>,
    Told(told): Told<Because>,
) -> Result<StatusCode, Problem> {
    seat.needs(Role::Operator)?;
    let queue = seat.queue(&name)?;
    let act = act_of(&seat, "queue.pause", name, told.reason.as_deref());
    let (client, who, why) = (seat.app.client.clone(), act.who.clone(), act.reason.clone());
    let of = queue.clone();
    audited(&seat, act, async move {
        let answer = client.gate(&of, Gate::Queue).pause(&who, &why).await?;
        Ok(((), format!("paused; the queue {answer}")))
    })
    .await?;
    changed(&seat, &queue).await;
    Ok(StatusCode::NO_CONTENT)
}

/// Restarts the claims of a queue.
#[utoipa::path(post, path = "/api/v1/queues/{queue}/resume", tag = "act", request_body = Because,
    params(("queue" = String, Path, description = QUEUE_IN_PATH)),
    responses((status = 204, description = "it is not paused"), (status = 403, body = ErrorBody)))]
pub(crate) async fn resume(
    seat: Seat,
    Named(Segment(name)): Named<Segment>,
    Told(told): Told<Because>,
) -> Result<StatusCode, Problem> {
    seat.needs(Role::Operator)?;
    let queue = seat.queue(&name)?;
    let act = act_of(&seat, "queue.resume", name, told.reason.as_deref());
    let (client, of) = (seat.app.client.clone(), queue.clone());
    audited(&seat, act, async move {
        let answer = client.resume(&of).await?;
        Ok(((), format!("resumed; the queue {answer}")))
    })
    .await?;
    changed(&seat, &queue).await;
    Ok(StatusCode::NO_CONTENT)
}

/// Lets all who watch see what was changed. If Redis can't be read, they see it a little later.
pub(super) async fn changed(seat: &Seat, queue: &QueueName) {
    let _ = seat.app.sampling.refresh(queue).await;
}

/// What a process is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Wish {
    /// To begin no more tasks.
    Quiet,
    /// To use all its slots again.
    Resume,
    /// To end, as after a first signal.
    Stop,
    /// To run at most `slots` tasks at once.
    Slots,
}

/// What a process is asked for, and why.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProcessAct {
    act: Wish,
    /// How many tasks it may run at once, with `slots`.
    slots: Option<usize>,
    reason: Option<String>,
}

/// Asks a process for something. It obeys within a second, or within 4 minutes if it is idle.
#[utoipa::path(post, path = "/api/v1/processes/{id}/act", tag = "act", request_body = ProcessAct,
    params(("id" = String, Path, description = "the id of the process")),
    responses((status = 200, body = Said), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody)))]
pub(crate) async fn process(
    seat: Seat,
    Named(id): Named<String>,
    Told(told): Told<ProcessAct>,
) -> Result<Json<Said>, Problem> {
    seat.needs(Role::Operator)?;
    let worker: WorkerId = id.parse()?;
    if told.act == Wish::Slots && told.slots.is_none() {
        return Err(Problem::invalid("say how many `slots` it may use"));
    }
    let found = find(&seat, &worker).await?.ok_or_else(|| absent(&worker))?;
    // It serves all of them, so who asks must see all of them.
    if !found.about.queues.iter().all(|queue| seat.identity.queues.take(queue)) {
        let why = format!("{id} also serves queues that are not among yours");
        return Err(Problem::forbidden(why));
    }
    let (verb, promise) = match told.act {
        Wish::Quiet => ("quiet", "begins no more tasks"),
        Wish::Resume => ("resume", "uses all its slots"),
        Wish::Stop => ("stop", "ends"),
        Wish::Slots => ("slots", "uses up to the given number of slots"),
    };
    let act = act_of(&seat, &format!("process.{verb}"), &id, told.reason.as_deref());
    let (client, slots) = (seat.app.client.clone(), told.slots.unwrap_or(0));
    let text = audited(&seat, act, async move {
        let process = client.process(&worker);
        let answer = match told.act {
            Wish::Quiet => process.quiet().await?,
            Wish::Resume => process.resume().await?,
            Wish::Stop => process.stop().await?,
            Wish::Slots => process.slots(slots).await?,
        };
        if answer == ProcessAnswer::Absent {
            return Err(absent(&worker));
        }
        let text = format!("{worker} was asked, and soon {promise}");
        Ok((text.clone(), text))
    })
    .await?;
    Ok(Json(Said { text }))
}

fn absent(worker: &WorkerId) -> Problem {
    Problem::not_found(format!("no process {worker} is there"))
}
