//! The tasks that all workers executed. They prove that each task was executed exactly once.

use anyhow::ensure;

use crate::agent::protocol::Tallied;

/// The executions of some workers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Executions {
    words: Vec<u64>,
    doubled: u64,
    /// The delays of the stamped tasks.
    pub(crate) latencies_us: Vec<f64>,
}

impl Executions {
    /// Adds the executions of one worker.
    pub(crate) fn add(&mut self, tallied: Tallied) {
        self.words.resize(self.words.len().max(tallied.words.len()), 0);
        for (ours, others) in self.words.iter_mut().zip(tallied.words) {
            self.doubled += u64::from((*ours & others).count_ones());
            *ours |= others;
        }
        self.doubled += tallied.doubled;
        self.latencies_us.extend(tallied.latencies_us);
    }

    /// Returns the number of different tasks that were executed.
    pub(crate) fn total(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Returns an error unless this many tasks were executed, each exactly once.
    ///
    /// # Errors
    ///
    /// States how many were not executed, or executed twice.
    pub(crate) fn ensure_exactly(&self, tasks: u64) -> anyhow::Result<()> {
        let (executed, doubled) = (self.total(), self.doubled);
        ensure!(
            executed == tasks && doubled == 0,
            "{executed} of {tasks} tasks were executed, and {doubled} executions were repetitions; \
             each must be executed exactly once"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executions(of: &[&[u64]]) -> Executions {
        let mut all = Executions::default();
        for words in of {
            all.add(Tallied { words: words.to_vec(), ..Tallied::default() });
        }
        all
    }

    #[test]
    fn each_task_must_run_once_over_all_workers() {
        assert!(executions(&[&[0b101], &[0b010, 1]]).ensure_exactly(4).is_ok());
    }

    #[test]
    fn a_task_that_is_missing_or_was_run_by_two_workers_is_found() {
        assert!(executions(&[&[0b101]]).ensure_exactly(3).is_err());
        assert!(executions(&[&[0b101], &[0b100, 1]]).ensure_exactly(3).is_err());
    }
}
