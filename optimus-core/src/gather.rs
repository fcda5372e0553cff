//! Gathered calls: many calls of a task become one run, which has a list of their arguments.

use std::time::Duration;

use crate::{
    Error,
    options::{DURATION_MAX, TaskOptions},
    record_json::millis,
};

/// The most calls that one run may have.
pub(crate) const RUN_MAX: u32 = 10_000;

/// The longest key: it is part of a Redis key.
const KEY_BYTES_MAX: usize = 512;

/// How a call is gathered with others of its task and queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gather {
    /// Calls with the same key run together. It is empty if all calls of the task do.
    pub by: String,
    /// How long after its first call a run starts.
    pub wait: Duration,
    /// How many calls start the run at once. It has no more.
    pub max: u32,
}

/// When the calls of a definition run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) wait: Duration,
    pub(crate) max: u32,
}

impl Window {
    /// Returns why no call could be gathered so.
    pub(crate) fn problem(self, expires_in: Option<Duration>) -> Option<String> {
        let Self { wait, max } = self;
        if wait < Duration::from_millis(1) || wait > DURATION_MAX {
            return Some("gather must wait at least 1 ms and less than 1,800 days".into());
        }
        if !(2..=RUN_MAX).contains(&max) {
            return Some(format!("gather takes from 2 to {RUN_MAX} calls a run, not {max}"));
        }
        let expires_in = expires_in.filter(|expires_in| *expires_in <= wait)?;
        Some(format!(
            "a call is gathered for {wait:?}, but expires after {expires_in:?}; set a longer \
             expires_in or a shorter wait"
        ))
    }
}

impl TaskOptions {
    /// Gathers the calls of the task: `max` of them, or those of `wait` after the first one, run
    /// together, in [`Task::run_all`](crate::Task::run_all). A run has from 2 to 10,000 calls.
    pub const fn gather(mut self, wait: Duration, max: u32) -> Self {
        self.gather = Some(Window { wait, max });
        self
    }

    /// Returns whether its calls are gathered.
    pub fn gathers(&self) -> bool {
        self.gather.is_some()
    }
}

impl Gather {
    /// Returns how a call with these validated options is gathered. `by` is its key, if it has one.
    pub(crate) fn of(
        task: &str,
        by: Option<String>,
        lane: Option<&str>,
        options: &TaskOptions,
    ) -> Result<Option<Self>, Error> {
        let refuse = |what: String| Err(Error::invalid(format!("task {task:?}: {what}")));
        let Some(Window { wait, max }) = options.gather else {
            return match by {
                None => Ok(None),
                Some(_) => refuse(
                    "by has no effect, because its calls are not gathered; set gather in the \
                     task's definition, too"
                        .into(),
                ),
            };
        };
        if lane.is_some() {
            return refuse(
                "its calls are gathered, and the calls of one run start together, so it can't be \
                 in a lane, whose tasks start one after the other; remove the lane, or the gather \
                 of its definition"
                    .into(),
            );
        }
        if let Some(problem) = by.as_deref().and_then(problem_of) {
            return refuse(problem);
        }
        Ok(Some(Self { by: by.unwrap_or_default(), wait, max }))
    }

    /// Returns it as a header states it.
    pub(crate) fn stored(&self) -> String {
        format!("{}:{}:{}", millis(self.wait), self.max, self.by)
    }

    /// Reads what a header states.
    pub(crate) fn from_stored(stored: &str) -> Option<Self> {
        let mut parts = stored.splitn(3, ':');
        let wait = Duration::from_millis(parts.next()?.parse().ok()?);
        let max = parts.next()?.parse().ok()?;
        Some(Self { by: parts.next()?.to_owned(), wait, max })
    }
}

/// Returns the reason why a text can't be the key.
fn problem_of(key: &str) -> Option<String> {
    if key.is_empty() {
        return Some(
            "the key by which it is gathered is empty; use a value that differs where calls must \
             not run together, or leave `by` out"
                .into(),
        );
    }
    if key.len() > KEY_BYTES_MAX {
        return Some(format!(
            "the key by which it is gathered has {} bytes; use at most {KEY_BYTES_MAX}, such as \
             an id or a hash",
            key.len()
        ));
    }
    let found = key.chars().find(|c| c.is_control())?;
    Some(format!(
        "the key by which it is gathered has the control character {found:?}; leave it out"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn of(by: Option<&str>, lane: Option<&str>) -> Result<Option<Gather>, Error> {
        let options = TaskOptions::new().gather(10 * S, 500);
        Gather::of("digest", by.map(Into::into), lane, &options)
    }

    #[test]
    fn a_key_has_1_to_512_bytes_and_no_control_characters() {
        for key in ["a", "user-7", "Zürich: {a} b", &"x".repeat(512)] {
            let gather = of(Some(key), None).unwrap().expect("it is gathered");
            assert_eq!((&*gather.by, gather.wait, gather.max), (key, 10 * S, 500));
        }
        assert_eq!(of(None, None).unwrap().map(|gather| gather.by), Some(String::new()));
        for (key, problem) in
            [("", "is empty"), (&*"x".repeat(513), "has 513 bytes"), ("a\nb", "'\\n'")]
        {
            let error = of(Some(key), None).unwrap_err();
            assert!(error.is_invalid(), "{error}");
            let text = error.to_string();
            assert!(text.contains("\"digest\"") && text.contains(problem), "{text}");
        }
    }

    #[test]
    fn the_stored_form_is_read_back_with_any_key() {
        for by in ["", "7", "a:b", "Zürich: {a}"] {
            let gather = Gather { by: by.into(), wait: 10 * S, max: 500 };
            assert_eq!(gather.stored(), format!("10000:500:{by}"));
            assert_eq!(Gather::from_stored(&gather.stored()), Some(gather));
        }
        for stored in ["", "1", "1:2", "x:2:", "1:x:"] {
            assert_eq!(Gather::from_stored(stored), None, "{stored}");
        }
    }

    #[test]
    fn a_gathered_call_is_in_no_lane_and_a_key_needs_a_gather() {
        let text = of(None, Some("a")).unwrap_err().to_string();
        assert!(text.contains("can't be in a lane"), "{text}");
        let plain = Gather::of("digest", Some("a".into()), None, &TaskOptions::new());
        let text = plain.unwrap_err().to_string();
        assert!(text.contains("by has no effect"), "{text}");
    }

    #[test]
    fn a_window_that_gathers_nothing_is_refused() {
        let problem = |wait, max, expires_in| Window { wait, max }.problem(expires_in);
        assert_eq!(problem(S, 2, None), None);
        assert_eq!(problem(S, 10_000, Some(2 * S)), None);
        for (found, word) in [
            (problem(Duration::ZERO, 5, None), "at least 1 ms"),
            (problem(S, 1, None), "from 2 to 10000"),
            (problem(S, 10_001, None), "from 2 to 10000"),
            (problem(S, 5, Some(S)), "expires after 1s"),
        ] {
            let text = found.unwrap();
            assert!(text.contains(word), "{text}");
        }
    }
}
