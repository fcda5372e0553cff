//! The program's own sign-in: [`CustomAuth`].

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use axum::http::request::Parts;
use tokio::{sync::Semaphore, time::timeout};

use super::identity::Identity;

/// How long the function may take, and how many calls of it run at once.
const WITHIN: Duration = Duration::from_secs(5);
const CALLS_MAX: usize = 32;

type Ask = dyn Fn(&Parts) -> Option<Identity> + Send + Sync;

/// A function that knows who sends a request.
#[derive(Clone)]
pub struct CustomAuth {
    ask: Arc<Ask>,
    calls: Arc<Semaphore>,
}

impl CustomAuth {
    pub(super) fn new(ask: impl Fn(&Parts) -> Option<Identity> + Send + Sync + 'static) -> Self {
        Self { ask: Arc::new(ask), calls: Arc::new(Semaphore::new(CALLS_MAX)) }
    }

    /// Asks the function, on a thread that may block. A function that panics or takes too long lets
    /// nobody in.
    pub(super) async fn user_of(&self, parts: &Parts) -> Option<Identity> {
        let asked = async {
            let permit = self.calls.clone().acquire_owned().await.ok()?;
            let (ask, parts) = (self.ask.clone(), parts.clone());
            let call = move || {
                let found = catch_unwind(AssertUnwindSafe(|| ask(&parts)));
                // What the function has put into the request may panic when it is dropped.
                let _ = catch_unwind(AssertUnwindSafe(move || drop(parts)));
                drop(permit);
                found.unwrap_or_else(|panic| {
                    let _ = catch_unwind(AssertUnwindSafe(move || drop(panic)));
                    None
                })
            };
            tokio::task::spawn_blocking(call).await.ok()?
        };
        timeout(WITHIN, asked).await.ok()?
    }
}

impl fmt::Debug for CustomAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomAuth").finish_non_exhaustive()
    }
}
