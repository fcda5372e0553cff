//! Who has set limits, why and when, as the audit has it: [`LimitSettings`].

use std::{collections::HashMap, fmt};

use chrono::{DateTime, Utc};
use optimus_core::{AuditRow, Gate, PAGE_MAX, QueueName};
use serde::Serialize;

use crate::{failure::Failure, output::text, parse::gate_text, session::Session};

/// The act of the audit.
pub(crate) const SET: &str = "limit.set";
/// How many acts of the audit are looked at, the latest ones.
const ACTS_MAX: usize = 1_024;

/// How a limit was set.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct LimitSetting {
    by: String,
    why: String,
    #[serde(rename = "at_ms", with = "chrono::serde::ts_milliseconds")]
    at: DateTime<Utc>,
}

/// How limits were set, by what the audit calls them.
#[derive(Debug, Default)]
pub(crate) struct LimitSettings(HashMap<String, LimitSetting>);

/// Returns what the audit calls a limit.
pub(crate) fn target(queue: &QueueName, gate: &Gate) -> String {
    format!("{queue} {}", gate_text(gate))
}

impl LimitSettings {
    /// Reads the latest acts. A limit that was set earlier, or by a program, has no setting.
    pub(crate) async fn read(session: &Session<'_>) -> Result<Self, Failure> {
        let (mut settings, mut after, mut seen) = (Self::default(), None, 0);
        while seen < ACTS_MAX {
            let page = session.inspector().audit(after.as_ref(), PAGE_MAX).await?;
            seen += page.rows.len();
            page.rows.into_iter().for_each(|row| settings.add(row));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        Ok(settings)
    }

    /// Adds an act, unless it has failed or a later one is known.
    fn add(&mut self, row: AuditRow) {
        let has_failed = row.outcome.is_some_and(|outcome| outcome.starts_with("failed"));
        if row.act.act == SET && !has_failed {
            let setting = LimitSetting { by: row.act.who, why: row.act.reason, at: row.at };
            self.0.entry(row.act.target).or_insert(setting);
        }
    }

    pub(crate) fn of(&self, queue: &QueueName, gate: &Gate) -> Option<&LimitSetting> {
        self.0.get(&target(queue, gate))
    }
}

impl LimitSetting {
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
