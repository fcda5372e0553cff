//! The lines that a runner exchanges with the harness.
//!
//! What the runner prints begins with `bench`, because libraries print too. The harness says
//! `go`, and ends a runner by closing its standard input, which its own death does as well.

use std::io::{self, Write as _};
use std::process;
use std::thread;

use crate::Result;

/// Tells that all is connected, and waits until the harness has looked at the clocks.
pub(crate) fn ready(version: &str) -> Result {
    say(&format!("ready {version}"))?;
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    match line.trim() {
        "go" => Ok(()),
        other => Err(format!("expected `go`, heard {other:?}").into()),
    }
}

/// Prints one line.
pub(crate) fn say(words: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "bench {words}")?;
    out.flush()
}

/// Ends the process, after `last`, once the harness needs it no more. It may be in the middle of
/// something, and of something that would never end.
pub(crate) fn end_with_input(last: impl FnOnce() + Send + 'static) {
    thread::spawn(|| {
        // Whatever ends the wait ends the process.
        let _ = io::stdin().read_line(&mut String::new());
        last();
        process::exit(0);
    });
}
