//! Control words: errors with which a handler decides what happens to its task.
//!
//! They are found anywhere in the source chain. So `?`, `.context(…)` and wrapping keep them, also
//! in `anyhow::Error` and `eyre::Report`.
//!
//! Those two hide the type of the error that they hold: `downcast_ref` does not find it after a
//! report has become a `Box<dyn Error>`. But they display it, so each word notes on its thread that
//! it was displayed. This needs no feature flag.

use std::{
    cell::Cell,
    error::Error,
    fmt::{self, Write},
    time::Duration,
};

/// The longest source chain that is read: an error may be its own source.
const SOURCES_MAX: usize = 1_000;

/// Longer than the text of any word.
const WORD_BYTES_MAX: usize = 100;

/// Any error of a handler.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The shortest snooze. A snooze uses no attempt, so a task that always snoozes never ends by
/// itself.
const SNOOZE_MIN: Duration = Duration::from_millis(100);

/// Retry after exactly this wait, instead of the back-off's. Uses a retry.
#[derive(Debug)]
pub struct Retry {
    after: Duration,
    source: Option<BoxError>,
}

impl Retry {
    /// Retry after `wait`.
    pub fn after(wait: Duration) -> Self {
        Self { after: wait, source: None }
    }

    /// Stores the error in the task's error history.
    pub fn because(mut self, error: impl Into<BoxError>) -> Self {
        self.source = Some(error.into());
        self
    }
}

/// Do not retry: the task is marked Dead at once.
#[derive(Debug)]
pub struct Fatal(BoxError);

impl Fatal {
    /// Marks the task Dead because of `error`.
    pub fn new(error: impl Into<BoxError>) -> Self {
        Self(error.into())
    }
}

/// Not now: run again after this wait, without using an attempt.
/// [`Context::attempt`](crate::Context::attempt) stays the same, however often a task snoozes, and
/// the task does not expire in the meantime.
#[derive(Debug)]
pub struct Snooze(Duration);

impl Snooze {
    /// Runs again after `wait`, but not sooner than after 100 ms, so that no task spins.
    pub fn lasting(wait: Duration) -> Self {
        Self(wait.max(SNOOZE_MIN))
    }
}

/// The task is no longer wanted: it ends in `Cancelled`, not in `Dead`.
#[derive(Debug)]
pub struct Cancel;

impl fmt::Display for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Control::RetryAfter(self.after).show(f)
    }
}

impl fmt::Display for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Control::Fatal.show(f)
    }
}

impl fmt::Display for Snooze {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Control::Snooze(self.0).show(f)
    }
}

impl fmt::Display for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Control::Cancel.show(f)
    }
}

impl Error for Retry {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| &**source as _)
    }
}

impl Error for Fatal {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}

impl Error for Snooze {}
impl Error for Cancel {}

/// What a handler's error asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Control {
    /// An ordinary failure: back-off, then retry while any retries are left.
    Fail,
    /// [`Retry`].
    RetryAfter(Duration),
    /// [`Fatal`].
    Fatal,
    /// [`Snooze`].
    Snooze(Duration),
    /// [`Cancel`].
    Cancel,
}

thread_local! {
    /// The word that was displayed last on this thread.
    static SHOWN: Cell<Option<Control>> = const { Cell::new(None) };
}

impl Control {
    /// Finds the first control word in the source chain.
    pub fn of(error: &(dyn Error + 'static)) -> Self {
        let mut next = Some(error);
        for _ in 0..SOURCES_MAX {
            let Some(error) = next else { break };
            if let Some(word) = Self::shown_by(error) {
                return word;
            }
            next = error.source();
        }
        Self::Fail
    }

    /// The word that an error displays, if it displays nothing else. A list of errors that includes
    /// a word is not a control word.
    fn shown_by(error: &(dyn Error + 'static)) -> Option<Self> {
        SHOWN.take();
        let mut shown = Short::up_to(WORD_BYTES_MAX);
        write!(shown, "{error}").ok()?;
        SHOWN.take().filter(|word| word.text() == shown.text)
    }

    fn show(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SHOWN.set(Some(self));
        f.write_str(&self.text())
    }

    fn text(self) -> String {
        match self {
            Self::Fail => "failed".into(),
            Self::RetryAfter(wait) => format!("retry in {wait:?}"),
            Self::Fatal => "fatal".into(),
            Self::Snooze(wait) => format!("snooze for {wait:?}"),
            Self::Cancel => "cancelled by its handler".into(),
        }
    }
}

/// Accepts at most this many bytes, because an error may write without end.
struct Short {
    text: String,
    max: usize,
}

impl Short {
    fn up_to(max: usize) -> Self {
        Self { text: String::new(), max }
    }
}

impl fmt::Write for Short {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        if self.text.len() + more.len() > self.max {
            return Err(fmt::Error);
        }
        self.text.push_str(more);
        Ok(())
    }
}

/// Longer texts are not compared.
const COMPARED_BYTES_MAX: usize = 1024;

/// An error with its sources, one per line, as the error history stores it. Omits a source if the
/// text of the line before ends with it, and the word [`Fatal`], which the task's state already
/// shows.
pub struct Chain<'a>(pub &'a (dyn Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut next, mut written) = (Some(self.0), None::<String>);
        let mut between = "";
        for _ in 0..SOURCES_MAX {
            let Some(error) = next else { break };
            next = error.source();
            SHOWN.take();
            let mut text = Short::up_to(COMPARED_BYTES_MAX);
            let text = write!(text, "{error}").ok().map(|()| text.text);
            let is_word = SHOWN.take() == Some(Control::Fatal) && text.as_deref() == Some("fatal");
            let is_repeated = match (&written, &text) {
                (Some(written), Some(text)) => !text.is_empty() && written.ends_with(text.as_str()),
                _ => false,
            };
            if is_repeated || is_word && next.is_some() {
                continue;
            }
            f.write_str(between)?;
            match &text {
                Some(text) => f.write_str(text)?,
                None => write!(f, "{error}")?,
            }
            (written, between) = (text, "\n  caused by: ");
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "control_tests.rs"]
mod tests;
