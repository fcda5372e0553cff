//! One call of a user's function while a post is held: [`run`]. It may panic, fail, take too long,
//! or be dropped because the post is lost.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use futures_util::FutureExt;
use optimus_core::{BoxError, panic_sentence};
use tokio::time::sleep;

use crate::{
    post_run::{Phase, State},
    shared::Shared,
    user_code::{discard, guarded},
};

/// How a call of a user's function has ended.
pub(crate) enum RoundEnd<T> {
    Returned(T),
    Failed(String),
    Abandoned,
}

type Started<T> = Result<Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>, BoxError>;

/// Calls the function. Its future is dropped if the post must be given up at once, or after
/// `within`.
pub(crate) async fn run<T>(
    shared: &Arc<Shared>,
    state: &State,
    within: Option<Duration>,
    start: impl FnOnce() -> Started<T>,
) -> RoundEnd<T> {
    let client = &shared.client;
    let started = catch_unwind(AssertUnwindSafe(|| client.enter(start)));
    let mut running = match started {
        Ok(Ok(running)) => running,
        Ok(Err(problem)) => return failed(problem),
        Err(panic) => return panicked(panic),
    };
    let handler = AssertUnwindSafe(client.within(&mut running)).catch_unwind();
    let late = async {
        match within {
            Some(within) => sleep(within).await,
            None => std::future::pending().await,
        }
    };
    let ended = tokio::select! {
        biased;
        () = state.reached(Phase::Abandon) => RoundEnd::Abandoned,
        returned = handler => match returned {
            Ok(Ok(value)) => RoundEnd::Returned(value),
            Ok(Err(problem)) => failed(problem),
            Err(panic) => panicked(panic),
        },
        () = late => {
            RoundEnd::Failed(format!("it did not return within {:?}", within.unwrap_or_default()))
        }
    };
    discard(running);
    ended
}

fn failed<T>(problem: BoxError) -> RoundEnd<T> {
    let text = guarded(|| problem.to_string());
    discard(problem);
    RoundEnd::Failed(text.unwrap_or_else(|panic| format!("the text of an error panicked: {panic}")))
}

fn panicked<T>(panic: Box<dyn Any + Send>) -> RoundEnd<T> {
    let text = format!("the function {}", panic_sentence(&*panic));
    discard(panic);
    RoundEnd::Failed(text)
}
