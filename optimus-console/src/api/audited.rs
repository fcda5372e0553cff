//! Acts that are written down before they are done: [`audited`].

use std::panic::{AssertUnwindSafe, catch_unwind};

use optimus_core::AuditAct;

use crate::{problem::Problem, seat::Seat};

/// Why somebody acts has up to so many characters.
const REASON_CHARS: usize = 1_000;

/// An act with its reason.
pub(super) fn act_of(
    seat: &Seat,
    act: &str,
    target: impl Into<String>,
    reason: Option<&str>,
) -> AuditAct {
    let reason = reason.unwrap_or_default().chars().take(REASON_CHARS).collect();
    let (who, target) = (seat.identity.name.clone(), target.into());
    AuditAct { who, act: act.to_owned(), target, reason }
}

/// Writes down an act, does it, and writes down what became of it. If the first fails, nothing is
/// done. The act goes on if the client goes away. `doing` returns its answer, and what it has done
/// in words.
pub(super) async fn audited<T: Send + 'static>(
    seat: &Seat,
    act: AuditAct,
    doing: impl Future<Output = Result<(T, String), Problem>> + Send + 'static,
) -> Result<T, Problem> {
    let client = seat.app.client.clone();
    let done = tokio::spawn(async move {
        let note = client.audit(act.clone()).await.map_err(|problem| {
            Problem::unavailable(format!("nothing was done, as the act can't be noted: {problem}"))
        })?;
        say(&act, "begins");
        let done = doing.await;
        let outcome = match &done {
            Ok((_, text)) => text.clone(),
            Err(problem) => format!("failed: {}", problem.message()),
        };
        say(&act, &outcome);
        if let Err(problem) = note.outcome(&outcome).await {
            say(&act, &format!("the outcome can't be noted: {problem}"));
        }
        done.map(|(answer, _)| answer)
    });
    // A panic here is a fault of ours.
    done.await.unwrap_or_else(|_| Err(Problem::unavailable("the act has broken off")))
}

/// Tells the program's log, whose code may panic.
pub(super) fn say(act: &AuditAct, outcome: &str) {
    let AuditAct { who, act, target, reason } = act;
    let told = catch_unwind(AssertUnwindSafe(|| {
        tracing::info!(target: "optimus::audit", who, act, target, reason, outcome);
    }));
    if let Err(panic) = told {
        let _ = catch_unwind(AssertUnwindSafe(move || drop(panic)));
    }
}
