//! Who you are, and how you sign in.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{AppendHeaders, IntoResponse, Response},
};
use optimus_core::AuditAct;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::audited::say;
use crate::{
    access::Auth,
    problem::{ErrorBody, Problem},
    seat::{Seat, Told},
    shared::App,
    view::at_ms,
};

/// Who you are, and what you may do.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionRow {
    /// `null` if the console does not ask who you are.
    identity: Option<String>,
    /// `viewer`, `operator` or `admin`.
    role: &'static str,
    /// The queues that you see; a `*` stands for any text.
    queues: Vec<String>,
    /// `none`, `token`, `basic`, `header` or `custom`.
    auth: &'static str,
    /// The version of Optimus.
    version: &'static str,
    namespace: String,
    /// How arguments and results are shown: `hidden`, `redacted` or `full`.
    payloads: &'static str,
    /// The time of Redis.
    now_ms: u64,
}

/// Says who you are.
#[utoipa::path(get, path = "/api/v1/session", tag = "session", responses(
    (status = 200, body = SessionRow), (status = 401, body = ErrorBody)))]
pub(crate) async fn session(seat: Seat) -> Result<Json<SessionRow>, Problem> {
    let now_ms = at_ms(seat.inspector().now().await?);
    let auth = &seat.app.auth;
    Ok(Json(SessionRow {
        identity: (!auth.is_none()).then(|| seat.identity.name.clone()),
        role: seat.identity.role.as_str(),
        queues: seat.identity.queues.texts().to_vec(),
        auth: auth.as_str(),
        version: env!("CARGO_PKG_VERSION"),
        namespace: seat.app.client.broker().namespace().to_owned(),
        payloads: seat.payloads().as_str(),
        now_ms,
    }))
}

/// A token.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignIn {
    token: String,
}

/// Signs a browser in with a token.
#[utoipa::path(post, path = "/api/v1/sign-in", tag = "session", request_body = SignIn, responses(
    (status = 204, description = "signed in; the cookie is set"),
    (status = 401, body = ErrorBody)))]
pub(crate) async fn sign_in(
    State(app): State<App>,
    headers: HeaderMap,
    Told(told): Told<SignIn>,
) -> Result<Response, Problem> {
    let Auth::Token(secrets) = &app.auth else {
        return Err(Problem::refused("this console has no sign-in by a token"));
    };
    let identity = secrets.owner(&told.token, None).ok_or_else(Problem::wrong_secret)?;
    // A session of somebody else in this browser ends.
    if let Some(id) = app.sessions.cookie_of(&headers) {
        app.sessions.end(id);
    }
    let begun = app.sessions.begin(identity.clone());
    let id = begun.ok_or_else(|| Problem::unavailable("the system has no random numbers"))?;
    let act = AuditAct { who: identity.name.clone(), act: "sign-in".into(), ..AuditAct::default() };
    say(&act, "signed in");
    let cookie = format!("{}={id}; {}", app.sessions.cookie(), attributes(&headers));
    Ok((StatusCode::NO_CONTENT, set_cookie(&cookie)?).into_response())
}

/// Ends the session of this browser.
#[utoipa::path(post, path = "/api/v1/sign-out", tag = "session", responses(
    (status = 204, description = "signed out")))]
pub(crate) async fn sign_out(
    State(app): State<App>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if let Some(id) = app.sessions.cookie_of(&headers) {
        app.sessions.end(id);
    }
    let cookie = format!("{}=; Max-Age=0; {}", app.sessions.cookie(), attributes(&headers));
    Ok((StatusCode::NO_CONTENT, set_cookie(&cookie)?).into_response())
}

type CookieHeader = AppendHeaders<[(header::HeaderName, HeaderValue); 1]>;

fn set_cookie(cookie: &str) -> Result<CookieHeader, Problem> {
    let value = HeaderValue::from_str(cookie)
        .map_err(|_| Problem::unavailable("the cookie can't be sent"))?;
    Ok(AppendHeaders([(header::SET_COOKIE, value)]))
}

/// No script reads the cookie, and no other site lets a browser send it. A proxy may serve the
/// console under another path than the program, so the path is that of the whole host.
fn attributes(headers: &HeaderMap) -> String {
    let forwarded = headers.get("x-forwarded-proto").and_then(|proto| proto.to_str().ok());
    let secure = if forwarded == Some("https") { "; Secure" } else { "" };
    format!("Path=/; HttpOnly; SameSite=Strict{secure}")
}
