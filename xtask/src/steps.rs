//! The steps of a command. Each step is announced when it begins and timed when it ends. A summary
//! lists all steps.

use std::time::{Duration, Instant};

/// The steps that have ended.
#[derive(Default)]
pub(crate) struct Steps {
    done: Vec<Step>,
}

struct Step {
    name: &'static str,
    took: Duration,
    passed: bool,
}

impl Steps {
    /// Runs one step. Prints and counts a failure, so that the next step still runs and one run
    /// shows every failure. Returns whether this step succeeded.
    pub(crate) fn run(
        &mut self,
        name: &'static str,
        work: impl FnOnce() -> anyhow::Result<()>,
    ) -> bool {
        println!("\n==> {name}");
        let begun = Instant::now();
        let result = work();
        let step = Step { name, took: begun.elapsed(), passed: result.is_ok() };
        if let Err(error) = &result {
            println!("{error:#}");
        }
        println!("<== {}", step.line());
        self.done.push(step);
        result.is_ok()
    }

    /// Returns the number of failed steps.
    pub(crate) fn failed(&self) -> usize {
        self.done.iter().filter(|step| !step.passed).count()
    }

    /// Prints every step with its time.
    pub(crate) fn print_overview(&self) {
        println!("\nOverview");
        for step in &self.done {
            println!("  {}", step.line());
        }
    }
}

impl Step {
    fn line(&self) -> String {
        let result = if self.passed { "ok" } else { "FAILED" };
        format!("{:<24} {result:<6} {:>7.1} s", self.name, self.took.as_secs_f64())
    }
}
