//! Who has set limits, as the audit has it: [`LimitSetters`].

use std::collections::HashMap;

use crate::{
    Error, audit::AuditRow, gate::Gate, id::QueueName, inspect::Inspector, limit::Limit,
    task_page::PAGE_MAX,
};

/// The act of the audit that sets a limit.
pub const SET: &str = "limit.set";
/// The one that removes it.
pub const REMOVE: &str = "limit.remove";

/// How many of the latest acts are looked at.
const ACTS_MAX: usize = 4 * PAGE_MAX;

/// The acts that have last set or removed each limit, of the latest 512 acts.
#[derive(Debug, Clone, Default)]
pub struct LimitSetters(HashMap<String, AuditRow>);

impl Inspector {
    /// Reads who has set limits. Acts that can't be read, because another program has written their
    /// key, hide no limit: then nobody is named.
    ///
    /// # Errors
    /// [`Error::is_unavailable`].
    pub async fn limit_setters(&self) -> Result<LimitSetters, Error> {
        let (mut setters, mut after, mut seen) = (LimitSetters::default(), None, 0);
        while seen < ACTS_MAX {
            let page = match self.audit(after.as_ref(), PAGE_MAX).await {
                Err(problem) if problem.is_unavailable() => return Err(problem),
                page => page.unwrap_or_default(),
            };
            seen += page.rows.len();
            page.rows.into_iter().for_each(|row| setters.add(row));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        Ok(setters)
    }
}

impl LimitSetters {
    /// Returns what the audit calls a limit, which is the target of [`SET`] and [`REMOVE`].
    pub fn target(queue: &QueueName, gate: &Gate) -> String {
        format!("{queue} {}", gate.text())
    }

    /// Returns what the audit says of a limit that is set, which may go on after a `;`.
    pub fn outcome(limit: &Limit) -> String {
        format!("set to {limit}")
    }

    /// Adds an act, unless it has failed or a later one is known.
    fn add(&mut self, row: AuditRow) {
        let outcome = row.outcome.as_deref().unwrap_or_default();
        if [SET, REMOVE].contains(&row.act.act.as_str()) && !outcome.starts_with("failed") {
            self.0.entry(row.act.target.clone()).or_insert(row);
        }
    }

    /// Returns the act that has set a limit to what it is now. It is not known if a program has set
    /// it, also over what an operator had set, if many acts came after it, or if a later act may
    /// have set or removed it.
    pub fn of(&self, queue: &QueueName, gate: &Gate, limit: &Limit) -> Option<&AuditRow> {
        let row = self.0.get(&Self::target(queue, gate))?;
        let outcome = row.outcome.as_deref()?.split(';').next();
        (row.act.act == SET && outcome == Some(&Self::outcome(limit))).then_some(row)
    }
}
