//! What the router serves, and its limits: [`Settings`], [`router`].

use std::{collections::HashMap, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Request, State},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing,
};
use optimus_core::Dispenser;

use crate::{problem::Problem, tokens::Tokens, verbs};

/// How long a request may take, with its body, unless [`Settings::timeout`] sets another time.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The longest body in bytes, unless [`Settings::body_bytes_max`] sets another one. 500 items of
/// the longest ids fit.
const BODY_BYTES_MAX: usize = 1 << 20;

/// What a [`router`] serves.
#[derive(Debug, Clone)]
pub struct Settings {
    pub(crate) dispensers: HashMap<String, Dispenser>,
    pub(crate) tokens: Tokens,
    pub(crate) timeout: Duration,
    pub(crate) body_bytes_max: usize,
}

impl Settings {
    /// Makes settings without a dispenser, for these callers.
    pub fn new(tokens: Tokens) -> Self {
        let dispensers = HashMap::new();
        Self { dispensers, tokens, timeout: TIMEOUT, body_bytes_max: BODY_BYTES_MAX }
    }

    /// Serves a dispenser under its name, with its times. Requests for other names are refused.
    pub fn serve(mut self, dispenser: Dispenser) -> Self {
        self.dispensers.insert(dispenser.name().to_owned(), dispenser);
        self
    }

    /// Sets how long a request may take, including the time in which its body arrives. The default
    /// is 10 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the longest body of a request, in bytes. The default is 1 MiB.
    pub fn body_bytes_max(mut self, bytes: usize) -> Self {
        self.body_bytes_max = bytes;
        self
    }
}

/// Makes the router. It can be nested in another one, such as `Router::new().nest("/desk", …)`.
pub fn router(settings: Settings) -> Router {
    let settings = Arc::new(settings);
    let limited = middleware::from_fn_with_state(settings.clone(), in_time);
    Router::new()
        .route("/dispensers/{name}/peek", routing::get(verbs::peek))
        .route("/dispensers/{name}/{verb}", routing::post(verbs::post))
        .fallback(async || Problem::no_such_path().into_response())
        .method_not_allowed_fallback(async || Problem::wrong_method().into_response())
        .layer(limited)
        .with_state(settings)
}

/// Ends a request that takes too long.
async fn in_time(State(settings): State<Arc<Settings>>, request: Request, next: Next) -> Response {
    match tokio::time::timeout(settings.timeout, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Problem::too_slow().into_response(),
    }
}
