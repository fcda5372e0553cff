//! Finds the version of a library with which a runner was built.

/// The lock file with which the runners are built.
const LOCK: &str = include_str!("../Cargo.lock");

/// Returns the version of a package in the lock file.
pub(crate) fn locked(package: &str) -> Option<&'static str> {
    let name = format!("name = \"{package}\"");
    let mut lines = LOCK.lines().skip_while(|line| *line != name).skip(1);
    lines.next()?.strip_prefix("version = \"")?.strip_suffix('"')
}
