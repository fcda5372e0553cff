//! `cargo xtask mutants`: plants each deliberate bug of `tests/mutants/` in a copy of the
//! repository, and checks that tests fail because of it.

mod suite;
mod tree;

use std::collections::BTreeSet;
use std::time::Instant;

use anyhow::{Context as _, anyhow, ensure};
use optimus_testkit::Mutant;

use crate::cargo::root;
use crate::{Command, redis};
use suite::{Outcome, Suite};
use tree::Tree;

pub(crate) const COMMAND: Command = Command {
    name: "mutants",
    usage: "mutants [NAME…]",
    about: "Plant known bugs of queues, one by one, and check that the tests find each bug.",
    run: |names| mutants(&names),
};

/// The folder of the mutants, relative to the root.
const FOLDER: &str = "tests/mutants";

fn mutants(names: &[String]) -> anyhow::Result<bool> {
    let mutants = chosen(names)?;
    let redis_server = redis::find_or_install()?;
    let tree = Tree::make()?;

    // A test that fails without a mutant would seem to kill every mutant.
    println!("==> the tests that kill mutants, on the repository without a mutant");
    let distinct: BTreeSet<&[String]> = mutants.iter().map(|m| m.killed_by.as_slice()).collect();
    for args in distinct {
        let outcome = Suite { args, tree: &tree, redis_server: &redis_server }.run("unmutated")?;
        ensure!(matches!(outcome, Outcome::Green), "{}: {outcome}", args.join(" "));
    }

    println!("==> {} mutants", mutants.len());
    let mut killed = 0;
    for mutant in &mutants {
        let begun = Instant::now();
        tree.apply(mutant)?;
        let suite = Suite { args: &mutant.killed_by, tree: &tree, redis_server: &redis_server };
        let outcome = suite.run(&mutant.name);
        tree.restore()?;
        let outcome = outcome?;
        killed += usize::from(outcome.is_kill());
        let seconds = begun.elapsed().as_secs_f64();
        println!("  {:<42} {seconds:>5.1} s  {}", mutant.name, outcome.verdict());
    }
    println!("\n{killed} of {} mutants killed; output in {}", mutants.len(), tree.logs().display());
    Ok(killed == mutants.len())
}

/// Returns the mutants with these names, or all mutants if there are no names.
fn chosen(names: &[String]) -> anyhow::Result<Vec<Mutant>> {
    let all = Mutant::all(&root().join(FOLDER)).map_err(|problem| anyhow!(problem))?;
    if names.is_empty() {
        return Ok(all);
    }
    let find = |name: &String| {
        let found = all.iter().find(|mutant| mutant.name == *name).cloned();
        found.with_context(|| format!("{FOLDER}/{name}.patch does not exist"))
    };
    names.iter().map(find).collect()
}
