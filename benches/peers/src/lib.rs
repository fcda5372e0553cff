//! Code that the Rust runners share: the task's argument, the three jobs of a runner, and the lines
//! that it exchanges with the harness.
//!
//! A runner is a library under test behind [`Peer`], and a `main` that calls [`run`]. README.md,
//! one folder up, describes the duties of a runner in any language.

mod argument;
mod clock;
mod harness;
mod job;
mod submit;
mod tally;
mod version;

use std::env;
use std::error::Error;
use std::fmt::Display;
use std::str::FromStr;

pub use argument::Argument;
pub use tally::ran;

/// A runner only prints its failures for the harness, so it needs no typed error.
pub type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// A library that runs the benchmark's task. Each concurrent caller has a clone.
pub trait Peer: Clone + Send + Sync + Sized + 'static {
    /// The package whose version `Cargo.lock` contains.
    const PACKAGE: &'static str;

    /// Connects to the Redis at this address, with settings from the environment.
    fn connect(url: &str) -> impl Future<Output = Result<Self>> + Send;

    /// Submits one task.
    fn submit(&mut self, argument: Argument) -> impl Future<Output = Result> + Send;

    /// Submits many tasks in one call, where the library has such a call.
    fn submit_all(&mut self, _: Vec<Argument>) -> impl Future<Output = Result> + Send {
        async { Err(format!("{} has no call that submits many tasks", Self::PACKAGE).into()) }
    }

    /// Runs tasks until the process ends. The handler's first line is [`ran`].
    fn work(self) -> impl Future<Output = Result> + Send;
}

/// Runs the job of the command line.
///
/// # Errors
///
/// The error of the library, or the problem of the command line.
pub fn run<P: Peer>() -> Result {
    let job = job::Job::parse(env::args().skip(1))?;
    let mut runtime = match setting("THREADS", 0)? {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    runtime.enable_all().build()?.block_on(job.run::<P>())
}

/// Returns the setting with this name, which the harness puts into the environment.
///
/// # Errors
///
/// When the setting exists and can't be read.
pub fn setting<T: FromStr<Err: Display>>(name: &str, default: T) -> Result<T> {
    match env::var(name) {
        Ok(text) => text.parse().map_err(|error| format!("{name}={text}: {error}").into()),
        Err(_) => Ok(default),
    }
}
