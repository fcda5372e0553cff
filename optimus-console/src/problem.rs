//! Why a request was not answered: [`Problem`].

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use optimus_core::{DispenserError, Error};
use serde::Serialize;
use utoipa::ToSchema;

use crate::access::{Auth, BASIC_AUTH};

/// Why a request was not answered.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    status: StatusCode,
    code: &'static str,
    message: String,
    /// How the console knows who asks, if that is why.
    auth: Option<&'static str>,
}

/// The body of an answer with an error.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    /// A word for programs: `unauthorized`, `forbidden`, `not_found`, `refused`, `invalid`,
    /// `too_large` or `unavailable`.
    error: &'static str,
    /// A sentence for people.
    message: String,
    /// With `unauthorized`, how the console knows who asks: `token`, `basic`, `header` or `custom`.
    #[serde(skip_serializing_if = "Option::is_none")]
    auth: Option<&'static str>,
}

/// Lets a browser ask for a name and a password.
const BASIC: HeaderValue = HeaderValue::from_static("Basic realm=\"Optimus\", charset=\"UTF-8\"");

impl Problem {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), auth: None }
    }

    pub(crate) fn unauthorized(auth: &Auth) -> Self {
        let message = "sign in to use the console";
        let problem = Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message);
        Self { auth: Some(auth.as_str()), ..problem }
    }

    pub(crate) fn wrong_secret() -> Self {
        let message = "this token is not known; ask for another one";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    /// The same for a request that brings its token, so that the page still knows how to sign in.
    pub(crate) fn unknown_token(auth: &Auth) -> Self {
        Self { auth: Some(auth.as_str()), ..Self::wrong_secret() }
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "refused", message)
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", message)
    }

    pub(crate) fn wrong_method() -> Self {
        let message = "this path has another method: look with GET, act with POST";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "invalid", message)
    }

    pub(crate) fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message)
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }
}

impl From<Error> for Problem {
    fn from(problem: Error) -> Self {
        let text = problem.to_string();
        let is_refused = problem.is_wrong_state()
            || problem.is_duplicate()
            || problem.is_cycle()
            || problem.is_full();
        match problem {
            _ if problem.is_invalid() => Self::invalid(text),
            _ if problem.is_forgotten() => Self::not_found(text),
            _ if is_refused => Self::refused(text),
            _ => Self::unavailable(text),
        }
    }
}

impl From<DispenserError> for Problem {
    fn from(problem: DispenserError) -> Self {
        match problem {
            DispenserError::Store(problem) => problem.into(),
            problem => Self::invalid(problem.to_string()),
        }
    }
}

impl From<optimus_core::InvalidName> for Problem {
    fn from(problem: optimus_core::InvalidName) -> Self {
        Self::invalid(problem.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = ErrorBody { error: self.code, message: self.message, auth: self.auth };
        let mut response = (self.status, Json(body)).into_response();
        if self.auth == Some(BASIC_AUTH) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, BASIC);
        }
        response
    }
}
