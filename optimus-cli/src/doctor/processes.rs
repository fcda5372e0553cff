//! Checks whether handlers keep the slots of processes, and whether processes were lost.

use std::time::Duration;

use optimus_core::{ProcessDetails, RunningTask};

use super::{Finding, lost};
use crate::{
    command::process,
    failure::Failure,
    output::{clean, text},
    session::Session,
};

/// How many handlers of a process are named.
const NAMED: usize = 3;

/// Finds handlers that go on after their timeouts, and processes that were lost. Queues tell which
/// processes are blocked.
pub(crate) async fn check(session: &Session<'_>) -> Result<Vec<Finding>, Failure> {
    let processes = process::all(session).await?;
    let live = processes.iter().filter(|process| !process.is_lost);
    let now = session.now().await?;
    Ok(live.filter_map(late).chain(lost::check(&processes, now)).collect())
}

fn late(process: &ProcessDetails) -> Option<Finding> {
    let named = |task: &RunningTask| {
        let late = text::duration(Duration::from_millis(task.late_ms?));
        Some(format!("{} ({}) for {late}", clean::line(&task.id), clean::line(&task.task)))
    };
    let mut late: Vec<_> = process.doing.running.iter().filter_map(named).collect();
    if late.is_empty() {
        return None;
    }
    let more = late.len().saturating_sub(NAMED);
    late.truncate(NAMED);
    if more > 0 {
        late.push(format!("and {more} more"));
    }
    let text = format!(
        "handlers of process {} go on after their timeouts, and each keeps a slot until it returns \
         or the process restarts: {}. A handler that blocks its thread can't be stopped",
        place(process),
        late.join(", ")
    );
    Some(Finding::warning("processes", text))
}

/// Says where a process is, or was.
pub(super) fn place(process: &ProcessDetails) -> String {
    let ProcessDetails { id, about, .. } = process;
    format!("{id} ({}, pid {})", clean::line(&about.host), about.pid)
}
