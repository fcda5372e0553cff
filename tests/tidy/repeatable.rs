//! What would make two runs of one seed of the simulation differ.

use crate::files::File;
use crate::{Finding, hold};

/// The code that a simulation runs.
const SIMULATED: [&str; 5] = [
    "optimus-core/src/",
    "optimus-worker/src/",
    "optimus-embedded/src/",
    "optimus-fsck/src/",
    "tests/simulation/",
];

/// Without `biased;`, `select!` draws the branch that it looks at first, and not from the seed.
fn drawn_branches(file: &File) -> Vec<Finding> {
    let watched = SIMULATED.iter().any(|folder| file.path.starts_with(folder)) && !file.is_test();
    let lines = file.code.iter().enumerate().filter(|(_, line)| watched && !line.test);
    let selects = lines.filter_map(|(index, line)| {
        let (_, rest) = line.code.split_once("select!")?;
        let next = file.code[index + 1..].iter().map(|line| line.code.as_str());
        let body = std::iter::once(rest.trim_start_matches([' ', '{'])).chain(next);
        let first = body.map(str::trim).find(|code| !code.is_empty()).unwrap_or_default();
        (!first.starts_with("biased;")).then(|| file.at(index, line.code.trim()))
    });
    selects.collect()
}

#[test]
fn every_select_looks_at_its_branches_in_one_order() {
    hold("begin the `select!` with `biased;`, and order its branches", drawn_branches);
}

#[test]
fn a_select_that_draws_a_branch_is_found() {
    let found = |path: &str, text: &str| drawn_branches(&File::new(path, text)).len();
    let (drawn, ordered) = ("select! {\n  // why\n  a = b => {}\n}", "select! {\n  biased;\n}");
    assert_eq!(found("optimus-worker/src/a.rs", &format!("tokio::{drawn}")), 1);
    assert_eq!(found("optimus-worker/src/a.rs", "select! { a = b => {}, c = d => {} }"), 1);
    assert_eq!(found("tests/simulation/src/a.rs", &format!("{drawn}\n{ordered}")), 1);
    assert_eq!(found("optimus-worker/src/a.rs", &format!("tokio::{ordered}")), 0);
    assert_eq!(found("optimus-core/src/a.rs", "select! { biased; a = b => {} }"), 0);
    assert_eq!(found("optimus-core/src/a_tests.rs", drawn), 0);
    assert_eq!(found("optimus-cli/src/a.rs", drawn), 0);
}
