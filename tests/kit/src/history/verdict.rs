//! What a history proves: [`Verdict`].

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::time::Duration;

use super::Why;

/// So many findings are told in full.
const FINDINGS_MAX: usize = 50;

/// The result of a check.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Tasks that somebody tried to submit.
    pub submitted: u64,
    /// Of them, those that were acknowledged.
    pub acked: u64,
    /// Those that were not, because their biz id was taken.
    pub duplicates: u64,
    /// Those whose client was told that nothing was done.
    pub refused: u64,
    /// Those whose outcome the client does not know.
    pub unknown: u64,
    /// Tasks that ran, be it several times.
    pub executed: u64,
    /// How often handlers began.
    pub executions: u64,
    /// Acknowledged tasks that a Redis which rolled back may lose, and did.
    pub rolled_back: u64,
    /// The executions that were not the first of their task, by their reason.
    pub second: BTreeMap<Why, u64>,
    /// Processes killed.
    pub kills: u64,
    /// Processes stopped and let go on.
    pub freezes: u64,
    /// From a worker's kill until another began each of the tasks that it was running.
    pub recoveries: Vec<Duration>,
    /// What must not be, the first ones in full.
    pub findings: Vec<String>,
    /// How many of them there are.
    pub found: u64,
}

impl Verdict {
    /// Nothing was found that must not be.
    pub fn is_good(&self) -> bool {
        self.found == 0
    }

    /// The recovery time that this share of all (0.0 to 1.0) stays within.
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

    /// How many second executions have this reason.
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
        row("lost with a Redis that rolled back", &self.rolled_back)?;
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

/// Gathers what must not be.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) told: Vec<(u64, String)>,
    pub(super) count: u64,
}

impl Findings {
    /// Adds one about a task.
    pub(super) fn add(&mut self, task: u64, what: impl Into<String>) {
        self.count += 1;
        if self.told.len() < FINDINGS_MAX {
            self.told.push((task, what.into()));
        }
    }
}
