//! Keeps the mutants usable. Each of them has its head, names tests that exist, and still applies.

use std::path::Path;
use std::process::Command;

use optimus_testkit::Mutant;

use crate::files::{repository, root};
use crate::{Finding, none};

/// The least number of mutants. With fewer, a class of bugs that other queues had is missing.
const MUTANTS_MIN: usize = 30;

fn mutants() -> Vec<Mutant> {
    Mutant::all(&root().join("tests/mutants")).unwrap_or_else(|problem| panic!("{problem}"))
}

/// Returns the error of `git apply`, if there is one.
fn misfit(patch: &Path) -> Option<Finding> {
    let mut git = Command::new("git");
    let git = git.args(["apply", "--check"]).arg(patch).current_dir(root());
    let output = git.output().expect("git applies patches");
    let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    (!output.status.success()).then(|| format!("{}: {complaint}", patch.display()))
}

/// Returns the folder of the package whose tests must fail.
fn folder(mutant: &Mutant) -> Option<String> {
    let package = &mutant.killed_by[1];
    let published = package.replacen("optimus-tasks", "optimus", 1);
    let check = format!("tests/{}", package.strip_prefix("optimus-").unwrap_or(package));
    [published, check].into_iter().find(|name| root().join(name).is_dir())
}

fn untested(mutant: &Mutant) -> Option<Finding> {
    let target = mutant.killed_by.iter().position(|arg| arg == "--test");
    let target = target.and_then(|at| mutant.killed_by.get(at + 1))?;
    let package = root().join(folder(mutant)?).join("tests").join(target);
    let exists = package.with_extension("rs").is_file() || package.join("main.rs").is_file();
    (!exists).then(|| format!("{}: there is no {}", mutant.name, package.display()))
}

/// Returns the filters that match no test. With such a filter, no test would fail.
fn unmatched(mutant: &Mutant) -> Vec<Finding> {
    let folder = folder(mutant).unwrap_or_default() + "/";
    let files = || repository().iter().filter(|file| file.path.starts_with(&folder));
    let is_matched = |filter: &&String| {
        let module = filter.strip_suffix("::").map(|path| path.rsplit("::").next().unwrap_or(path));
        let test = filter.rsplit("::").next().unwrap_or_default();
        files().any(|file| match module {
            Some(module) => file.stem() == module || file.text.contains(&format!("mod {module}")),
            None => file.text.contains(test),
        })
    };
    let filters = mutant.killed_by.iter().skip_while(|arg| *arg != "--").skip(1);
    let unmatched = filters.filter(|filter| !is_matched(filter));
    unmatched.map(|filter| format!("{}: no test matches {filter}", mutant.name)).collect()
}

#[test]
fn there_are_enough_mutants_and_each_has_its_head() {
    assert!(mutants().len() >= MUTANTS_MIN, "{} mutants", mutants().len());
    none("name the test target that must fail", mutants().iter().filter_map(untested));
    none("name tests that exist", mutants().iter().flat_map(unmatched));
}

#[test]
fn every_mutant_still_applies() {
    let remedy = "rewrite the patch for the current code; it must cause the same bug";
    none(remedy, mutants().iter().filter_map(|mutant| misfit(&mutant.path)));
}

#[test]
fn a_mutant_without_its_head_is_found() {
    let parse = |text: &str| Mutant::parse("tests/mutants/no-check.patch".into(), text);
    let (breaks, peer) = ("Nothing is checked.", "Peer: asynq#1144, nothing was checked.");
    let killed_by = "Killed by: -p optimus-transitions --test scripts -- stale::";
    let mutant = parse(&format!("{breaks}\n{peer}\n{killed_by}\n\n--- a/x")).unwrap();
    assert_eq!((mutant.name.as_str(), mutant.killed_by.len()), ("no-check", 6));
    let ours = "Ours: 9007fdb, nothing was checked.";
    assert!(parse(&format!("{breaks}\n{ours}\n{killed_by}\n\n--- a/x")).is_ok());
    let renamed = format!("{breaks}\n{peer}\n{killed_by} gone:: claim::no_such_test\n\n");
    let found = unmatched(&parse(&renamed).unwrap());
    assert_eq!(found.len(), 2, "{found:?}");
    for (text, missing) in [
        (format!("{peer}\n{killed_by}\n\n"), "Peer"),
        (format!("{breaks}\n{killed_by}\n\n"), "Peer"),
        (format!("{breaks}\nPeer: asynq, nothing.\n{killed_by}\n\n"), "Peer"),
        (format!("{breaks}\nOurs: long ago, nothing.\n{killed_by}\n\n"), "Ours"),
        (format!("{breaks}\n{peer}\n\n"), "Killed by"),
        (format!("{breaks}\n{peer}\n{killed_by}\n--- a/x"), "empty line"),
    ] {
        assert!(parse(&text).unwrap_err().contains(missing), "{text}");
    }
    assert!(misfit(&root().join("tests/mutants/no-such.patch")).is_some());
}
