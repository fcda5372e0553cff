//! `cargo xtask mutants`: plants each deliberate bug of `tests/mutants/` in a copy of the
//! repository, and checks that tests fail because of it.

mod planted;
mod suite;
mod switch;
mod tree;

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Context as _, anyhow, ensure};
use optimus_testkit::Mutant;

use crate::cargo::root;
use crate::{Command, redis};
use suite::{Outcome, Suite};
use tree::Tree;

pub(crate) const COMMAND: Command = Command {
    name: "mutants",
    usage: "mutants [NAME…] [--part I/N]",
    about: "Plant known bugs of queues, one by one, and check that the tests find each bug.",
    run: |args| mutants(&args),
};

/// The folder of the mutants, relative to the root.
const FOLDER: &str = "tests/mutants";

fn mutants(args: &[String]) -> anyhow::Result<bool> {
    let all = Mutant::all(&root().join(FOLDER)).map_err(|problem| anyhow!(problem))?;
    let mutants = chosen(&all, args)?;
    let redis_server = redis::find_or_install()?;
    let tree = Tree::make(&all)?;

    // A test that fails without a mutant would seem to kill every mutant.
    println!("==> the tests that kill mutants, on the repository without a mutant");
    for args in by_program(&mutants) {
        let suite = Suite { args: &args, tree: &tree, redis_server: &redis_server, bug: "" };
        let outcome = suite.run("unmutated")?;
        ensure!(matches!(outcome, Outcome::Green), "{}: {outcome}", args.join(" "));
    }

    println!("==> {} mutants", mutants.len());
    let mut killed = 0;
    for mutant in &mutants {
        let begun = Instant::now();
        let (args, bug) = (&mutant.killed_by, mutant.name.as_str());
        let suite = Suite { args, tree: &tree, redis_server: &redis_server, bug };
        let outcome = if mutant.is_of_scripts() {
            tree.apply(mutant)?;
            let outcome = suite.run(bug);
            tree.restore()?;
            outcome?
        } else {
            suite.run(bug)?
        };
        killed += usize::from(outcome.is_kill());
        let seconds = begun.elapsed().as_secs_f64();
        println!("  {:<42} {seconds:>5.1} s  {}", mutant.name, outcome.verdict());
    }
    println!("\n{killed} of {} mutants killed; output in {}", mutants.len(), tree.logs().display());
    Ok(killed == mutants.len())
}

/// Returns the tests that kill these mutants: the arguments of one `cargo test` for each program.
fn by_program(mutants: &[Mutant]) -> Vec<Vec<String>> {
    let mut programs: BTreeMap<&[String], Vec<&[String]>> = BTreeMap::new();
    for mutant in mutants {
        let mut parts = mutant.killed_by.splitn(2, |arg| arg == "--");
        let tests = programs.entry(parts.next().unwrap_or_default()).or_default();
        tests.push(parts.next().unwrap_or_default());
    }
    let args = |(program, tests): (&[String], Vec<&[String]>)| {
        let needs_all = tests.iter().any(|names| names.is_empty());
        let names = if needs_all { Vec::new() } else { tests.concat() };
        [program, &["--".to_owned()], &names].concat()
    };
    programs.into_iter().map(args).collect()
}

/// Returns the mutants with these names, or all mutants if there are no names; of these the part
/// that `--part I/N` names.
fn chosen(all: &[Mutant], args: &[String]) -> anyhow::Result<Vec<Mutant>> {
    let (mut names, mut part) = (Vec::new(), (1, 1));
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "--part" {
            part = read_part(args.next().map_or("", String::as_str))?;
        } else {
            names.push(arg);
        }
    }
    let find = |name: &String| {
        let found = all.iter().find(|mutant| mutant.name == *name).cloned();
        found.with_context(|| format!("{FOLDER}/{name}.patch does not exist"))
    };
    let chosen: Vec<Mutant> = names.into_iter().map(find).collect::<Result<_, _>>()?;
    Ok(part_of(if chosen.is_empty() { all.to_vec() } else { chosen }, part))
}

/// Reads a part such as `2/4`: the second of four.
fn read_part(text: &str) -> anyhow::Result<(usize, usize)> {
    let read = || {
        let (part, parts) = text.split_once('/')?;
        let (part, parts): (usize, usize) = (part.parse().ok()?, parts.parse().ok()?);
        (1..=parts).contains(&part).then_some((part, parts))
    };
    read().with_context(|| format!("--part needs a part such as 2/4, not {text:?}"))
}

/// Returns every n-th item, so that the parts take about the same time: neighbours in the alphabet
/// are often killed by the same tests.
fn part_of<T>(all: Vec<T>, (part, parts): (usize, usize)) -> Vec<T> {
    all.into_iter().skip(part - 1).step_by(parts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_together_are_all_mutants() {
        let all: Vec<u32> = (0..10).collect();
        assert_eq!(part_of(all.clone(), (1, 1)), all);
        let mut parts: Vec<u32> =
            (1..=4).flat_map(|part| part_of(all.clone(), (part, 4))).collect();
        parts.sort_unstable();
        assert_eq!(parts, all);
    }

    #[test]
    fn the_tests_of_one_program_run_together() {
        let mutant = |killed_by: &str| Mutant {
            killed_by: killed_by.split(' ').map(str::to_owned).collect(),
            ..Mutant::default()
        };
        let mutants =
            ["-p a --lib -- x", "-p b --test t", "-p a --lib -- z w", "-p b --test t -- y"];
        let args = by_program(&mutants.map(mutant));
        let args: Vec<String> = args.iter().map(|args| args.join(" ")).collect();
        assert_eq!(args, ["-p a --lib -- x z w", "-p b --test t --"], "one needs all of its tests");
    }

    #[test]
    fn a_part_is_a_number_of_a_number() {
        assert_eq!(read_part("2/4").ok(), Some((2, 4)));
        for wrong in ["", "2", "0/4", "5/4", "a/b", "1/0"] {
            assert!(read_part(wrong).is_err(), "{wrong}");
        }
    }
}
