//! Code that the macros refuse, one rule in each file. The code that they accept is in `accepted/`.
//!
//! For one case: `cargo test -p optimus-tasks-macros --test ui -- each trybuild=<part of its
//! name>`.

use std::{io::Write, process::Command};

/// The compiler whose messages are in the `.stderr` files.
const COMPILER: &str = "rustc 1.95.";

fn compiler() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output().expect("the compiler runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn each_refusal_is_explained() {
    let found = compiler();
    if found.starts_with(COMPILER) {
        trybuild::TestCases::new().compile_fail("tests/ui/fail/*.rs");
    } else {
        // This does not use `println!`, whose text shows only if a test fails.
        let note = format!("skipped tests/ui/fail: written for {COMPILER}x, this is {found}");
        std::io::stderr().write_all(note.as_bytes()).expect("stderr is open");
    }
}
