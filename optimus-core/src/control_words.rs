//! Control words: errors with which a handler decides what happens to its task.
//!
//! A worker finds control words anywhere in the source chain. So `?`, `.context(…)` and wrapping
//! preserve them, also in `anyhow::Error` and `eyre::Report`.
//!
//! Those two types hide the type of the error that they hold: `downcast_ref` does not find it after
//! a report has become a `Box<dyn Error>`. However, they display the error. So while a thread looks
//! for a word, each word displays only itself and records this in a thread-local. This method needs
//! no feature flag.

use std::{
    cell::Cell,
    error::Error,
    fmt::{self, Write},
    io,
    time::Duration,
};

use crate::gate::ShutScope;

/// The longest source chain that is read: an error may be its own source.
const SOURCES_MAX: usize = 1_000;

/// The maximum number of bytes of a text that may be a word. The limit is longer than any word.
const WORD_BYTES_MAX: usize = 100;

/// Any error of a handler.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The shortest snooze. A snooze uses no attempt, so a task that always snoozes never ends by
/// itself.
const SNOOZE_MIN: Duration = Duration::from_millis(100);

/// Retries the task after exactly this wait, instead of the wait of the back-off. It uses a retry.
#[derive(Debug)]
pub struct Retry {
    after: Duration,
    pausing: Option<ShutScope>,
    source: Option<BoxError>,
}

impl Retry {
    /// Retries after `wait`.
    pub fn after(wait: Duration) -> Self {
        Self { after: wait, pausing: None, source: None }
    }

    /// Pauses the task's lane for the same time: no task of it starts, over all workers. Use this
    /// if a service says that one tenant must wait. Without a lane, only this task waits.
    pub fn pause_lane(self) -> Self {
        self.pausing(ShutScope::Lane)
    }

    /// Pauses all tasks of this name in the queue for the same time.
    pub fn pause_task(self) -> Self {
        self.pausing(ShutScope::Task)
    }

    /// Pauses all tasks of the task's limit for the same time: the limit that it names, or else its
    /// own. Use this if a service says that everybody must wait.
    pub fn pause_limit(self) -> Self {
        self.pausing(ShutScope::Limit)
    }

    /// Pauses the queue for the same time.
    pub fn pause_queue(self) -> Self {
        self.pausing(ShutScope::Queue)
    }

    fn pausing(mut self, scope: ShutScope) -> Self {
        self.pausing = Some(scope);
        self
    }

    /// Stores the error in the task's error history.
    pub fn because(mut self, error: impl Into<BoxError>) -> Self {
        self.source = Some(error.into());
        self
    }
}

/// Marks the task Dead at once, without further retries.
#[derive(Debug)]
pub struct Fatal(BoxError);

impl Fatal {
    /// Marks the task Dead because of `error`.
    pub fn new(error: impl Into<BoxError>) -> Self {
        Self(error.into())
    }
}

/// Runs the task again after this wait, without using an attempt.
/// [`Context::attempt`](crate::Context::attempt) stays the same, however often a task snoozes, and
/// the task does not expire in the meantime.
///
/// So a task that always snoozes never ends, and keeps its place in its lane. Give up after some
/// [age](crate::Context::age):
///
/// ```
/// use std::time::Duration;
///
/// # use optimus_core as optimus;
/// use optimus::{BoxError, Context, Fatal, Snooze};
///
/// async fn deliver(status: u16, ctx: Context) -> Result<(), BoxError> {
///     let day = Duration::from_secs(24 * 60 * 60);
///     match status {
///         200 => Ok(()),
///         429 if ctx.age() > Some(day) => Err(Fatal::new("429 for a day").into()),
///         429 => Err(Snooze::new(Duration::from_secs(30)).because("429").into()),
///         other => Err(format!("the server answered {other}").into()),
///     }
/// }
/// # let _ = deliver;
/// ```
#[derive(Debug)]
pub struct Snooze {
    wait: Duration,
    source: Option<BoxError>,
}

impl Snooze {
    /// Runs again after `wait`, but not sooner than after 100 ms, so that no task spins.
    pub fn new(wait: Duration) -> Self {
        Self { wait: wait.max(SNOOZE_MIN), source: None }
    }

    /// Adds the reason. The worker logs it, and the log of the task shows it, too, with a line for
    /// each snooze; see [`Context::log`](crate::Context::log).
    pub fn because(mut self, reason: impl Into<BoxError>) -> Self {
        self.source = Some(reason.into());
        self
    }
}

/// Ends the task in `Cancelled`, not in `Dead`, because it is no longer wanted.
#[derive(Debug)]
pub struct Cancel;

/// So that a handler that returns `std::io::Error` can return a word with `?` or `into`.
macro_rules! into_io_error {
    ($($word:ty),*) => {
        $(impl From<$word> for io::Error {
            fn from(word: $word) -> Self {
                Self::other(word)
            }
        })*
    };
}

into_io_error!(Retry, Fatal, Snooze, Cancel);

impl fmt::Display for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Control::RetryAfter(self.after, self.pausing).show(self.source.as_deref(), f)
    }
}

impl fmt::Display for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Control::Fatal.show(Some(&*self.0), f)
    }
}

impl fmt::Display for Snooze {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Control::Snooze(self.wait).show(self.source.as_deref(), f)
    }
}

impl fmt::Display for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Control::Cancel.show(None, f)
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

impl Error for Snooze {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| &**source as _)
    }
}

impl Error for Cancel {}

/// The effect that a handler's error requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Control {
    /// An ordinary failure: back-off, then retry while any retries are left.
    Fail,
    /// The word [`Retry`], and what pauses for the same time.
    RetryAfter(Duration, Option<ShutScope>),
    /// The word [`Fatal`].
    Fatal,
    /// The word [`Snooze`].
    Snooze(Duration),
    /// The word [`Cancel`].
    Cancel,
}

thread_local! {
    /// The word that was displayed last while this thread looked for one.
    static SHOWN: Cell<Option<Control>> = const { Cell::new(None) };
    /// Whether this thread looks for a word.
    static IS_LOOKING: Cell<bool> = const { Cell::new(false) };
}

/// While this value exists, words are displayed without their causes. `Drop` ends this state even
/// if the `Display` of an error panics.
struct Looking;

impl Looking {
    fn begin() -> Self {
        SHOWN.take();
        IS_LOOKING.set(true);
        Self
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        IS_LOOKING.set(false);
    }
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

    /// Returns the word that an error displays, if it displays nothing else. A list of errors that
    /// includes a word is not a control word.
    fn shown_by(error: &(dyn Error + 'static)) -> Option<Self> {
        let _looking = Looking::begin();
        let mut shown = Short::up_to(WORD_BYTES_MAX);
        write!(shown, "{error}").ok()?;
        SHOWN.take().filter(|word| word.text() == shown.text)
    }

    /// Displays the word and its cause, so that the cause is visible if sources are not printed, as
    /// in a test.
    fn show(
        self,
        cause: Option<&(dyn Error + Send + Sync)>,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        f.write_str(&self.text())?;
        if IS_LOOKING.get() {
            SHOWN.set(Some(self));
            return Ok(());
        }
        cause.map_or(Ok(()), |cause| write!(f, ": {cause}"))
    }

    fn text(self) -> String {
        match self {
            Self::Fail => "failed".into(),
            Self::RetryAfter(wait, None) => format!("retry in {wait:?}"),
            Self::RetryAfter(wait, Some(scope)) => {
                format!("retry in {wait:?}, and its {} pauses", scope.word())
            }
            Self::Fatal => "fatal".into(),
            Self::Snooze(wait) => format!("snooze for {wait:?}"),
            Self::Cancel => "cancelled by its handler".into(),
        }
    }

    /// Returns the text after the last retry, so that the error of a dead task promises none.
    fn last_text(self) -> String {
        match self {
            Self::RetryAfter(wait, scope) => {
                let pauses =
                    scope.map_or_else(String::new, |s| format!("; its {} pauses", s.word()));
                format!("asked to be retried in {wait:?}, but no retry is left{pauses}")
            }
            other => other.text(),
        }
    }
}

/// Accepts at most this many bytes, because an error may write an endless text.
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

/// An error with its sources, one per line, as the error history stores it. It omits a source if
/// the text of the previous line ends with that source. It also omits the word [`Fatal`], and the
/// word [`Cancel`] after its reason, which the task's state already shows.
pub struct Chain<'a>(pub &'a (dyn Error + 'static));

/// The same after the last retry: the word [`Retry`] says that none is left.
pub struct LastChain<'a>(pub &'a (dyn Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(Control::text, f)
    }
}

impl fmt::Display for LastChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Chain(self.0).write(Control::last_text, f)
    }
}

impl Chain<'_> {
    fn write(&self, text_of: fn(Control) -> String, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut next, mut written) = (Some(self.0), None::<String>);
        let mut between = "";
        for _ in 0..SOURCES_MAX {
            let Some(error) = next else { break };
            next = error.source();
            let word = Control::shown_by(error);
            // The cause of a word is the next line.
            let text = word.map(text_of).or_else(|| {
                let mut text = Short::up_to(COMPARED_BYTES_MAX);
                write!(text, "{error}").ok().map(|()| text.text)
            });
            let is_repeated = match (&written, &text) {
                (Some(written), Some(text)) => !text.is_empty() && written.ends_with(text.as_str()),
                _ => false,
            };
            let is_shown_by_state = match word {
                Some(Control::Fatal) => next.is_some(),
                Some(Control::Cancel) => written.is_some(),
                _ => false,
            };
            if is_repeated || is_shown_by_state {
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
#[path = "control_words_tests.rs"]
mod tests;
