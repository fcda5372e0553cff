//! Who asks, and what they may: [`Seat`]. Also what requests bring: [`Asked`], [`Told`].

use axum::{
    body::Bytes,
    extract::{FromRequest, FromRequestParts, Path, Query, Request, rejection::BytesRejection},
    http::{StatusCode, header, request::Parts},
};
use optimus_core::{Inspector, QueueName, TaskId};
use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    access::{Auth, Authenticated, Identity, Payloads, Reader, Role, brings_token},
    plain::plain,
    problem::Problem,
    shared::App,
};

/// Somebody who may look at the console.
pub(crate) struct Seat {
    pub(crate) app: App,
    pub(crate) identity: Identity,
    session: Option<String>,
}

impl Seat {
    /// Returns whether the session of the request has not ended since.
    pub(crate) fn is_still_signed_in(&self) -> bool {
        self.session.as_ref().is_none_or(|id| self.app.sessions.has(id))
    }

    pub(crate) fn inspector(&self) -> Inspector {
        self.app.inspector()
    }

    pub(crate) fn payloads(&self) -> Payloads {
        self.app.payloads_of(&self.identity)
    }

    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader { payloads: self.payloads(), queues: &self.identity.queues }
    }

    /// Refuses what needs a higher role.
    pub(crate) fn needs(&self, role: Role) -> Result<(), Problem> {
        if self.identity.role >= role {
            return Ok(());
        }
        Err(Problem::forbidden(format!(
            "this needs the role {role}, and you are {}",
            self.identity.role
        )))
    }

    /// Refuses a queue that is not theirs.
    pub(crate) fn sees(&self, queue: &QueueName) -> Result<(), Problem> {
        if self.identity.queues.take(queue.as_str()) {
            return Ok(());
        }
        Err(Problem::forbidden(format!("queue {queue} is not among your queues")))
    }

    /// Refuses what belongs to no queue to those who have only some queues.
    pub(crate) fn sees_all(&self, what: &str) -> Result<(), Problem> {
        if self.identity.queues.is_all() {
            return Ok(());
        }
        Err(Problem::forbidden(format!("{what} belong to all queues, and you see only some")))
    }

    /// Reads the name of a queue that is theirs.
    pub(crate) fn queue(&self, name: &str) -> Result<QueueName, Problem> {
        let queue = QueueName::new(name)?;
        self.sees(&queue)?;
        Ok(queue)
    }

    /// Reads the id of a task of a queue that is theirs.
    pub(crate) fn task(&self, id: &str) -> Result<TaskId, Problem> {
        let id: TaskId = id.parse()?;
        self.sees(id.queue())?;
        Ok(id)
    }
}

impl FromRequestParts<App> for Seat {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let found = parts.extensions.get::<Authenticated>();
        let found = found.ok_or_else(|| match &app.auth {
            Auth::Token(_) if brings_token(&parts.headers) => Problem::unknown_token(&app.auth),
            auth => Problem::unauthorized(auth),
        })?;
        let (identity, session) = (found.identity.clone(), found.session.clone());
        Ok(Self { app: app.clone(), identity, session })
    }
}

/// What the query of a look asks for.
pub(crate) struct Asked<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<App> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(asked)) => Ok(Self(asked)),
            Err(problem) => {
                let text = plain("the query", "parameter", &problem.body_text());
                Err(Problem::invalid(text))
            }
        }
    }
}

/// The variable parts of a path.
pub(crate) struct Named<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for Named<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        match Path::from_request_parts(parts, app).await {
            Ok(Path(named)) => Ok(Self(named)),
            Err(problem) => Err(Problem::invalid(problem.body_text())),
        }
    }
}

/// What the API's description says of the name of a queue in a path.
pub(crate) const QUEUE_IN_PATH: &str = "the name of the queue; write `~.` for a queue named `.`, \
    and `~..` for `..`, because many programs resolve these in a path";

/// A name in a path. A `~` before it is left out: browsers and other programs resolve `.` and `..`
/// in a path, also as `%2E`, so these names are written `~.` and `~..`. No name of a queue begins
/// with `~`.
#[derive(Debug, Deserialize)]
#[serde(from = "String")]
pub(crate) struct Segment(pub(crate) String);

impl From<String> for Segment {
    fn from(part: String) -> Self {
        match part.strip_prefix('~') {
            Some(name) => Self(name.to_owned()),
            None => Self(part),
        }
    }
}

/// The JSON of an act.
pub(crate) struct Told<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<App> for Told<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim();
        // A form of a foreign page can't send this type.
        if !kind.eq_ignore_ascii_case("application/json") {
            return Err(Problem::invalid("send the act as application/json"));
        }
        let body = Bytes::from_request(request, app).await.map_err(|problem| unread(&problem))?;
        let told = serde_json::from_slice(&body);
        told.map(Self).map_err(|problem: serde_json::Error| {
            Problem::invalid(plain("the body", "field", &problem.to_string()))
        })
    }
}

fn unread(problem: &BytesRejection) -> Problem {
    if problem.status() == StatusCode::PAYLOAD_TOO_LARGE {
        return Problem::too_large("the body of an act may have 64 KiB; name fewer tasks");
    }
    Problem::invalid("the body could not be read")
}
