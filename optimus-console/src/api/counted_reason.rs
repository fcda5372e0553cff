//! Why somebody has counted the tasks of an operation: [`counted_reason`].

use optimus_core::PAGE_MAX;

use crate::{problem::Problem, seat::Seat};

/// How many acts are looked at. Older ones are not found.
const ACTS_MAX: usize = 512;

/// The acts that count.
const COUNTS: [&str; 2] = ["operation.count", "operation.undo"];

/// Returns the outcome of an act that has counted an operation, up to the number.
pub(super) fn counted_by(id: &str) -> String {
    format!("{id} counts ")
}

/// Returns the reason that was given when an operation was counted: it has none of its own before
/// it is confirmed, but the audit has it. It is empty if there was none, or if many acts came after
/// it.
pub(super) async fn counted_reason(seat: &Seat, id: &str) -> Result<String, Problem> {
    let (begin, inspector, mut after, mut seen) = (counted_by(id), seat.inspector(), None, 0);
    while seen < ACTS_MAX {
        let page = match inspector.audit(after.as_ref(), PAGE_MAX).await {
            Err(problem) if problem.is_unavailable() => return Err(problem.into()),
            // An audit that can't be read must not keep an operation from its confirmation.
            page => page.unwrap_or_default(),
        };
        seen += page.rows.len();
        let has_counted = |outcome: &String| outcome.starts_with(&begin);
        let found = page.rows.into_iter().find(|row| {
            COUNTS.contains(&row.act.act.as_str()) && row.outcome.as_ref().is_some_and(has_counted)
        });
        if let Some(row) = found {
            return Ok(row.act.reason);
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    Ok(String::new())
}
