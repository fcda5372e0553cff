//! The log of a task, as `optimus task show` prints it.

use chrono::SecondsFormat;
use optimus_core::TaskLog;

use crate::output::text;

/// How many lines are shown without `--full`.
const LINES_SHOWN: usize = 20;

/// Returns the last lines of a log, or all; `None` if it has none.
pub(crate) fn shown(log: &TaskLog, limit: usize) -> Option<String> {
    let most = if limit == usize::MAX { limit } else { LINES_SHOWN };
    let left_out = log.lines.len().saturating_sub(most);
    let mut shown = Vec::new();
    if log.dropped > 0 {
        shown.push(format!("… {} not kept", text::count(log.dropped, "earlier line")));
    }
    if left_out > 0 {
        let count = text::count(left_out as u64, "line");
        shown.push(format!("… {count} not shown; --full prints all"));
    }
    shown.extend(log.lines[left_out..].iter().map(|line| {
        let at = line.at.to_rfc3339_opts(SecondsFormat::Millis, true);
        format!("{at}, attempt {}: {}", line.attempt, line.text)
    }));
    (!shown.is_empty()).then(|| shown.join("\n"))
}
