//! Collects what failed tests printed, so that the end of a long run names them.

/// The lines of a panic that are kept for each test. The whole output stands where the test ran.
const LINES_KEPT: usize = 12;

/// The failed tests that the output of test binaries names, each with the beginning of its panic.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Failures {
    tests: Vec<Failure>,
    in_section: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct Failure {
    test: String,
    panic: Vec<String>,
}

impl Failures {
    /// Reads the next line of the output. A test's section begins with `---- <test> stdout ----`
    /// and ends where the next one or the list of failures begins.
    pub(crate) fn add(&mut self, line: &str) {
        let header = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"));
        if let Some(test) = header {
            self.tests.push(Failure { test: test.to_owned(), panic: Vec::new() });
            self.in_section = true;
        } else if line == "failures:" || line.starts_with("test result: ") {
            self.in_section = false;
        } else if self.in_section
            && let Some(failure) = self.tests.last_mut()
        {
            failure.add(line);
        }
    }

    /// Prints each failed test with its panic.
    pub(crate) fn print(&self) {
        for failure in &self.tests {
            println!("\n  FAILED {}", failure.test);
            for line in &failure.panic {
                println!("    {line}");
            }
        }
    }
}

impl Failure {
    fn add(&mut self, line: &str) {
        let begun = !self.panic.is_empty() || line.contains("panicked at");
        if begun && !line.is_empty() && self.panic.len() < LINES_KEPT {
            self.panic.push(line.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Failure, Failures, LINES_KEPT};

    fn read(output: &str) -> Vec<Failure> {
        let mut failures = Failures::default();
        output.lines().for_each(|line| failures.add(line));
        failures.tests
    }

    #[test]
    fn a_failed_test_is_named_with_its_panic_and_without_what_it_printed_before() {
        let found = read(
            "test a ... FAILED\n\nfailures:\n\n---- a stdout ----\na line of the test\n\n\
             thread 'a' panicked at src/lib.rs:1:1:\nexpected 1\n\n---- b stdout ----\n\
             thread 'b' panicked at src/lib.rs:2:2:\n\nfailures:\n    a\n    b\n\n\
             test result: FAILED. 0 passed; 2 failed",
        );
        let of = |test: &str, panic: &[&str]| Failure {
            test: test.to_owned(),
            panic: panic.iter().map(|&line| line.to_owned()).collect(),
        };
        assert_eq!(
            found,
            [
                of("a", &["thread 'a' panicked at src/lib.rs:1:1:", "expected 1"]),
                of("b", &["thread 'b' panicked at src/lib.rs:2:2:"]),
            ]
        );
    }

    #[test]
    fn a_long_panic_is_cut() {
        let panic =
            format!("---- a stdout ----\nthread 'a' panicked at x\n{}", "line\n".repeat(99));
        assert_eq!(read(&panic)[0].panic.len(), LINES_KEPT);
    }

    #[test]
    fn tests_that_pass_leave_nothing() {
        let found = read("running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed");
        assert_eq!(found, []);
    }
}
