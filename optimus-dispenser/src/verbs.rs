//! The requests, one verb of a dispenser each.

use std::sync::Arc;

use axum::{
    body::to_bytes,
    extract::{
        Path, Query, Request, State,
        rejection::{PathRejection, QueryRejection},
    },
    http::{HeaderMap, StatusCode, header},
    response::Response,
};
use optimus_core::{Dispenser, ONCE_BYTES_MAX};
use serde_json::{Value, json as value};

use crate::{
    answers,
    node::shown,
    page::{List, Page},
    problem::Problem,
    requests::Body,
    settings::Settings,
    tokens::Caller,
};

const ONLY_OPERATORS: &str = "only an operator may do this; use the token of an operator";
const ONLY_ASSIGNEES: &str = "an operator holds no items; use the token of an assignee";
const NOT_ANOTHER: &str = "an assignee can't act for another one";

/// Right bodies, for messages.
const ITEMS: &str = "{\"items\":[\"photo-1\"]}";
const NAMED: &str = "{\"assignee\":\"ann\"}";

/// Answers a verb.
pub(crate) async fn post(
    State(settings): State<Arc<Settings>>,
    path: Result<Path<(String, String)>, PathRejection>,
    request: Request,
) -> Result<Response, Problem> {
    let caller = caller_of(&settings, request.headers())?;
    let Path((name, verb)) = path.map_err(|_| Problem::no_such_path())?;
    let verb = Verb::from_name(&verb).ok_or_else(Problem::no_verb)?;
    let dispenser = dispenser_of(&settings, &name)?;
    let dispenser = match (once_of(request.headers())?, &caller) {
        (Some(once), Caller::Assignee(_)) => dispenser.clone().once(once),
        // An operator acts for others. So its keys are apart from theirs.
        (Some(once), Caller::Operator(name)) => dispenser.clone().once_by(name, once),
        (None, _) => dispenser.clone(),
    };
    let most = settings.body_bytes_max;
    let body = to_bytes(request.into_body(), most).await;
    let body = body.map_err(|_| Problem::too_large(most))?;
    let answer = match (&caller, verb) {
        (Caller::Assignee(name), Verb::Release) => release(&dispenser, Some(name), &body).await?,
        (Caller::Operator(_), Verb::Release) => release(&dispenser, None, &body).await?,
        (Caller::Assignee(name), verb) => of_assignee(&dispenser, name, verb, &body).await?,
        (Caller::Operator(_), verb) => of_operator(&dispenser, verb, &body).await?,
    };
    Ok(answers::json(StatusCode::OK, &answer))
}

/// Answers a peek.
pub(crate) async fn peek(
    State(settings): State<Arc<Settings>>,
    path: Result<Path<String>, PathRejection>,
    query: Result<Query<Vec<(String, String)>>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let caller = caller_of(&settings, &headers)?;
    let Path(name) = path.map_err(|_| Problem::no_such_path())?;
    let dispenser = dispenser_of(&settings, &name)?;
    let Query(parameters) = query.map_err(|problem| Problem::invalid(problem.body_text()))?;
    let Page { list, skip, limit } = Page::read(&parameters)?;
    let answer = match (list, caller) {
        (None, _) => answers::details(dispenser.peek().await?),
        (Some(_), Caller::Assignee(_)) => return Err(Problem::forbidden(ONLY_OPERATORS)),
        (Some(List::Open), _) => answers::open(&dispenser.open_items(skip, limit).await?),
        (Some(List::Assigned), _) => {
            answers::assigned(&dispenser.assigned_items(skip, limit).await?)
        }
        (Some(List::Assignees), _) => answers::assignees(&dispenser.assignees(skip, limit).await?),
    };
    Ok(answers::json(StatusCode::OK, &answer))
}

#[derive(Debug, Clone, Copy)]
enum Verb {
    Assign,
    Check,
    Done,
    GiveBack,
    Release,
    Add,
    Rebuild,
}

impl Verb {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "assign" => Self::Assign,
            "check" => Self::Check,
            "done" => Self::Done,
            "give_back" => Self::GiveBack,
            "release" => Self::Release,
            "add" => Self::Add,
            "rebuild" => Self::Rebuild,
            _ => return None,
        })
    }
}

async fn of_assignee(
    dispenser: &Dispenser,
    name: &str,
    verb: Verb,
    body: &[u8],
) -> Result<Value, Problem> {
    Ok(match verb {
        Verb::Assign => {
            let count = Body::read(body, &["count"], "{\"count\":20}")?.count()?;
            answers::held(&dispenser.assign(name, count).await?)
        }
        Verb::Check => {
            let items = Body::read(body, &["items"], ITEMS)?.ids_if_any()?;
            let held = dispenser.check(name).await?;
            let mut answer = answers::held(&held);
            if let Some(items) = items {
                answer["exactly"] = held.are_exactly(items).into();
            }
            answer
        }
        Verb::Done => {
            let items = Body::read(body, &["items"], ITEMS)?.ids()?;
            answers::settled(&dispenser.done(name, items).await?)
        }
        Verb::GiveBack => {
            let items = Body::read(body, &["items"], ITEMS)?.ids()?;
            answers::settled(&dispenser.give_back(name, items).await?)
        }
        _ => return Err(Problem::forbidden(ONLY_OPERATORS)),
    })
}

async fn of_operator(dispenser: &Dispenser, verb: Verb, body: &[u8]) -> Result<Value, Problem> {
    Ok(match verb {
        Verb::Add => {
            let items = Body::read(body, &["items"], ITEMS)?.items()?;
            answers::added(dispenser.add(items).await?)
        }
        Verb::Rebuild => rebuild(dispenser, body).await?,
        _ => return Err(Problem::forbidden(ONLY_ASSIGNEES)),
    })
}

/// Makes one step of a rebuild.
async fn rebuild(dispenser: &Dispenser, body: &[u8]) -> Result<Value, Problem> {
    const STEP: &str = "{\"step\":\"begin\"}";
    let mut body = Body::read(body, &["step", "rebuild", "items"], STEP)?;
    Ok(match body.text("step")?.as_str() {
        "begin" => {
            body.knows(&[])?;
            value!({ "rebuild": dispenser.rebuild().await?.id() })
        }
        "page" => {
            let rebuild = dispenser.rebuild_of(body.text("rebuild")?);
            answers::added(rebuild.add(body.items()?).await?)
        }
        "finish" => {
            let rebuild = dispenser.rebuild_of(body.text("rebuild")?);
            body.knows(&[])?;
            value!({ "removed": rebuild.finish().await? })
        }
        other => {
            let message = format!("step is {:?}; use begin, page or finish", shown(other));
            return Err(Problem::invalid(message));
        }
    })
}

/// Releases the assignee of the token, or the one that an operator names.
async fn release(
    dispenser: &Dispenser,
    caller: Option<&str>,
    body: &[u8],
) -> Result<Value, Problem> {
    let assignee = Body::read(body, &["assignee"], NAMED)?.text_if_any("assignee")?;
    let name = match (caller, assignee) {
        (Some(caller), Some(named)) if named != caller => {
            return Err(Problem::forbidden(NOT_ANOTHER));
        }
        (Some(caller), _) => caller.to_owned(),
        (None, Some(named)) => named,
        (None, None) => return Err(Problem::invalid(format!("name the assignee: send {NAMED}"))),
    };
    dispenser.release(&name).await?;
    Ok(value!({}))
}

/// Returns who the token belongs to.
fn caller_of(settings: &Settings, headers: &HeaderMap) -> Result<Caller, Problem> {
    let sent = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = sent.and_then(|text| {
        let (scheme, token) = text.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    token.and_then(|token| settings.tokens.caller(token)).ok_or_else(Problem::unauthorized)
}

fn dispenser_of<'a>(settings: &'a Settings, name: &str) -> Result<&'a Dispenser, Problem> {
    let served = || Problem::no_dispenser(settings.dispensers.keys());
    settings.dispensers.get(name).ok_or_else(served)
}

/// Returns the `Idempotency-Key`.
fn once_of(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let text = value.to_str().map_err(|_| {
        Problem::invalid("the Idempotency-Key has characters that are not visible ASCII")
    })?;
    match text.len() {
        1..=ONCE_BYTES_MAX => Ok(Some(text.to_owned())),
        bytes => Err(Problem::invalid(format!(
            "the Idempotency-Key has {bytes} bytes; use 1 to {ONCE_BYTES_MAX}"
        ))),
    }
}
