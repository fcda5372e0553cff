//! Control words: errors by which a handler says what should become of its task.
//!
//! They are found anywhere along the source chain, so `?`, `.context(…)` and wrapping keep them.

use std::{error::Error, fmt, time::Duration};

/// Any error of a handler.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Try again after exactly this wait, instead of the back-off's. Spends a retry.
#[derive(Debug, thiserror::Error)]
#[error("retry in {after:?}")]
pub struct Retry {
    after: Duration,
    source: Option<BoxError>,
}

impl Retry {
    /// Retry after `wait`.
    pub fn after(wait: Duration) -> Self {
        Self { after: wait, source: None }
    }

    /// Keeps what went wrong in the task's error history.
    pub fn because(mut self, error: impl Into<BoxError>) -> Self {
        self.source = Some(error.into());
        self
    }
}

/// Do not retry: the task is buried at once.
#[derive(Debug, thiserror::Error)]
#[error("fatal")]
pub struct Fatal(#[source] BoxError);

impl Fatal {
    /// Gives up because of `error`.
    pub fn new(error: impl Into<BoxError>) -> Self {
        Self(error.into())
    }
}

/// Not now: come back after this wait, without spending an attempt.
#[derive(Debug, thiserror::Error)]
#[error("snooze for {0:?}")]
pub struct Snooze(Duration);

impl Snooze {
    /// Comes back after `wait`.
    pub fn lasting(wait: Duration) -> Self {
        Self(wait)
    }
}

/// The task is no longer wanted: it ends in `Cancelled`, not in `Dead`.
#[derive(Debug, thiserror::Error)]
#[error("cancelled by its handler")]
pub struct Cancel;

/// What a handler's error asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Control {
    /// An ordinary failure: back-off, then retry while any is left.
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

impl Control {
    /// Reads the first control word along the source chain.
    pub fn of(error: &(dyn Error + 'static)) -> Self {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(retry) = error.downcast_ref::<Retry>() {
                return Self::RetryAfter(retry.after);
            }
            if error.is::<Fatal>() {
                return Self::Fatal;
            }
            if let Some(Snooze(wait)) = error.downcast_ref() {
                return Self::Snooze(*wait);
            }
            if error.is::<Cancel>() {
                return Self::Cancel;
            }
            next = error.source();
        }
        Self::Fail
    }
}

/// An error with its sources on one line each, as the error history keeps it.
pub struct Chain<'a>(pub &'a (dyn Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut next = self.0.source();
        while let Some(source) = next {
            write!(f, "\n  caused by: {source}")?;
            next = source.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] BoxError);

    #[test]
    fn a_control_word_is_found_below_other_errors() {
        let second = Duration::from_secs(1);
        let cases: [(BoxError, Control); 5] = [
            (Retry::after(second).because("boom").into(), Control::RetryAfter(second)),
            (Fatal::new("boom").into(), Control::Fatal),
            (Snooze::lasting(second).into(), Control::Snooze(second)),
            (Cancel.into(), Control::Cancel),
            ("boom".into(), Control::Fail),
        ];
        for (word, control) in cases {
            assert_eq!(Control::of(&Outer(Box::new(Outer(word)))), control);
        }
    }

    #[test]
    fn an_error_is_written_with_all_its_sources() {
        let error = Outer(Box::new(Outer("boom".into())));
        assert_eq!(Chain(&error).to_string(), "outer\n  caused by: outer\n  caused by: boom");
    }
}
