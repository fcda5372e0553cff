//! Rules about the beginning of a Rust file, and about the manifest of each package.

use crate::files::File;
use crate::{Finding, hold};

fn unopened(file: &File) -> Vec<Finding> {
    let bare = file.is_rust() && !file.text.starts_with("//! ");
    bare.then(|| file.at(0, "does not begin with //!")).into_iter().collect()
}

fn unlinted(file: &File) -> Vec<Finding> {
    let manifest = file.path.ends_with("/Cargo.toml");
    let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
    let linted = lines.windows(2).any(|pair| pair == ["[lints]", "workspace = true"]);
    (manifest && !linted)
        .then(|| file.at(0, "has no [lints] workspace = true"))
        .into_iter()
        .collect()
}

#[test]
fn every_rust_file_begins_with_a_description() {
    hold(
        "begin the file with a //! sentence that states what the file is and why it exists",
        unopened,
    );
}

#[test]
fn every_package_uses_the_lints_of_the_workspace() {
    hold("add the two lines `[lints]` and `workspace = true` to the manifest", unlinted);
}

#[test]
fn a_file_without_its_opening_is_found() {
    assert!(unopened(&File::new("a/src/b.rs", "//! B.\nfn b() {}")).is_empty());
    assert!(unopened(&File::new("a/tests/ui/b.rs", "fn b() {}")).is_empty());
    assert_eq!(unopened(&File::new("a/src/b.rs", "// B.\n//! B.")).len(), 1);
    let manifest = "[package]\nname = \"a\"\n";
    assert_eq!(unlinted(&File::new("a/Cargo.toml", manifest)).len(), 1);
    let linted = format!("{manifest}\n[lints]\nworkspace = true\n");
    assert!(unlinted(&File::new("a/Cargo.toml", &linted)).is_empty());
}
