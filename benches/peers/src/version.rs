//! Which version of a library a runner was built with.

/// The lock file that the runners are built with.
const LOCK: &str = include_str!("../Cargo.lock");

/// The version of a package in the lock file.
pub(crate) fn locked(package: &str) -> Option<&'static str> {
    let name = format!("name = \"{package}\"");
    let mut lines = LOCK.lines().skip_while(|line| *line != name).skip(1);
    lines.next()?.strip_prefix("version = \"")?.strip_suffix('"')
}
