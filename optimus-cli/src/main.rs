//! `optimus`, the command line for people who run an Optimus system.
//!
//! Each noun has a file in `command/`, which reads through the inspector and acts through the
//! client. Only `output/`, `consent`, the progress of
//! `bulk` and `operation`, and `top/` write to the terminal: they escape
//! what a text of a task could do to it.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod advice;
mod arguments;
mod audited;
mod bulk;
mod command;
mod consent;
mod doctor;
mod exporter;
mod failure;
mod found;
mod limit_setting;
mod misspelt;
mod operation;
mod operation_text;
mod operator;
mod output;
mod page;
mod parse;
mod pause;
mod private_redis;
mod queue_names;
#[cfg(test)]
mod reference;
mod session;
mod signals;
mod tally;
mod top;
mod unknown;
mod unread;

use std::process::ExitCode;

use clap::Parser;

use self::{arguments::Arguments, failure::Failure, output::Out};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let out = Out::new(&arguments.global);
    match run(arguments, &out) {
        Ok(exit) => exit.into(),
        Err(failure) => out.fail(&failure).into(),
    }
}

fn run(arguments: Arguments, out: &Out) -> Result<failure::Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|problem| Failure::new(format!("no runtime: {problem}")))?;
    runtime.block_on(command::run(arguments.command, &arguments.global, out))
}
