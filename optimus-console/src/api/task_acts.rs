//! Acts on tasks that are named one by one.

use std::collections::BTreeSet;

use axum::Json;
use futures_util::{StreamExt, stream};
use optimus_core::{Client, Error, Obstacle, QueueName, TaskId, TaskState};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    acts::changed,
    audited::{act_of, audited},
};
use crate::{
    access::Role,
    problem::{ErrorBody, Problem},
    seat::{Seat, Told},
};

/// How many tasks one request names.
const IDS_MAX: usize = 100;
const REQUESTS_MAX: usize = 16;
/// What is said of a requeued task if no more is known.
const REQUEUED: &str = "is requeued";

/// What is done with a task. `requeue`, the word of operations, is taken for `retry`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TaskVerb {
    /// Lets a dead or cancelled task run again, with new attempts: now, or once what it waits for
    /// is over.
    #[serde(alias = "requeue")]
    Retry,
    /// Cancels a task that waits, and asks the worker of a running one to stop it.
    Cancel,
    /// Removes a task that does not run, with all its data.
    Delete,
    /// Lets a delayed task or a retry run now.
    RunNow,
}

/// Which tasks, what, and why.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TasksAct {
    act: TaskVerb,
    /// At most 100 ids: `queue/uuid`. One that is named twice has one answer.
    ids: Vec<String>,
    reason: Option<String>,
}

/// What was done with each task, in the order of the request.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Answers {
    answers: Vec<Answer>,
}

/// What was done with one task.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Answer {
    id: String,
    ok: bool,
    text: String,
}

/// Retries, cancels, deletes or hurries tasks.
#[utoipa::path(post, path = "/api/v1/tasks/act", tag = "act", request_body = TasksAct, responses(
    (status = 200, body = Answers), (status = 400, body = ErrorBody),
    (status = 403, body = ErrorBody)))]
pub(crate) async fn act(seat: Seat, Told(told): Told<TasksAct>) -> Result<Json<Answers>, Problem> {
    let (role, verb) = match told.act {
        TaskVerb::Retry => (Role::Operator, "task.retry"),
        TaskVerb::Cancel => (Role::Operator, "task.cancel"),
        TaskVerb::Delete => (Role::Admin, "task.delete"),
        TaskVerb::RunNow => (Role::Operator, "task.run_now"),
    };
    seat.needs(role)?;
    if !(1..=IDS_MAX).contains(&told.ids.len()) {
        return Err(Problem::invalid(format!("name 1 to {IDS_MAX} tasks in `ids`")));
    }
    let mut ids: Vec<TaskId> =
        told.ids.iter().map(|id| seat.task(id)).collect::<Result<_, Problem>>()?;
    let mut named = BTreeSet::new();
    ids.retain(|id| named.insert(id.clone()));
    let queues: BTreeSet<QueueName> = ids.iter().map(|id| id.queue().clone()).collect();
    let target = ids.iter().map(TaskId::to_string).collect::<Vec<_>>().join(" ");
    let act = act_of(&seat, verb, target, told.reason.as_deref());
    let client = seat.app.client.clone();
    let answers = audited(&seat, act, async move {
        let answers = ask(&client, told.act, ids).await;
        let done = answers.iter().filter(|answer| answer.ok).count();
        let refused = answers.iter().find(|answer| !answer.ok);
        let mut text = format!("{done} of {} done", answers.len());
        if let Some(Answer { id, text: why, .. }) = refused {
            text = format!("{text}; {id}: {why}");
        }
        Ok((answers, text))
    })
    .await?;
    for queue in &queues {
        changed(&seat, queue).await;
    }
    Ok(Json(Answers { answers }))
}

async fn ask(client: &Client, verb: TaskVerb, ids: Vec<TaskId>) -> Vec<Answer> {
    let all = ids.iter().cloned();
    match verb {
        TaskVerb::Retry => {
            let done = client.requeue_all(all).await;
            let texts = requeued(client, &ids, &done).await.into_iter();
            answers(ids, done.into_iter().zip(texts).map(|(answer, text)| answer.map(|()| text)))
        }
        TaskVerb::Cancel => {
            let done = client.cancel_all(all).await.into_iter();
            answers(ids, done.map(|answer| answer.map(|answer| answer.to_string())))
        }
        TaskVerb::Delete => {
            let done = client.delete_all(all).await.into_iter();
            answers(ids, done.map(|answer| answer.map(|answer| answer.to_string())))
        }
        TaskVerb::RunNow => {
            let done = client.run_now_all(all).await.into_iter();
            answers(ids, done.map(|answer| answer.map(|answer| answer.to_string())))
        }
    }
}

/// Says where each task is after a requeue: one that waits for others, its lane or a limit is not
/// Ready.
async fn requeued(client: &Client, ids: &[TaskId], done: &[Result<(), Error>]) -> Vec<String> {
    let pairs: Vec<(TaskId, bool)> =
        ids.iter().zip(done).map(|(id, done)| (id.clone(), done.is_ok())).collect();
    let reads = pairs.into_iter().map(|(id, is_done)| {
        let inspector = client.inspector();
        async move {
            let found = if is_done { inspector.get(&id).await.ok().flatten() } else { None };
            let text = match found.map(|task| task.state) {
                Some(TaskState::Ready) => "is ready again",
                Some(TaskState::Blocked) => {
                    // It may have been explained when nothing blocked it any more.
                    let why = inspector.explain(&id).await.ok();
                    why.and_then(|why| why.obstacles.iter().find_map(waits)).unwrap_or(REQUEUED)
                }
                Some(TaskState::Delayed) => "is requeued, and waits for its time",
                // It runs already, has ended, or could not be read: the requeue is done.
                _ => REQUEUED,
            };
            text.to_owned()
        }
    });
    stream::iter(reads).buffered(REQUESTS_MAX).collect().await
}

/// Says what a blocked task waits for, if this is what blocks it.
fn waits(obstacle: &Obstacle) -> Option<&'static str> {
    match obstacle {
        Obstacle::Prerequisite(_) | Obstacle::Lane { .. } | Obstacle::Run { .. } => {
            Some("is requeued, and waits for other tasks")
        }
        Obstacle::Limit(limit) if limit.shut.is_some() => {
            Some("is requeued, and waits for the end of a pause")
        }
        Obstacle::Limit(_) | Obstacle::Costly { .. } => Some("is requeued, and waits for a limit"),
        _ => None,
    }
}

fn answers(ids: Vec<TaskId>, done: impl Iterator<Item = Result<String, Error>>) -> Vec<Answer> {
    let pairs = ids.into_iter().zip(done);
    pairs
        .map(|(id, done)| {
            let ok = done.is_ok();
            let text = done.unwrap_or_else(|problem| problem.to_string());
            Answer { id: id.to_string(), ok, text }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use optimus_core::{Gate, Utc};

    use super::*;

    #[test]
    fn a_retry_names_a_limit_that_a_task_waits_for_and_no_other_task() {
        let gate = Gate::Named("stripe".into());
        let costly = Obstacle::Costly { gate, cost: 5, tokens: 1, by: Utc::now() };
        assert_eq!(waits(&costly), Some("is requeued, and waits for a limit"));
        let (key, width) = ("tenant-7".into(), NonZeroU16::MIN);
        let lane = Obstacle::Lane { key, holders: vec![], ahead: 1, width, width_set: None };
        assert_eq!(waits(&lane), Some("is requeued, and waits for other tasks"));
        assert_eq!(waits(&Obstacle::NoWorker), None);
    }
}
