//! `optimus completions`: the completions of a shell.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::{
    arguments::Arguments,
    failure::{Exit, Failure},
    output::Out,
};

/// Print the completions of a shell.
///
/// For bash: `optimus completions bash > ~/.local/share/bash-completion/completions/optimus`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    shell: Shell,
}

pub(crate) fn run(command: &Completions) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(command.shell, &mut Arguments::command(), "optimus", &mut script);
    Out::page(&script)?;
    Ok(Exit::Done)
}
