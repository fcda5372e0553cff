//! `cargo xtask`: the commands of this repository, one a file.
//!
//! To add one, write its file with a `COMMAND` and name it in [`COMMANDS`].

mod bench;
mod cargo;
mod check;
mod install;
mod model;
mod mutants;
mod redis;
mod releases;
mod scale;
mod simulate;
mod soak;
mod steps;
mod tally;
mod test;

use std::env;
use std::process::ExitCode;

/// What a command says about itself, and the function that does it. The function returns
/// whether all went well; an error is what kept it from finding out.
struct Command {
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    run: fn(Vec<String>) -> anyhow::Result<bool>,
}

const COMMANDS: &[Command] = &[
    test::COMMAND,
    check::COMMAND,
    bench::COMMAND,
    soak::COMMAND,
    model::COMMAND,
    mutants::COMMAND,
    simulate::COMMAND,
    scale::COMMAND,
    redis::COMMAND,
];

fn main() -> ExitCode {
    let mut args = env::args().skip(1);
    let name = args.next().unwrap_or_default();
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        print_usage();
        let asked = matches!(name.as_str(), "help" | "--help" | "-h");
        return if asked { ExitCode::SUCCESS } else { ExitCode::from(2) };
    };
    match (command.run)(args.collect()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask {name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn print_usage() {
    eprintln!("The commands of this repository:");
    for command in COMMANDS {
        eprintln!("\n  cargo xtask {}\n      {}", command.usage, command.about);
    }
}

/// Refuses arguments that a command has no use for.
fn refuse(args: &[String]) -> anyhow::Result<()> {
    anyhow::ensure!(args.is_empty(), "unknown argument {:?}; see `cargo xtask help`", args[0]);
    Ok(())
}
