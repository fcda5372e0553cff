//! The lines that a runner exchanges with the harness.
//!
//! A line of a runner begins with `bench`, because libraries print, too. The harness sends `go`,
//! and ends a runner by closing its standard input. The input also closes if the harness dies.

use std::io::{self, Write as _};
use std::process;
use std::thread;

use crate::Result;

/// Reports that the runner is connected, and waits until the harness has read the clocks.
pub(crate) fn ready(version: &str) -> Result {
    say(&format!("ready {version}"))?;
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    match line.trim() {
        "go" => Ok(()),
        other => Err(format!("expected `go`, received {other:?}").into()),
    }
}

/// Prints one line.
pub(crate) fn say(words: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "bench {words}")?;
    out.flush()
}

/// Ends the process, after `last`, when the harness closes our input or dies. The process may be in
/// the middle of a call that would never end.
pub(crate) fn end_with_input(last: impl FnOnce() + Send + 'static) {
    thread::spawn(|| {
        // The process ends even if the read fails.
        let _ = io::stdin().read_line(&mut String::new());
        last();
        process::exit(0);
    });
}
