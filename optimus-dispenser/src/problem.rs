//! The errors of requests, as JSON: [`Problem`].

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use optimus_core::DispenserError;

use crate::answers::json;

/// A message names at most so many dispensers.
const NAMED_MAX: usize = 20;

/// Why a request has failed.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl Problem {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    pub(crate) fn unauthorized() -> Self {
        let message = "send the header Authorization: Bearer <token> with a token of a caller";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    pub(crate) fn forbidden(message: &'static str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    pub(crate) fn no_such_path() -> Self {
        let message = "use POST /dispensers/{name}/{verb} or GET /dispensers/{name}/peek";
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// Names those that are served, of which a caller with a token may know.
    pub(crate) fn no_dispenser<'a>(served: impl Iterator<Item = &'a String>) -> Self {
        let mut served: Vec<&str> = served.map(String::as_str).collect();
        served.sort_unstable();
        let more = if served.len() > NAMED_MAX { ", …" } else { "" };
        served.truncate(NAMED_MAX);
        let served = if served.is_empty() { "none".to_owned() } else { served.join(", ") };
        let message = format!("this dispenser is not served here; served: {served}{more}");
        Self::new(StatusCode::NOT_FOUND, "unknown_dispenser", message)
    }

    pub(crate) fn no_verb() -> Self {
        let message =
            "the verbs are assign, check, done, give_back, release, add and rebuild, and GET peek";
        Self::new(StatusCode::NOT_FOUND, "unknown_verb", message)
    }

    pub(crate) fn wrong_method() -> Self {
        let message = "use POST for a verb, and GET for peek";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "wrong_method", message)
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", message)
    }

    pub(crate) fn too_large(bytes: usize) -> Self {
        let message = format!("the body is longer than {bytes} bytes, or did not arrive whole");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
    }

    pub(crate) fn too_slow() -> Self {
        let message = "the request took too long, and may have been done; a repeat with the same \
                       Idempotency-Key is safe";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "timeout", message)
    }
}

impl From<DispenserError> for Problem {
    fn from(problem: DispenserError) -> Self {
        match problem {
            DispenserError::RebuildEnded => {
                Self::new(StatusCode::CONFLICT, "rebuild_ended", problem.to_string())
            }
            DispenserError::OnceReused { .. } => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "key_reused",
                "the Idempotency-Key was used for another request; use a new one",
            ),
            DispenserError::Store(store) if !store.is_invalid() => {
                // The text may name the server, which is not for callers.
                tracing::warn!(error = %store, "a request of a dispenser has failed");
                let (code, message) = if store.is_full() {
                    ("full", "the store is full; try again later")
                } else {
                    ("unavailable", "the store can't be reached now; try again later")
                };
                Self::new(StatusCode::SERVICE_UNAVAILABLE, code, message)
            }
            other => Self::invalid(other.to_string()),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::json!({ "error": { "code": self.code, "message": self.message } });
        let mut response = json(self.status, &body);
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
