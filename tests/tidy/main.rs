//! The structural rules of this repository, one test a rule.
//!
//! A rule is a function from a file to its findings, so that beside the test that holds the
//! repository to it stands one that plants an offence and sees it found. CONTRIBUTING.md says
//! why each rule is there.

mod book;
mod edges;
mod files;
mod functions;
mod hygiene;
mod layout;
mod lua;
mod mutants;
mod scan;
mod size;

use files::{File, repository};

/// One offence, as `path:line: what is wrong`.
type Finding = String;

/// Holds every file of the repository to a rule.
#[track_caller]
fn hold(remedy: &str, rule: impl Fn(&File) -> Vec<Finding>) {
    none(remedy, repository().iter().flat_map(rule));
}

/// Fails with the findings, if there are any, and what to do about them.
#[track_caller]
fn none(remedy: &str, findings: impl IntoIterator<Item = Finding>) {
    let findings: Vec<Finding> = findings.into_iter().collect();
    let count = findings.len();
    assert!(count == 0, "{count} findings\n  {}\nremedy: {remedy}\n", findings.join("\n  "));
}

#[test]
fn the_rules_see_the_repository() {
    let seen = |path: &str| repository().iter().any(|file| file.path == path);
    assert!(seen("Cargo.toml") && seen("tests/tidy/main.rs") && seen("xtask/src/main.rs"));
}
