//! The files that the rules apply to: the files that git tracks or would add.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::Finding;
use crate::scan::{Line, scan};

/// A text file of the repository.
pub(crate) struct File {
    /// The path relative to the root, with forward slashes.
    pub(crate) path: String,
    pub(crate) text: String,
    /// The code of each line, without comments and the contents of strings. Only Rust files have
    /// it.
    pub(crate) code: Vec<Line>,
}

impl File {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let code = if has_extension(path, "rs") { scan(text) } else { Vec::new() };
        Self { path: path.to_owned(), text: text.to_owned(), code }
    }

    /// Returns whether the file is Rust code. The cases of a compile-fail suite do not count,
    /// because they contain mistakes.
    pub(crate) fn is_rust(&self) -> bool {
        has_extension(&self.path, "rs") && !self.path.contains("/tests/ui/")
    }

    pub(crate) fn is_lua(&self) -> bool {
        has_extension(&self.path, "lua")
    }

    /// Returns whether the file is a script, and not an include of scripts.
    pub(crate) fn is_script(&self) -> bool {
        self.is_lua() && self.path.starts_with("lua/") && self.path.matches('/').count() == 1
    }

    /// Returns whether the whole file is test code. Such a file is in a crate's `tests` folder, or
    /// is a module of tests (`tests.rs`, `record_tests.rs`).
    pub(crate) fn is_test(&self) -> bool {
        let stem = self.stem();
        // The packages in `tests` have a `src` with helpers, which are not tests.
        let inner = self.path.strip_prefix("tests/").unwrap_or(&self.path);
        stem == "tests"
            || stem.ends_with("_tests")
            || self.path.starts_with("tests/tidy/")
            || inner.contains("/tests/")
    }

    /// Returns the name without folders and extension.
    pub(crate) fn stem(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name.split('.').next().unwrap_or_default()
    }

    /// Returns a finding at the line with this index, which counts from 0.
    pub(crate) fn at(&self, index: usize, what: impl std::fmt::Display) -> Finding {
        format!("{}:{}: {what}", self.path, index + 1)
    }
}

/// Returns all text files, which are read only once.
pub(crate) fn repository() -> &'static [File] {
    static FILES: LazyLock<Vec<File>> = LazyLock::new(|| {
        let paths = listed_by_git().unwrap_or_else(walked);
        // A path may be deleted, a link to a folder, or not text.
        let read =
            |path: String| Some(File::new(&path, &fs::read_to_string(root().join(&path)).ok()?));
        paths.into_iter().filter_map(read).collect()
    });
    &FILES
}

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("this package is two folders below the root").to_owned()
}

fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == extension)
}

fn listed_by_git() -> Option<Vec<String>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root());
    let output = git.output().ok().filter(|output| output.status.success())?;
    let list = String::from_utf8(output.stdout).ok()?;
    Some(list.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
}

/// Lists all files except build output, for a copy without git.
fn walked() -> Vec<String> {
    let (mut paths, mut folders) = (Vec::new(), vec![String::new()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            // Neither this function nor git follows a link to a folder.
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                paths.push(path);
            } else if name != "target" && name != ".git" {
                folders.push(path);
            }
        }
    }
    paths.sort();
    paths
}

#[test]
fn test_code_is_recognized_by_its_path() {
    let is_test = |path| File::new(path, "").is_test();
    assert!(is_test("tests/transitions/tests/scripts/claim.rs"));
    assert!(is_test("optimus-core/src/record_tests.rs"));
    assert!(is_test("tests/tidy/main.rs"));
    assert!(!is_test("tests/kit/src/server.rs"));
    assert!(!is_test("optimus-core/src/record.rs"));
}
