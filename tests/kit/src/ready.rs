//! Waits until a server that was started accepts requests: [`await_ready`].

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::child::ChildGuard;

/// The interval of the checks. A server has no signal that it is ready.
const INTERVAL: Duration = Duration::from_millis(2);

/// Why a server is not ready, and how much longer than usual it may take.
#[derive(Debug)]
pub(crate) struct NotReady {
    pub(crate) why: String,
    pub(crate) longer: Duration,
}

impl From<&str> for NotReady {
    fn from(why: &str) -> Self {
        Self { why: why.to_owned(), longer: Duration::ZERO }
    }
}

/// Checks repeatedly whether a server is ready.
///
/// # Errors
///
/// If it has ended, or is not ready `within` the time. The error says which.
pub(crate) fn await_ready(
    process: &mut ChildGuard,
    within: Duration,
    mut check: impl FnMut() -> Result<(), NotReady>,
) -> Result<(), String> {
    let deadline = Instant::now() + within;
    loop {
        if let Some(status) = process.try_wait().map_err(|error| error.to_string())? {
            return Err(format!("the server ended with {status}"));
        }
        match check() {
            Ok(()) => return Ok(()),
            Err(NotReady { why, longer }) if Instant::now() >= deadline + longer => {
                return Err(why);
            }
            Err(_) => thread::sleep(INTERVAL),
        }
    }
}
