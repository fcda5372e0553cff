//! Acts on lanes, limits, schedules, sharded functions and sources.

use axum::Json;
use optimus_core::{Client, Gate, Limit, PauseAnswer, QueueName};
use serde::Deserialize;
use utoipa::ToSchema;

use super::limit_act::{self, LimitTold};
use crate::{
    access::Role,
    api::{
        acts::{Said, changed},
        audited::{act_of, audited},
    },
    problem::{ErrorBody, Problem},
    seat::{Named, Seat, Told},
};

/// The kinds of things on which somebody can act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Lanes,
    Limits,
    Schedules,
    Shards,
    Sources,
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ThingVerb {
    Pause,
    Resume,
    RunNow,
    /// Sets a limit, instead of the one that tasks declare.
    Set,
    /// Removes a limit that was set, or a schedule with its history.
    Remove,
}

/// Which thing, what, and why.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ThingAct {
    /// The queue of a lane or a limit.
    queue: Option<String>,
    /// The `name` of the row.
    name: String,
    act: ThingVerb,
    /// The limit of `set`.
    limit: Option<LimitTold>,
    reason: Option<String>,
}

/// An act, with what it needs.
#[derive(Debug, Clone, Copy)]
enum Doing {
    Pause,
    Resume,
    RunNow,
    Set(Limit),
    Remove,
}

/// What is acted on.
#[derive(Debug, Clone)]
enum Thing {
    Gate(QueueName, Gate),
    Schedule(String),
    Shards(String),
    Source(String),
}

/// Pauses, resumes or hurries a thing, sets a limit, or removes a limit or a schedule.
#[utoipa::path(post, path = "/api/v1/things/{kind}/act", tag = "act", request_body = ThingAct,
    params(("kind" = inline(Kind), Path, description = "the kind of the thing")),
    responses((status = 200, body = Said), (status = 400, body = ErrorBody),
        (status = 403, body = ErrorBody), (status = 404, body = ErrorBody)))]
pub(crate) async fn act(
    seat: Seat,
    Named(kind): Named<Kind>,
    Told(told): Told<ThingAct>,
) -> Result<Json<Said>, Problem> {
    seat.needs(role_of(kind, told.act))?;
    let doing = doing_of(kind, &told)?;
    let thing = thing_of(&seat, kind, &told).await?;
    let queue = match &thing {
        Thing::Gate(queue, _) => Some(queue.clone()),
        _ => None,
    };
    let (kind, verb) = (kind.singular(), told.act.as_str());
    let target = match &queue {
        Some(queue) => format!("{queue} {}", told.name),
        None => told.name.clone(),
    };
    let note = act_of(&seat, &format!("{kind}.{verb}"), target, told.reason.as_deref());
    let (client, who, why) = (seat.app.client.clone(), note.who.clone(), note.reason.clone());
    let text = audited(&seat, note, async move {
        let text = done(&client, thing, doing, (&who, &why)).await?;
        Ok((text.clone(), text))
    })
    .await?;
    if let Some(queue) = &queue {
        changed(&seat, queue).await;
    }
    Ok(Json(Said { text }))
}

/// Returns who may do it. A limit that was removed can be set again, but nothing brings back a
/// schedule that no code has.
fn role_of(kind: Kind, act: ThingVerb) -> Role {
    if (kind, act) == (Kind::Schedules, ThingVerb::Remove) { Role::Admin } else { Role::Operator }
}

fn doing_of(kind: Kind, told: &ThingAct) -> Result<Doing, Problem> {
    let is_possible = match told.act {
        ThingVerb::Set => kind == Kind::Limits,
        ThingVerb::Remove => matches!(kind, Kind::Limits | Kind::Schedules),
        _ => true,
    };
    if !is_possible {
        return Err(misfit());
    }
    Ok(match (told.act, &told.limit) {
        (ThingVerb::Set, Some(limit)) => Doing::Set(limit.read()?),
        (ThingVerb::Set, None) => return Err(Problem::invalid("name the `limit`")),
        (_, Some(_)) => return Err(Problem::invalid("only `set` has a `limit`")),
        (ThingVerb::Pause, None) => Doing::Pause,
        (ThingVerb::Resume, None) => Doing::Resume,
        (ThingVerb::RunNow, None) => Doing::RunNow,
        (ThingVerb::Remove, None) => Doing::Remove,
    })
}

async fn thing_of(seat: &Seat, kind: Kind, told: &ThingAct) -> Result<Thing, Problem> {
    let name = told.name.clone();
    let of_queue = || {
        let queue = told.queue.as_deref();
        seat.queue(queue.ok_or_else(|| Problem::invalid("name the `queue`"))?)
    };
    Ok(match kind {
        Kind::Lanes => Thing::Gate(of_queue()?, format!("lane:{name}").parse()?),
        Kind::Limits => Thing::Gate(of_queue()?, name.parse()?),
        Kind::Schedules => {
            let found = seat.app.client.schedules().get(&name).await?;
            let found = found.ok_or_else(|| absent("schedule", &name))?;
            seat.sees(&found.queue).map_err(|_| absent("schedule", &name))?;
            Thing::Schedule(name)
        }
        Kind::Shards => {
            seat.sees_all("sharded functions")?;
            // The store keeps a pause of any name, for a function that is deployed later.
            let known = seat.app.client.shard_names().await?;
            is_known(&known, "sharded function", &name)?;
            Thing::Shards(name)
        }
        Kind::Sources => {
            seat.sees_all("sources")?;
            is_known(&seat.app.client.sources().await?, "source", &name)?;
            Thing::Source(name)
        }
    })
}

/// Refuses a name that no worker has served.
fn is_known(known: &[String], kind: &str, name: &str) -> Result<(), Problem> {
    let found = known.iter().any(|known| known == name);
    if found { Ok(()) } else { Err(absent(kind, name)) }
}

fn misfit() -> Problem {
    Problem::invalid("only limits can be set, and only limits and schedules can be removed")
}

fn absent(kind: &str, name: &str) -> Problem {
    Problem::not_found(format!("there is no {kind} {name:?}"))
}

fn said(is_done: Option<()>, done: &str, otherwise: &str) -> String {
    if is_done.is_some() { done.to_owned() } else { otherwise.to_owned() }
}

fn paused(answer: PauseAnswer) -> String {
    known(if answer.is_changed { "paused" } else { "it was paused before" }, answer)
}

fn resumed(answer: PauseAnswer) -> String {
    known(if answer.is_changed { "resumed" } else { "it was not paused" }, answer)
}

/// Adds what may be wrong with the name.
fn known(done: &str, answer: PauseAnswer) -> String {
    if answer.is_known { done.to_owned() } else { format!("{done}; it {answer}") }
}

async fn done(
    client: &Client,
    thing: Thing,
    act: Doing,
    (who, why): (&str, &str),
) -> Result<String, Problem> {
    let changed = |is_changed: bool| is_changed.then_some(());
    Ok(match (thing, act) {
        (Thing::Gate(queue, gate), Doing::Pause) => {
            format!("paused; it {}", client.gate(queue, gate).pause(who, why).await?)
        }
        (Thing::Gate(queue, gate), Doing::Resume) => {
            format!("resumed; it {}", client.gate(queue, gate).resume().await?)
        }
        (Thing::Gate(queue, gate), Doing::Set(limit)) => {
            limit_act::set(client, queue, gate, limit).await?
        }
        (Thing::Gate(queue, gate), Doing::Remove) => limit_act::remove(client, queue, gate).await?,
        (Thing::Schedule(name), Doing::Pause) => {
            let is_new = client.schedules().pause_because(&name, who, why).await?;
            said(changed(is_new), "paused", "it was paused before, or is not there")
        }
        (Thing::Schedule(name), Doing::Resume) => {
            let was_paused = client.schedules().resume(&name).await?;
            said(changed(was_paused), "resumed", "it was not paused")
        }
        (Thing::Schedule(name), Doing::RunNow) => {
            let id = client.schedules().run_now(&name).await?;
            let id = id.ok_or_else(|| absent("schedule", &name))?;
            format!("submitted {id}")
        }
        (Thing::Schedule(name), Doing::Remove) => {
            let is_gone = client.schedules().remove(&name).await?;
            changed(is_gone).ok_or_else(|| absent("schedule", &name))?;
            "removed".to_owned()
        }
        (Thing::Shards(name), Doing::Pause) => {
            paused(client.shards(name).because(who, why).pause_all().await?)
        }
        (Thing::Shards(name), Doing::Resume) => {
            resumed(client.shards(name).because(who, why).resume().await?)
        }
        (Thing::Source(name), Doing::Pause) => {
            paused(client.source(name).because(who, why).pause().await?)
        }
        (Thing::Source(name), Doing::Resume) => {
            resumed(client.source(name).because(who, why).resume().await?)
        }
        (Thing::Source(name), Doing::RunNow) => {
            client.source(name).scan_now().await?;
            "its workers read it now".to_owned()
        }
        (Thing::Gate(..) | Thing::Shards(_), Doing::RunNow) => {
            return Err(Problem::invalid("only schedules and sources can run now"));
        }
        (_, Doing::Set(_) | Doing::Remove) => return Err(misfit()),
    })
}

impl Kind {
    fn singular(self) -> &'static str {
        match self {
            Self::Lanes => "lane",
            Self::Limits => "limit",
            Self::Schedules => "schedule",
            Self::Shards => "shards",
            Self::Sources => "source",
        }
    }
}

impl ThingVerb {
    fn as_str(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::RunNow => "run_now",
            Self::Set => "set",
            Self::Remove => "remove",
        }
    }
}
