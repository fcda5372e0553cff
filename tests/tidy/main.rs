//! The structural rules of this repository, one test for each rule.
//!
//! A rule is a function from a file to its findings. One test applies it to the repository. A
//! second test gives it an offence and expects a finding. CONTRIBUTING.md explains why each rule
//! exists.

mod book;
mod edges;
mod files;
mod functions;
mod hygiene;
mod layout;
mod lua;
mod map;
mod mutants;
mod repeatable;
mod scan;
mod size;
mod words;

use files::{File, repository};

/// One offence, in the form `path:line: description`.
type Finding = String;

/// Applies a rule to every file of the repository.
#[track_caller]
fn hold(remedy: &str, rule: impl Fn(&File) -> Vec<Finding>) {
    none(remedy, repository().iter().flat_map(rule));
}

/// Fails if there are findings, and prints them with a remedy.
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
