//! A file whose reads hang: [`hanging_file`].

use std::{fs, path::Path, process::Command};

/// Puts a named pipe at this path, in place of the file there. A read of the pipe hangs until a
/// process opens it to write.
pub fn hanging_file(path: &Path) {
    let _ = fs::remove_file(path);
    let made = Command::new("mkfifo").arg(path).status().expect("the program mkfifo exists");
    assert!(made.success(), "mkfifo {} failed: {made}", path.display());
}
