//! The deliberate bugs of `tests/mutants/`. Each patch file states what it breaks, which project
//! had that bug (a peer or Optimus), and which tests must notice it.

use std::fs;
use std::path::{Path, PathBuf};

const PEER: &str = "Peer: ";
const OURS: &str = "Ours: ";
const KILLED_BY: &str = "Killed by: ";

/// A deliberate bug: one patch file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mutant {
    /// The name of the patch file, without the extension. It shows what the mutant breaks.
    pub name: String,
    /// The path of the patch file.
    pub path: PathBuf,
    /// What is broken, in one sentence.
    pub breaks: String,
    /// The origin of the bug: `project#number, what happened there`, or the Optimus commit with the
    /// fix.
    pub had_by: String,
    /// The arguments of `cargo test` for the tests that must fail.
    pub killed_by: Vec<String>,
    /// The files that it changes, relative to the root.
    pub changes: Vec<PathBuf>,
}

impl Mutant {
    /// Returns whether it changes only scripts.
    pub fn is_of_scripts(&self) -> bool {
        self.changes.iter().all(|path| path.starts_with("lua"))
    }

    /// Reads all mutants of a folder, sorted by name.
    ///
    /// # Errors
    ///
    /// Names the file that cannot be read or lacks a line of its head.
    pub fn all(folder: &Path) -> Result<Vec<Self>, String> {
        let unreadable = |problem| format!("{}: {problem}", folder.display());
        let mut mutants = Vec::new();
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.extension().is_some_and(|extension| extension == "patch") {
                let text = fs::read_to_string(&path);
                let text = text.map_err(|problem| format!("{}: {problem}", path.display()))?;
                mutants.push(Self::parse(path, &text)?);
            }
        }
        mutants.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(mutants)
    }

    /// Reads the head of a patch file: what is broken, `Peer: …` or `Ours: …`, `Killed by: …`, an
    /// empty line.
    ///
    /// # Errors
    ///
    /// Names the line that is missing.
    pub fn parse(path: PathBuf, text: &str) -> Result<Self, String> {
        let missing =
            |what: &str| format!("{}: the head of the patch has no {what}", path.display());
        let mut head = text.lines();
        let breaks = head.next().filter(|line| line.ends_with('.'));
        let breaks = breaks.ok_or_else(|| missing("sentence that states what is broken"))?;
        let had_by = head.next().and_then(|line| {
            let peer = line.strip_prefix(PEER).filter(|peer| names_a_thread(peer));
            peer.or_else(|| line.strip_prefix(OURS).filter(|ours| names_a_commit(ours)))
        });
        let had_by = had_by.ok_or_else(|| {
            missing("`Peer: project#number, what happened there` or `Ours: commit, what happened`")
        })?;
        let killed_by = head.next().and_then(|line| line.strip_prefix(KILLED_BY));
        let killed_by = killed_by.filter(|args| args.starts_with("-p "));
        let killed_by = killed_by.ok_or_else(|| missing("`Killed by: -p <package> …`"))?;
        if head.next() != Some("") {
            return Err(missing("empty line at its end"));
        }
        let changes = head.filter_map(|line| line.strip_prefix("+++ b/")).map(PathBuf::from);
        Ok(Self {
            changes: changes.collect(),
            name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            breaks: breaks.to_owned(),
            had_by: had_by.to_owned(),
            killed_by: killed_by.split_whitespace().map(str::to_owned).collect(),
            path,
        })
    }
}

/// Returns whether the text begins with a commit hash, as in `1a2b3c4, `, and more text follows.
fn names_a_commit(ours: &str) -> bool {
    ours.split_once(", ").is_some_and(|(commit, what)| {
        let is_hex = commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        commit.len() >= 7 && is_hex && !what.is_empty()
    })
}

/// Returns whether the text begins with `project#number, ` and more text follows.
fn names_a_thread(peer: &str) -> bool {
    let thread = peer.split_once(", ").and_then(|(thread, what)| {
        let (project, number) = thread.split_once('#')?;
        Some((project, number, what))
    });
    thread.is_some_and(|(project, number, what)| {
        !project.is_empty() && number.parse::<u32>().is_ok() && !what.is_empty()
    })
}
