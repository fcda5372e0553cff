//! Adds up the results that test binaries report.

use crate::failures::Failures;

/// The numbers of tests that passed, failed and were ignored, and what the failed ones printed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) ignored: usize,
    pub(crate) failures: Failures,
}

impl Tally {
    /// Adds the numbers in a line such as `test result: ok. 4 passed; 0 failed; 1 ignored; …`.
    /// Every other line is only searched for failed tests.
    pub(crate) fn add(&mut self, line: &str) {
        self.failures.add(line);
        let Some(result) = line.trim_start().strip_prefix("test result: ") else { return };
        let counts = result.split_once(". ").map_or("", |(_verdict, counts)| counts);
        for count in counts.split("; ") {
            let Some((number, what)) = count.split_once(' ') else { continue };
            let Ok(number) = number.parse::<usize>() else { continue };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn results_are_added_up_and_other_lines_are_ignored() {
        let mut tally = Tally::default();
        for line in [
            "running 4 tests",
            "test result: ok. 4 passed; 0 failed; 1 ignored; 2 filtered out",
            "test a_test ... ok",
            "test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured",
            "the test result: ok. 100 passed",
        ] {
            tally.add(line);
        }
        assert_eq!((tally.passed, tally.failed, tally.ignored), (14, 2, 1));
    }
}
