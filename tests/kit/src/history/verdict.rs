//! The result of checking a history: [`Verdict`].

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::time::Duration;

use super::Why;

/// The most findings that are printed in full.
const FINDINGS_MAX: usize = 50;

/// The result of a check.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// The number of tasks that a client tried to submit.
    pub submitted: u64,
    /// The number of acknowledged tasks.
    pub acked: u64,
    /// The number of tasks that were not admitted because their biz id was taken.
    pub duplicates: u64,
    /// The number of tasks whose client received the answer that nothing was done.
    pub refused: u64,
    /// The number of tasks whose outcome the client does not know.
    pub unknown: u64,
    /// The number of tasks that ran at least once.
    pub executed: u64,
    /// How often handlers began.
    pub executions: u64,
    /// The number of acknowledged tasks that are lost because Redis rolled back.
    pub rolled_back: u64,
    /// The repeated executions, by their reason.
    pub second: BTreeMap<Why, u64>,
    /// The number of killed processes.
    pub kills: u64,
    /// The number of processes that were stopped and continued.
    pub freezes: u64,
    /// The time from a worker's kill until another worker began each of its running tasks.
    pub recoveries: Vec<Duration>,
    /// The broken invariants. Only the first ones are kept in full.
    pub findings: Vec<String>,
    /// The number of broken invariants.
    pub found: u64,
}

impl Verdict {
    /// Returns whether no invariant is broken.
    pub fn is_good(&self) -> bool {
        self.found == 0
    }

    /// Returns the longest recovery time within this share (0.0 to 1.0) of all recoveries, the
    /// fastest first.
    pub fn recovery(&self, share: f64) -> Option<Duration> {
        let mut sorted = self.recoveries.clone();
        sorted.sort_unstable();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "a share of a count is a count"
        )]
        let at = ((sorted.len() as f64 * share).ceil() as usize).saturating_sub(1);
        sorted.get(at).copied()
    }

    /// Returns the number of repeated executions with this reason.
    pub fn second_by(&self, why: Why) -> u64 {
        self.second.get(&why).copied().unwrap_or(0)
    }
}

impl Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |name: &str, value: &dyn Display| writeln!(f, "  {name:<34} {value:>12}");
        row("submitted", &self.submitted)?;
        row("acknowledged", &self.acked)?;
        row("duplicates of a biz id", &self.duplicates)?;
        row("refused", &self.refused)?;
        row("outcome unknown", &self.unknown)?;
        row("tasks executed", &self.executed)?;
        row("executions", &self.executions)?;
        row("lost because Redis rolled back", &self.rolled_back)?;
        for why in Why::ALL {
            let name = format!("second: {}", why.name());
            row(&name, &self.second_by(why))?;
        }
        row("processes killed", &self.kills)?;
        row("processes frozen", &self.freezes)?;
        for (name, share) in [("p50", 0.5), ("p99", 0.99), ("max", 1.0)] {
            if let Some(time) = self.recovery(share) {
                let name = format!("recovery of {} tasks, {name}", self.recoveries.len());
                row(&name, &format!("{:.2} s", time.as_secs_f64()))?;
            }
        }
        row("violations", &self.found)?;
        self.findings.iter().try_for_each(|finding| writeln!(f, "VIOLATION {finding}"))
    }
}

/// Collects broken invariants.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) told: Vec<(u64, String)>,
    pub(super) count: u64,
}

impl Findings {
    /// Adds a finding about a task.
    pub(super) fn add(&mut self, task: u64, what: impl Into<String>) {
        self.count += 1;
        if self.told.len() < FINDINGS_MAX {
            self.told.push((task, what.into()));
        }
    }
}
