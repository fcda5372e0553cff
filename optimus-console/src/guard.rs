//! What every request passes before it is answered, and what every answer has.

use std::time::Duration;

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderName, HeaderValue, Method, StatusCode, header},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
};
use tokio::time::timeout;

use crate::{
    access::{Auth, authenticate, check_host, check_same_site},
    problem::Problem,
    shared::App,
};

/// How long an answer may take to begin.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' data:; base-uri 'self'; form-action 'self'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'";

/// What every answer has.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, CSP),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Puts the checks before these routes.
pub(crate) fn guarded(routes: Router<App>, app: App) -> Router {
    routes.layer(from_fn_with_state(app.clone(), guard)).with_state(app)
}

async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    let answer = timeout(ANSWER_WITHIN, checked(&app, request, next)).await;
    let mut response = match answer {
        Ok(Ok(response)) => response,
        Ok(Err(problem)) => problem.into_response(),
        Err(_) => Problem::unavailable("the answer takes too long; try again").into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

async fn checked(app: &App, request: Request, next: Next) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    check_host(&parts, &app.hosts)?;
    let found = authenticate(&app.auth, &app.sessions, &app.nobody, &parts).await?;
    let is_look = matches!(parts.method, Method::GET | Method::HEAD);
    // The browser asks for the password when it opens the page.
    if let (Auth::Basic(_), None) = (&app.auth, &found) {
        return Err(Problem::unauthorized(&app.auth));
    }
    if !is_look && !found.as_ref().is_some_and(|found| found.is_explicit) {
        check_same_site(&parts)?;
    }
    if let Some(found) = found {
        parts.extensions.insert(found);
    }
    let response = next.run(Request::from_parts(parts, body)).await;
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        return Ok(Problem::wrong_method().into_response());
    }
    Ok(response)
}
