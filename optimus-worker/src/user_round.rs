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
    decide_outcome,
    outcome_log::one_line,
    post_run::{Phase, State},
    shared::Shared,
    user_code::discard,
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
    let text = decide_outcome::text(&*problem);
    discard(problem);
    RoundEnd::Failed(one_line(&text))
}

fn panicked<T>(panic: Box<dyn Any + Send>) -> RoundEnd<T> {
    let text = format!("the function {}", panic_sentence(&*panic));
    discard(panic);
    RoundEnd::Failed(text)
}

#[cfg(test)]
mod tests {
    use std::{error::Error, fmt};

    use optimus_core::TEXT_BYTES_MAX;

    use super::*;

    /// An error whose text has 16 MiB, and whose source is itself.
    #[derive(Debug)]
    struct Long;

    impl fmt::Display for Long {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let chunk = "x".repeat(1024);
            (0..16 * 1024).try_for_each(|_| f.write_str(&chunk))
        }
    }

    impl Error for Long {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(self)
        }
    }

    #[test]
    fn a_long_error_of_a_round_is_cut() {
        let RoundEnd::Failed(text) = failed::<()>(Long.into()) else { panic!("it has failed") };
        assert_eq!(text.len(), TEXT_BYTES_MAX);
    }

    #[test]
    fn an_error_of_a_round_is_told_with_its_source_on_one_line() {
        let problem =
            optimus_core::Retry::after(Duration::from_secs(1)).because("the bank is away");
        let RoundEnd::Failed(text) = failed::<()>(problem.into()) else { panic!("it has failed") };
        assert_eq!(text, "retry in 1s: the bank is away");
    }
}
