//! Finds the error of a program that failed.

use std::fs;
use std::path::Path;

/// Returns the most useful line of a log: the first line that contains an error, or the last line.
pub(super) fn complaint(log: &Path) -> Option<String> {
    let text = fs::read_to_string(log).ok()?;
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = lines.clone().find(|line| line.to_lowercase().contains("error"));
    error.or_else(|| lines.next_back()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_is_preferred_to_the_end_of_a_log() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        assert_eq!(complaint(&log), None);
        fs::write(&log, "warning: old\n npm error code EUSAGE\nmore in a file\n\n").unwrap();
        assert_eq!(complaint(&log).unwrap(), "npm error code EUSAGE");
        fs::write(&log, "Reading\nE: Unable to locate package\n").unwrap();
        assert_eq!(complaint(&log).unwrap(), "E: Unable to locate package");
    }
}
