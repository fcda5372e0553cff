//! Who has paused something, why, since when and until when: [`Pause`].

use std::fmt;

use chrono::{DateTime, Utc};
use optimus_core::{ScheduleDetails, Shut};
use serde::Serialize;

use crate::output::text;

/// A pause, in the JSON of each command that shows one.
#[derive(Debug, Serialize)]
pub(crate) struct Pause {
    pub(crate) by: String,
    pub(crate) why: String,
    #[serde(rename = "since_ms", with = "chrono::serde::ts_milliseconds")]
    pub(crate) since: DateTime<Utc>,
    /// `None`: until somebody resumes it.
    #[serde(rename = "until_ms", with = "chrono::serde::ts_milliseconds_option")]
    pub(crate) until: Option<DateTime<Utc>>,
}

impl Pause {
    pub(crate) fn of(shut: &Shut) -> Self {
        let Shut { by, why, since, until, .. } = shut.clone();
        Self { by, why, since, until }
    }

    pub(crate) fn of_schedule(found: &ScheduleDetails) -> Option<Self> {
        let (since, by) = found.paused.clone()?;
        Some(Self { by, why: found.paused_why.clone(), since, until: None })
    }

    /// Describes the pause in a line.
    pub(crate) fn at(&self, now: DateTime<Utc>) -> String {
        let until = self
            .until
            .map_or_else(String::new, |until| format!(", ends {}", text::relative(until, now)));
        format!("{self} {}{until}", text::relative(self.since, now))
    }
}

/// Says who has paused it, and why.
impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("paused")?;
        if !self.by.is_empty() {
            write!(f, " by {}", self.by)?;
        }
        if !self.why.is_empty() {
            write!(f, " ({})", self.why)?;
        }
        Ok(())
    }
}
