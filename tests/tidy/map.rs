//! Checks that the paths that documents name exist.

use crate::files::{File, root};
use crate::{Finding, hold};

/// The documents whose paths in backticks begin at the root of the repository.
const MAPS: [&str; 3] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/RELIABILITY.md"];

/// The beginnings of such a path. Other words in backticks are not paths.
const FOLDERS: [&str; 8] =
    ["benches/", "docs/", "examples/", "lua/", "optimus", "tests/", "xtask/", "SECURITY.md"];

fn missing_paths(file: &File) -> Vec<Finding> {
    if !MAPS.contains(&file.path.as_str()) {
        return Vec::new();
    }
    let lines = file.text.lines().enumerate();
    let named = lines.flat_map(|(index, line)| {
        line.split('`').skip(1).step_by(2).map(move |word| (index, word))
    });
    let missing = named.filter(|(_, word)| is_path(word) && !root().join(word).exists());
    missing.map(|(index, word)| file.at(index, format!("there is no {word}"))).collect()
}

/// Returns whether a place has a variable part, such as `lua/<verb>.lua`. Such a place is not
/// looked up.
fn is_path(word: &str) -> bool {
    FOLDERS.iter().any(|folder| word.starts_with(folder))
        && word.contains(['/', '.'])
        && !word.contains(['<', '*', ' ', ':'])
}

#[test]
fn every_path_that_the_map_names_exists() {
    hold("name the path as it is now, in the commit that moves it", missing_paths);
}

#[test]
fn a_path_that_does_not_exist_is_found() {
    let text =
        "`lua/claim.lua` and `lua/gone.lua`,\nnot `lua/<verb>.lua`, `optimus-core` or `cargo test`";
    let found = missing_paths(&File::new("ARCHITECTURE.md", text));
    assert_eq!(found, ["ARCHITECTURE.md:1: there is no lua/gone.lua"]);
    assert!(missing_paths(&File::new("README.md", text)).is_empty());
}
