//! What belongs to a queue: lanes, limits, groups and schedules.

use axum::Json;
use optimus_core::{
    AuditRow, Error, GroupDetails, LaneDetails, LimitDetails, QueueName, ScheduleCursor,
    ScheduleDetails, WorkerDetails,
};

use super::{ROWS_A_QUEUE, ThingsOf, more_row, queues_of, rows_of};
use tokio::sync::OnceCell;

use crate::{
    access::{Payloads, Role},
    api::page::{Page, cursor},
    problem::{ErrorBody, Problem},
    seat::{Asked, Seat},
    view::{Fact, ThingRow, line_shown, pause_shown},
};

/// Lists the lanes in which tasks wait, the one that has waited longest first.
#[utoipa::path(get, path = "/api/v1/lanes", tag = "things", params(ThingsOf), responses(
    (status = 200, body = Page<ThingRow>), (status = 403, body = ErrorBody)))]
pub(crate) async fn lanes(
    seat: Seat,
    Asked(asked): Asked<ThingsOf>,
) -> Result<Json<Page<ThingRow>>, Problem> {
    let queues = queues_of(&seat, &asked, |row| row.counts.blocked > 0).await?;
    let (inspector, payloads) = (&seat.inspector(), seat.payloads());
    let page = rows_of(queues, |queue| async move {
        let lanes = inspector.lanes(&queue, ROWS_A_QUEUE).await?;
        let mut rows: Vec<_> = lanes.iter().map(|lane| lane_row(&queue, lane, payloads)).collect();
        if lanes.len() >= ROWS_A_QUEUE {
            rows.push(more_of(&queue, "lanes"));
        }
        Ok(rows)
    });
    Ok(Json(page.await?))
}

fn lane_row(queue: &QueueName, lane: &LaneDetails, payloads: Payloads) -> ThingRow {
    ThingRow {
        title: lane.key.clone(),
        name: lane.key.clone(),
        queue: Some(queue.to_string()),
        state: lane_state(lane, payloads),
        facts: [
            Some(Fact::new("waiting", lane.waiting)),
            Some(Fact::at("since", lane.since)),
            (!lane.holders.is_empty()).then(|| Fact::tasks("holders", &lane.holders)),
            (!lane.dead.is_empty()).then(|| Fact::tasks("dead", &lane.dead)),
            Fact::of("width", lane.width_set),
        ]
        .into_iter()
        .flatten()
        .collect(),
        acts: vec![if lane.shut.is_some() { "resume" } else { "pause" }],
    }
}

/// Says whether the tasks of a lane go on. A dead task keeps its place, and each of a lane of some
/// width may.
fn lane_state(lane: &LaneDetails, payloads: Payloads) -> String {
    match (&lane.shut, &lane.dead[..]) {
        (Some(shut), _) => pause_shown(shut, payloads).to_string(),
        (None, [_, ..]) if lane.dead.len() == lane.holders.len() => {
            "blocked by dead tasks: requeue or delete them".to_owned()
        }
        (None, _) => "open".to_owned(),
    }
}

/// Lists the limits that were set, are paused, keep tasks waiting, or are declared.
#[utoipa::path(get, path = "/api/v1/limits", tag = "things", params(ThingsOf), responses(
    (status = 200, body = Page<ThingRow>), (status = 403, body = ErrorBody)))]
pub(crate) async fn limits(
    seat: Seat,
    Asked(asked): Asked<ThingsOf>,
) -> Result<Json<Page<ThingRow>>, Problem> {
    let queues = queues_of(&seat, &asked, |_| true).await?;
    let (inspector, payloads) = (&seat.inspector(), seat.payloads());
    // The acts are read with the first limit that somebody has set.
    let setters = &OnceCell::new();
    let page = rows_of(queues, |queue| async move {
        let limits = inspector.limits(&queue, ROWS_A_QUEUE).await?;
        let mut rows = Vec::new();
        for limit in &limits {
            let mut row = limit_row(&queue, limit, payloads);
            if limit.is_set {
                let setters = setters.get_or_try_init(|| inspector.limit_setters()).await?;
                row.facts.extend(set_by(setters.of(&queue, &limit.gate, &limit.limit), payloads));
            }
            rows.push(row);
        }
        if limits.len() >= ROWS_A_QUEUE {
            rows.push(more_of(&queue, "limits"));
        }
        Ok(rows)
    });
    Ok(Json(page.await?))
}

/// Says that not all lanes, limits, groups or schedules of a queue were read.
fn more_of(queue: &QueueName, things: &str) -> ThingRow {
    let state =
        format!("queue {queue} may have more {things} than the {ROWS_A_QUEUE} that were read");
    more_row(Some(queue), state)
}

/// Who has set a limit, and when.
fn set_by(act: Option<&AuditRow>, payloads: Payloads) -> impl Iterator<Item = Fact> {
    let facts = act.map(|AuditRow { at, act, .. }| {
        let why = line_shown(&act.reason, payloads);
        let why = if why.is_empty() { why } else { format!(" ({why})") };
        [Fact::new("set by", format!("{}{why}", act.who)), Fact::at("set at", *at)]
    });
    facts.into_iter().flatten()
}

fn limit_row(queue: &QueueName, found: &LimitDetails, payloads: Payloads) -> ThingRow {
    let shut = found.shut.as_ref();
    let paused = |shut| pause_shown(shut, payloads).to_string();
    let rate = found.limit.rate_limit();
    ThingRow {
        title: found.gate.to_string(),
        name: found.gate.text(),
        queue: Some(queue.to_string()),
        state: shut.map_or_else(|| "open".to_owned(), paused),
        facts: [
            Fact::of("rate", rate),
            rate.map(|_| Fact::new("burst", found.limit.burst_limit())),
            Fact::of("max_working", found.limit.max_working_limit()),
            Some(Fact::new("working", found.working)),
            Some(Fact::new("waiting", found.waiting)),
            Fact::of("tokens", found.tokens),
            found.next.map(|at| Fact::at("next", at)),
            Some(Fact::new("from", if found.is_set { "operator" } else { "code" })),
        ]
        .into_iter()
        .flatten()
        .collect(),
        acts: [if shut.is_some() { "resume" } else { "pause" }, "set"]
            .into_iter()
            .chain(found.is_set.then_some("remove"))
            .collect(),
    }
}

/// Lists the groups of a queue, or the first ones of each queue.
#[utoipa::path(get, path = "/api/v1/groups", tag = "things", params(ThingsOf), responses(
    (status = 200, body = Page<ThingRow>), (status = 403, body = ErrorBody)))]
pub(crate) async fn groups(
    seat: Seat,
    Asked(asked): Asked<ThingsOf>,
) -> Result<Json<Page<ThingRow>>, Problem> {
    let queues = queues_of(&seat, &asked, |_| true).await?;
    if asked.queue.is_some()
        && let Some(queue) = queues.0.first()
    {
        let after = cursor(asked.after.as_deref())?;
        let page = seat.inspector().groups(queue, after.as_ref(), ROWS_A_QUEUE).await?;
        let next = page.next.map(|next| next.to_string());
        return Ok(Json(Page::new(page.rows.iter().map(group_row).collect(), next)));
    }
    let inspector = &seat.inspector();
    let page = rows_of(queues, |queue| async move {
        let page = inspector.groups(&queue, None, ROWS_A_QUEUE).await?;
        let more = page.next.map(|_| more_of(&queue, "groups"));
        Ok(page.rows.iter().map(group_row).chain(more).collect())
    });
    Ok(Json(page.await?))
}

fn group_row(group: &GroupDetails) -> ThingRow {
    let progress = &group.progress;
    ThingRow {
        title: group.id.to_string(),
        name: group.id.to_string(),
        queue: Some(group.id.queue().to_string()),
        state: progress.to_string(),
        facts: vec![
            Fact::new("members", progress.total),
            Fact::new("ended", progress.done),
            Fact::new("failed", progress.failed),
            Fact::new("waited for", progress.lost),
            Fact::at("kept until", group.kept_until),
        ],
        acts: Vec::new(),
    }
}

/// Lists the schedules of a queue, or the first ones of each queue.
#[utoipa::path(get, path = "/api/v1/schedules", tag = "things", params(ThingsOf), responses(
    (status = 200, body = Page<ThingRow>), (status = 403, body = ErrorBody)))]
pub(crate) async fn schedules(
    seat: Seat,
    Asked(asked): Asked<ThingsOf>,
) -> Result<Json<Page<ThingRow>>, Problem> {
    let queues = queues_of(&seat, &asked, |_| true).await?;
    if asked.queue.is_some()
        && let Some(queue) = queues.0.first()
    {
        let after = cursor(asked.after.as_deref())?;
        return Ok(Json(schedules_of(&seat, queue, after.as_ref()).await?));
    }
    let seat = &seat;
    let page = rows_of(queues, |queue| async move {
        let mut page = schedules_of(seat, &queue, None).await?;
        page.rows.extend(page.next.map(|_| more_of(&queue, "schedules")));
        Ok(page.rows)
    });
    Ok(Json(page.await?))
}

async fn schedules_of(
    seat: &Seat,
    queue: &QueueName,
    after: Option<&ScheduleCursor>,
) -> Result<Page<ThingRow>, Error> {
    let page = seat.app.client.schedules().list(queue, after, ROWS_A_QUEUE).await?;
    let workers = if page.rows.iter().any(ScheduleDetails::is_overdue) {
        seat.inspector().workers(queue).await?
    } else {
        Vec::new()
    };
    let rows = page.rows.iter().map(|found| schedule_row(found, &workers, seat));
    Ok(Page::new(rows.collect(), page.next.map(|next| next.to_string())))
}

fn schedule_row(found: &ScheduleDetails, workers: &[WorkerDetails], seat: &Seat) -> ThingRow {
    let why = Some(line_shown(&found.paused_why, seat.payloads())).filter(|why| !why.is_empty());
    let why = why.map_or_else(String::new, |why| format!(" ({why})"));
    let unreadable = found.record.as_ref().err();
    let unreadable = unreadable.map(|problem| line_shown(&problem.to_string(), seat.payloads()));
    let state = match (&found.paused, found.overdue(workers)) {
        (Some((_, by)), _) if by.is_empty() => format!("paused{why}"),
        (Some((_, by)), _) => format!("paused by {by}{why}"),
        (None, Some(overdue)) => overdue.to_string(),
        (None, None) => "active".to_owned(),
    };
    let mut acts = vec![if found.paused.is_some() { "resume" } else { "pause" }, "run_now"];
    // One that is ticked would run on, or come back from the code.
    if found.is_orphaned() && seat.needs(Role::Admin).is_ok() {
        acts.push("remove");
    }
    ThingRow {
        title: found.name.clone(),
        name: found.name.clone(),
        queue: Some(found.queue.to_string()),
        state,
        facts: [
            Some(Fact::new("pace", &found.pace)),
            Fact::of("task", found.record.as_ref().ok().map(|record| &record.task)),
            found.next.map(|at| Fact::at("next", at)),
            found.last.map(|at| Fact::at("last", at)),
            found.last_id.as_ref().map(|id| Fact::tasks("last task", [id])),
            Fact::of("release", found.release.as_ref()),
            Fact::of("unreadable", unreadable),
        ]
        .into_iter()
        .flatten()
        .collect(),
        acts,
    }
}
