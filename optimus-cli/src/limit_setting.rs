//! Who has set a limit, why and when: [`LimitSetting`].

use std::fmt;

use chrono::{DateTime, Utc};
use optimus_core::AuditRow;
use serde::Serialize;

use crate::output::text;

/// How a limit was set.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct LimitSetting {
    by: String,
    why: String,
    #[serde(rename = "at_ms", with = "chrono::serde::ts_milliseconds")]
    at: DateTime<Utc>,
}

impl LimitSetting {
    /// Reads the act that has set it.
    pub(crate) fn of(row: &AuditRow) -> Self {
        Self { by: row.act.who.clone(), why: row.act.reason.clone(), at: row.at }
    }

    /// Describes the setting in a line.
    pub(crate) fn at(&self, now: DateTime<Utc>) -> String {
        format!("{self} {}", text::relative(self.at, now))
    }
}

/// Says who has set it, and why.
impl fmt::Display for LimitSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.by)?;
        if self.why.is_empty() { Ok(()) } else { write!(f, " ({})", self.why) }
    }
}
