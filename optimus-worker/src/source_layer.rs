//! The innermost layer of a worker that knows sources: [`SourceLayer`]. It asks before a task of a
//! source starts whether its row still needs it, stores failures of rows, and counts ends.
//!
//! It is a layer, so its calls of user code are isolated as those of handlers.

use std::{
    error::Error,
    fmt,
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use optimus_core::{
    BoxError, Cancel, Context, Control, Done, End, Fatal, Layer, NOTE_WITHIN, Next, Outcome,
    RowFacts, SOURCE_HEADER, Standing, log::Log, log_event, panic_sentence,
};
use tokio::time::timeout;

use crate::{
    decide_outcome,
    row_end::{Mark, Unseen, row_of},
    source_desk::{Attempted, SourceDesk},
    source_registry::Sources,
    user_code::{discard, guarded},
};

/// The part of the time to store a failure that is left to report it.
const REPORT_WITHIN: Duration = Duration::from_secs(1);
/// The longest text of an error that a source is given.
const ERROR_CHARS_MAX: usize = 4 * 1024;
/// The longest time of `before`, and the part of the handler's time that it may take.
const CHECK_WITHIN: (Duration, u32) = (Duration::from_secs(10), 2);

/// Why a task is cancelled whose row needs none.
const NEEDS_NO_TASK: &str = "its row needs no task any more";
const GIVEN_UP: &str =
    "its row has failed too often; set the failures of the row to 0 in its table to try it again";

/// The hooks of sources around attempts.
pub(crate) struct SourceLayer {
    pub(crate) sources: Arc<Sources>,
    pub(crate) log: Log,
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
        let problem = match within(time, next.run()).await {
            Ok(done) => return Ok(done),
            Err(Failed::Error(problem)) => problem,
            Err(Failed::Panic(text)) => text.into(),
            Err(Failed::Late) => format!("the handler did not return within {time:.0?}").into(),
        };
        let control = guarded(|| Control::of(&*problem)).unwrap_or(Control::Fail);
        if matches!(control, Control::Snooze(_) | Control::Cancel) {
            return Err(problem);
        }
        Err(self.failed(desk, row, problem, control).await)
    }

    async fn ended(&self, ctx: &Context, end: &End) {
        let Some(desk) = self.desk(ctx) else { return };
        let failed = match &end.outcome {
            Outcome::Success => return desk.count(Attempted::Succeeded).await,
            Outcome::Retry { error, .. } | Outcome::Dead(error) => Some(error.message.clone()),
            // Without an error of this type, somebody else has cancelled the task.
            Outcome::Cancelled => ctx.data::<Unseen>().map(|Unseen(error)| error),
            _ => None,
        };
        match (ctx.data::<Mark>(), failed) {
            (Some(Mark::Failed | Mark::Again), _) | (Some(Mark::Checked), Some(_)) => {}
            // The handler kept its thread until the deadline, or its result is too large, or its
            // worker is lost.
            (None | Some(Mark::Due(_)), Some(error)) => self.note_end(desk, ctx, &error).await,
            // The row was not due, or its attempt has not failed.
            _ => return,
        }
        desk.count(Attempted::Failed).await;
    }
}

impl SourceLayer {
    fn desk(&self, ctx: &Context) -> Option<&Arc<SourceDesk>> {
        self.sources.get(ctx.header(SOURCE_HEADER.0)?)
    }

    /// Asks whether the row still needs its task. `before` may take a part of the handler's time.
    async fn check(&self, desk: &SourceDesk, row: &mut RowFacts) -> Result<(), BoxError> {
        let Some(before) = desk.source().parts().before else { return Ok(()) };
        row.ctx.insert(Mark::Checked);
        let (longest, part) = CHECK_WITHIN;
        let time = longest.min(handler_time(row) / part);
        let facts = row.clone();
        let standing = match within(time, async move { before(facts)?.await }).await {
            Ok(standing) => standing,
            Err(failed) => return Err(self.unchecked(desk, row, &failed.text(time))),
        };
        if let Standing::Failed(failures) = standing {
            row.failures = failures;
        }
        if standing == Standing::Done || row.is_given_up() {
            row.ctx.insert(Mark::NotDue);
            let why = if standing == Standing::Done { NEEDS_NO_TASK } else { GIVEN_UP };
            return Err(NotNow::because(why));
        }
        row.ctx.insert(Mark::Due(row.failures));
        Ok(())
    }

    /// The row stays as it is, and a later page finds it again.
    fn unchecked(&self, desk: &SourceDesk, row: &RowFacts, error: &str) -> BoxError {
        let (source, key, error) = (desk.source().name(), row.key.clone(), short(error));
        let why = format!("`before` of the source failed: {error}");
        let text = "`before` of a source failed; the task is cancelled, and a later page finds \
                    its row again";
        log_event!(self.log, WARN, source, key, error, "{text}");
        row.ctx.insert(Mark::Again);
        NotNow::because(why)
    }

    /// Stores the failure of a row. Returns what the task ends with: it is cancelled if a later
    /// page finds the row again, and dead if it has failed too often.
    async fn failed(
        &self,
        desk: &SourceDesk,
        mut row: RowFacts,
        problem: BoxError,
        control: Control,
    ) -> BoxError {
        let is_fatal = control == Control::Fatal;
        let is_last = row.is_last() || is_fatal;
        let error = short(&decide_outcome::text(&*problem));
        row.error = Some(error.clone());
        let failed = row.clone();
        // One failure is one call of `on_failure`, however that ends.
        row.ctx.insert(Mark::Failed);
        let noted = self.note(desk, row).await;
        if noted.is_err() {
            return Fatal::new(problem).into();
        }
        if is_last {
            return if is_fatal { problem } else { Fatal::new(problem).into() };
        }
        failed.ctx.insert(Mark::Again);
        self.log_failed(desk, &failed);
        discard(problem);
        NotNow::because(error)
    }

    /// Stores a failure that was found after the end of the attempt.
    async fn note_end(&self, desk: &SourceDesk, ctx: &Context, error: &str) {
        let Some(mut row) = row_of(ctx, desk) else { return };
        row.error = Some(short(error));
        let is_found_again = ctx.data::<Unseen>().is_some();
        if self.note(desk, row.clone()).await.is_ok() && is_found_again {
            self.log_failed(desk, &row);
        }
    }

    fn log_failed(&self, desk: &SourceDesk, row: &RowFacts) {
        let (source, key, failures) = (desk.source().name(), row.key.clone(), row.failures);
        let (failures, error) = (failures.saturating_add(1), row.error.clone());
        let text = "a task of a source failed; a later page finds its row again";
        log_event!(self.log, WARN, source, key, failures, error, "{text}");
    }

    async fn note(&self, desk: &SourceDesk, row: RowFacts) -> Result<(), ()> {
        let Some(on_failure) = desk.source().parts().on_failure else { return Ok(()) };
        let (source, key) = (desk.source().name(), row.key.clone());
        let time = NOTE_WITHIN.saturating_sub(REPORT_WITHIN);
        let Err(failed) = within(time, async move { on_failure(row)?.await }).await else {
            return Ok(());
        };
        let error = short(&failed.text(time));
        let text = "`on_failure` of a source failed, so the failure of this row is not stored";
        log_event!(self.log, ERROR, source, key, error, "{text}");
        Err(())
    }
}

/// The word [`Cancel`] with its reason, which the task's error history and the log show.
#[derive(Debug)]
struct NotNow {
    /// A text of our own: no user code displays itself when the reason is shown.
    why: String,
    word: Cancel,
}

impl NotNow {
    fn because(why: impl Into<String>) -> BoxError {
        Self { why: why.into(), word: Cancel }.into()
    }
}

impl fmt::Display for NotNow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl Error for NotNow {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.word)
    }
}

/// How a call of user code has failed.
enum Failed {
    Error(BoxError),
    Panic(String),
    Late,
}

impl Failed {
    fn text(self, time: Duration) -> String {
        match self {
            Self::Error(problem) => {
                let text = decide_outcome::text(&*problem);
                discard(problem);
                text
            }
            Self::Panic(text) => text,
            Self::Late => format!("it did not return within {time:.0?}"),
        }
    }
}

/// Waits for user code, which may panic, also when it is dropped.
async fn within<T>(
    time: Duration,
    code: impl Future<Output = Result<T, BoxError>>,
) -> Result<T, Failed> {
    let mut code = Box::pin(AssertUnwindSafe(code).catch_unwind());
    let answer = timeout(time, code.as_mut()).await;
    discard(code);
    match answer {
        Ok(Ok(returned)) => returned.map_err(Failed::Error),
        Ok(Err(panic)) => {
            let text = format!("it {}", panic_sentence(&*panic));
            discard(panic);
            Err(Failed::Panic(text))
        }
        Err(_) => Err(Failed::Late),
    }
}

/// Returns how long the handler may run, so that its failure can be stored.
fn handler_time(row: &RowFacts) -> Duration {
    let left = row.ctx.deadline().saturating_duration_since(Instant::now());
    if row.has_note_time { left.saturating_sub(NOTE_WITHIN) } else { left }
}

fn short(text: &str) -> String {
    text.chars().take(ERROR_CHARS_MAX).collect()
}
