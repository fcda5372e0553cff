//! How the task of a row ends if the end of its attempt was not decided in its source's layer:
//! [`decide`]. The handler kept its thread past its time, its result is too large, or its arguments
//! do not fit. A later page finds such a row again, unless it is given up.

use optimus_core::{
    AttemptError, Context, Reason, RowFacts, SOURCE_HEADER, broker::FailureOutcome,
};

use crate::{
    attempts::Attempt,
    decide_outcome::{Decision, Report},
    source_desk::SourceDesk,
    source_registry::Sources,
};

/// What the attempt of a row has come to, for its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The row is being checked. Its handler has not begun, so it has not failed.
    Checked,
    /// The handler may begin. The row has failed this often.
    Due(u32),
    /// The row needs no task any more.
    NotDue,
    /// The failure is being stored, can't be stored, or is the last one.
    Failed,
    /// The attempt has failed, and a later page finds the row again.
    Again,
}

/// The error of an attempt that its source has not seen, whose task is cancelled because of it.
#[derive(Debug, Clone)]
pub(crate) struct Unseen(pub(crate) String);

/// Returns the row of an attempt, with its failures before this attempt.
pub(crate) fn row_of(ctx: &Context, desk: &SourceDesk) -> Option<RowFacts> {
    let mut row = RowFacts::read(ctx, desk.source().options().attempts)?;
    if let Some(Mark::Due(failures)) = ctx.data::<Mark>() {
        row.failures = failures;
    }
    Some(row)
}

/// Cancels the task of a row instead of marking it Dead, if a later page finds the row again: a
/// dead task would keep the biz id of its row.
pub(crate) fn decide(sources: &Sources, attempt: &Attempt, mut decision: Decision) -> Decision {
    let (ctx, is_fatal) = (&attempt.ctx, decision.is_fatal);
    let Report::Fail(failure) = &mut decision.report else { return decision };
    if failure.outcome != FailureOutcome::Dead || is_fatal {
        return decision;
    }
    let desk = ctx.header(SOURCE_HEADER.0).and_then(|name| sources.get(name));
    let desk = desk.filter(|desk| desk.source().parts().on_failure.is_some());
    let row = desk.and_then(|desk| row_of(ctx, desk)).filter(|row| row.has_note_time);
    let (Some(row), Ok(error)) = (row, serde_json::from_str::<AttemptError>(&failure.error)) else {
        return decision;
    };
    let comes_again = match ctx.data::<Mark>() {
        // It may not start again, because it is `on_lost = "dead"`.
        _ if error.reason == Reason::Lost => false,
        Some(Mark::Failed) => false,
        Some(Mark::Again | Mark::NotDue | Mark::Checked) => true,
        None | Some(Mark::Due(_)) => !row.is_last(),
    };
    if comes_again {
        failure.outcome = FailureOutcome::Cancelled;
        ctx.insert(Unseen(error.message));
    }
    decision
}
