//! `cargo xtask console`: checks, builds and tests the pages of the console in a browser.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};

use crate::cargo::{root, run};
use crate::install;
use crate::node::Node;
use crate::{Command, refuse};

pub(crate) const COMMAND: Command = Command {
    name: "console",
    usage: "console [--all | --pictures]",
    about: "Check, build and test the pages of the console in Chromium. With --all, test each page \
            wide and narrow, light and dark. With --pictures, draw the pictures of the documents.",
    run: |args| console(&args),
};

/// The names of the browser, as the tests look for them.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// The variable that asks for the short form of the browser tests.
const SHORT_VAR: &str = "CONSOLE_SHORT";

/// How much the browser tests look at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Each page once, and each act.
    Short,
    /// Each page wide and narrow, light and dark, with ordinary and with hostile texts.
    All,
}

fn console(args: &[String]) -> anyhow::Result<bool> {
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--all"] => check(Extent::All)?,
        ["--pictures"] => draw()?,
        _ => {
            refuse(args)?;
            check(Extent::Short)?;
        }
    }
    Ok(true)
}

/// Draws the pictures of the documents. Installs the programs that are missing.
fn draw() -> anyhow::Result<()> {
    let node = prepared(Extent::All)?;
    if !install::is_there("pngquant") {
        install::pngquant()?;
    }
    npm(&node, &["run", "--silent", "screenshots"], Extent::All)
}

/// Checks, builds and tests the pages. Installs the programs that are missing.
///
/// # Errors
///
/// When a check fails, or the built files differ from those in the repository.
pub(crate) fn check(extent: Extent) -> anyhow::Result<()> {
    let node = prepared(extent)?;
    npm(&node, &["run", "--silent", "check"], extent)?;
    npm(&node, &["run", "--silent", "test"], extent)?;
    let before = built()?;
    npm(&node, &["run", "--silent", "build"], extent)?;
    ensure!(
        before == built()?,
        "optimus-console/dist was not what its sources build; it has been built: commit it"
    );
    npm(&node, &["run", "--silent", "test:browser"], extent)
}

/// Finds or installs what the pages need: Node.js, Chromium, and the packages of npm.
fn prepared(extent: Extent) -> anyhow::Result<Node> {
    let node = Node::find_or_download()?;
    if !BROWSERS.iter().any(|name| install::is_there(name)) {
        install::chromium()?;
    }
    npm(&node, &["ci", "--no-audit", "--no-fund"], extent)?;
    Ok(node)
}

fn npm(node: &Node, args: &[&str], extent: Extent) -> anyhow::Result<()> {
    let mut npm = node.npm();
    npm.args(args).current_dir(root().join("optimus-console/web"));
    if extent == Extent::Short {
        npm.env(SHORT_VAR, "1");
    } else {
        npm.env_remove(SHORT_VAR);
    }
    run(&mut npm).with_context(|| format!("npm {} failed", args.join(" ")))
}

/// Returns the built files. The program that serves them contains them.
fn built() -> anyhow::Result<BTreeMap<PathBuf, Vec<u8>>> {
    let folder = root().join("optimus-console/dist");
    let entries = fs::read_dir(&folder).with_context(|| format!("no {}", folder.display()))?;
    let files = entries.map(|entry| {
        let path = entry?.path();
        let bytes = fs::read(&path)?;
        Ok((path, bytes))
    });
    files.collect()
}
