//! The innermost layer of a worker that knows sources: [`SourceLayer`]. It asks before a task of a
//! source starts whether its row still needs it, stores failures of rows, and counts ends.
//!
//! It is a layer, so its calls of user code are isolated as those of handlers.

use std::{
    any::Any,
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use optimus_core::{
    BoxError, Cancel, Chain, Context, Control, Done, End, Fatal, Layer, NOTE_WITHIN, Next, Outcome,
    RowFacts, SOURCE_HEADER, Standing, log::Log, log_event,
};
use tokio::time::timeout;

use crate::{
    source_desk::{Attempted, SourceDesk},
    source_registry::Sources,
    user_code::{discard, panic_text},
};

/// The part of the time to store a failure that is left to report it.
const REPORT_WITHIN: Duration = Duration::from_secs(1);
/// The longest text of an error that a source is given.
const ERROR_CHARS_MAX: usize = 4 * 1024;

/// The hooks of sources around attempts.
pub(crate) struct SourceLayer {
    pub(crate) sources: Arc<Sources>,
    pub(crate) log: Log,
}

/// What the attempt of a row has come to, for its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// The row needs no task any more.
    NotDue,
    /// The failure is stored, or can't be.
    Failed,
}

impl Layer for SourceLayer {
    async fn run(&self, ctx: &Context, next: Next<'_>) -> Result<Done, BoxError> {
        let Some(desk) = self.desk(ctx) else { return next.run().await };
        let Some(mut row) = RowFacts::read(ctx, desk.source().options().attempts) else {
            return next.run().await;
        };
        self.check(desk, &mut row).await?;
        if desk.source().parts().on_failure.is_none() {
            return next.run().await;
        }
        let time = handler_time(&row);
        let handler = AssertUnwindSafe(next.run()).catch_unwind();
        let problem: BoxError = match timeout(time, handler).await {
            Ok(Ok(Ok(done))) => return Ok(done),
            Ok(Ok(Err(problem))) => problem,
            Ok(Err(panic)) => text_of(panic).into(),
            Err(_) => format!("the handler did not return within {time:.0?}").into(),
        };
        if matches!(Control::of(&*problem), Control::Snooze(_) | Control::Cancel) {
            return Err(problem);
        }
        Err(self.failed(desk, row, problem).await)
    }

    async fn ended(&self, ctx: &Context, end: &End) {
        let Some(desk) = self.desk(ctx) else { return };
        let mark = ctx.data::<Mark>();
        let failed = match (&end.outcome, mark) {
            (Outcome::Success, _) => return desk.count(Attempted::Succeeded).await,
            (_, Some(Mark::Failed)) => return desk.count(Attempted::Failed).await,
            (Outcome::Retry { error, .. } | Outcome::Dead(error), None) => error,
            // The row was not due, or its attempt has not failed.
            _ => return,
        };
        // The handler kept its thread until the deadline, or its worker is lost.
        if let Some(mut row) = RowFacts::read(ctx, desk.source().options().attempts) {
            row.error = Some(failed.message.clone());
            let _noted = self.note(desk, row).await;
        }
        desk.count(Attempted::Failed).await;
    }
}

impl SourceLayer {
    fn desk(&self, ctx: &Context) -> Option<&Arc<SourceDesk>> {
        self.sources.get(ctx.header(SOURCE_HEADER.0)?)
    }

    /// Asks whether the row still needs its task.
    async fn check(&self, desk: &SourceDesk, row: &mut RowFacts) -> Result<(), BoxError> {
        let Some(before) = desk.source().parts().before else { return Ok(()) };
        let checked = async { before(row.clone())?.await };
        let standing = match AssertUnwindSafe(checked).catch_unwind().await {
            Ok(Ok(standing)) => standing,
            Ok(Err(problem)) => return Err(self.unchecked(desk, row, &problem.to_string())),
            Err(panic) => return Err(self.unchecked(desk, row, &text_of(panic))),
        };
        if let Standing::Failed(failures) = standing {
            row.failures = failures;
        }
        if standing == Standing::Done || row.is_given_up() {
            row.ctx.insert(Mark::NotDue);
            return Err(Cancel.into());
        }
        Ok(())
    }

    /// The row stays as it is, and a later page finds it again.
    fn unchecked(&self, desk: &SourceDesk, row: &RowFacts, error: &str) -> BoxError {
        let (source, key, error) = (desk.source().name(), row.key.clone(), short(error));
        let text = "`before` of a source failed; the task is cancelled, and a later page finds \
                    its row again";
        log_event!(self.log, WARN, source, key, error, "{text}");
        row.ctx.insert(Mark::Failed);
        Cancel.into()
    }

    /// Stores the failure of a row. Returns what the task ends with: it is cancelled if a later
    /// page finds the row again, and dead if it has failed too often.
    async fn failed(&self, desk: &SourceDesk, mut row: RowFacts, problem: BoxError) -> BoxError {
        let is_fatal = Control::of(&*problem) == Control::Fatal;
        let is_last = row.is_last() || is_fatal;
        let error = short(&Chain(&*problem).to_string());
        row.error = Some(error.clone());
        let ctx = row.ctx.clone();
        let (source, key, failures) = (desk.source().name(), row.key.clone(), row.failures + 1);
        let noted = self.note(desk, row).await;
        ctx.insert(Mark::Failed);
        if noted.is_err() {
            return Fatal::new(problem).into();
        }
        if is_last {
            return if is_fatal { problem } else { Fatal::new(problem).into() };
        }
        let text = "a task of a source failed; a later page finds its row again";
        log_event!(self.log, WARN, source, key, failures, error, "{text}");
        discard(problem);
        Cancel.into()
    }

    async fn note(&self, desk: &SourceDesk, row: RowFacts) -> Result<(), ()> {
        let Some(on_failure) = desk.source().parts().on_failure else { return Ok(()) };
        let (source, key) = (desk.source().name(), row.key.clone());
        let noting = AssertUnwindSafe(async move { on_failure(row)?.await }).catch_unwind();
        let error = match timeout(NOTE_WITHIN.saturating_sub(REPORT_WITHIN), noting).await {
            Ok(Ok(Ok(()))) => return Ok(()),
            Ok(Ok(Err(problem))) => problem.to_string(),
            Ok(Err(panic)) => text_of(panic),
            Err(_) => "it did not return in time".to_owned(),
        };
        let error = short(&error);
        let text = "`on_failure` of a source failed, so the failure of this row is not stored";
        log_event!(self.log, ERROR, source, key, error, "{text}");
        Err(())
    }
}

fn text_of(panic: Box<dyn Any + Send>) -> String {
    let text = format!("it panicked: {}", panic_text(&*panic));
    discard(panic);
    text
}

/// Returns how long the handler may run, so that its failure can be stored.
fn handler_time(row: &RowFacts) -> Duration {
    let left = row.ctx.deadline().saturating_duration_since(Instant::now());
    if row.has_note_time { left.saturating_sub(NOTE_WITHIN) } else { left }
}

fn short(text: &str) -> String {
    text.chars().take(ERROR_CHARS_MAX).collect()
}
