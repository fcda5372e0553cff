//! Counts the events of runs: [`Tally`].

use std::fmt::{self, Display};

use crate::exchange_fault::Fault;
use crate::script_coverage::Coverage;

/// The counts of one run, or of many.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// The commands that the store performed, including script calls.
    pub commands: u64,
    /// The script calls that the store performed.
    pub script_calls: u64,
    /// The faults, by [kind](Fault::kind).
    pub faults: [u64; Fault::KINDS.len()],
    /// The killed processes.
    pub deaths: u64,
    /// The rollbacks of the store.
    pub rollbacks: u64,
    /// The changes of a clock.
    pub clock_steps: u64,
    /// The tasks that a user tried to submit.
    pub submitted: u64,
    /// How often handlers began.
    pub executions: u64,
    /// The `redis.call`s that were made, and those that failed.
    pub coverage: Coverage,
}

impl Tally {
    /// Adds the counts of another run.
    pub fn merge(&mut self, other: Self) {
        self.commands += other.commands;
        self.script_calls += other.script_calls;
        for (ours, theirs) in self.faults.iter_mut().zip(other.faults) {
            *ours += theirs;
        }
        self.deaths += other.deaths;
        self.rollbacks += other.rollbacks;
        self.clock_steps += other.clock_steps;
        self.submitted += other.submitted;
        self.executions += other.executions;
        self.coverage.merge(other.coverage);
    }
}

impl Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |name: &str, count: u64| writeln!(f, "  {name:<28} {count:>12}");
        row("script calls", self.script_calls)?;
        row("tasks submitted", self.submitted)?;
        row("executions", self.executions)?;
        for (name, count) in Fault::KINDS.iter().zip(self.faults).filter(|(_, count)| *count > 0) {
            row(name, count)?;
        }
        row("processes killed", self.deaths)?;
        row("failovers", self.rollbacks)?;
        row("clocks set", self.clock_steps)?;
        let sites = self.coverage.sites();
        let sum = |count: fn(&crate::script_coverage::Site) -> usize| -> u64 {
            sites.iter().map(|site| count(site) as u64).sum()
        };
        row("redis.calls of scripts", sum(|site| site.calls))?;
        row("made", sum(|site| site.made))?;
        row("made before a first write", sum(|site| site.early))?;
        row("failed there", sum(|site| site.failed))?;
        row("failures there", self.coverage.failures())
    }
}
