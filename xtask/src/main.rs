//! `cargo xtask`: the commands of this repository. Each command has its own file.
//!
//! To add a command, write its file with a `COMMAND` and add it to [`COMMANDS`].

mod bench;
mod cargo;
mod check;
mod console;
mod databases;
mod failures;
mod install;
mod model;
mod mutants;
mod node;
mod older;
mod packages;
mod prometheus;
mod redis;
mod releases;
mod scale;
mod simulate;
mod soak;
mod steps;
mod tally;
mod test;
mod wheel;

use std::env;
use std::process::ExitCode;

/// The description of a command, and its function. The function returns whether the command
/// succeeded. An error means that the command itself failed.
struct Command {
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    run: fn(Vec<String>) -> anyhow::Result<bool>,
}

const COMMANDS: &[Command] = &[
    test::COMMAND,
    check::COMMAND,
    console::COMMAND,
    bench::COMMAND,
    soak::COMMAND,
    model::COMMAND,
    mutants::COMMAND,
    simulate::COMMAND,
    scale::COMMAND,
    older::COMMAND,
    redis::COMMAND,
];

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    match Asked::of(&args) {
        Asked::Run(command) => command.run(args[1..].to_vec()),
        Asked::Usage(command) => {
            command.print_usage();
            ExitCode::SUCCESS
        }
        asked => {
            eprintln!("The commands of this repository:");
            COMMANDS.iter().for_each(Command::print_usage);
            if matches!(asked, Asked::Overview) { ExitCode::SUCCESS } else { ExitCode::from(2) }
        }
    }
}

/// The meaning of the words after `cargo xtask`.
enum Asked {
    Run(&'static Command),
    /// Print the usage of this command.
    Usage(&'static Command),
    /// Print the list of commands.
    Overview,
    Unknown,
}

impl Asked {
    fn of(args: &[String]) -> Self {
        let is_help = |arg: &String| matches!(arg.as_str(), "help" | "--help" | "-h");
        let name = args.first().map_or("", String::as_str);
        let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
            return if args.first().is_some_and(is_help) { Self::Overview } else { Self::Unknown };
        };
        // The words after `--` are for a program that the command runs.
        let mut own = args[1..].iter().take_while(|arg| *arg != "--");
        if own.any(is_help) { Self::Usage(command) } else { Self::Run(command) }
    }
}

impl Command {
    fn run(&self, args: Vec<String>) -> ExitCode {
        match (self.run)(args) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => {
                eprintln!("xtask {}: {error:#}", self.name);
                ExitCode::FAILURE
            }
        }
    }

    fn print_usage(&self) {
        eprintln!("\n  cargo xtask {}\n      {}", self.usage, self.about);
    }
}

/// Refuses arguments that a command does not use.
fn refuse(args: &[String]) -> anyhow::Result<()> {
    anyhow::ensure!(args.is_empty(), "unknown argument {:?}; see `cargo xtask help`", args[0]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(words: &str) -> Asked {
        Asked::of(&words.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn help_shows_the_usage_of_a_command_and_is_not_its_argument() {
        for command in COMMANDS {
            for words in ["--help", "-h", "--seed 1 --help"] {
                let told = asked(&format!("{} {words}", command.name));
                assert!(matches!(told, Asked::Usage(told) if told.name == command.name));
            }
        }
        assert!(
            matches!(asked("test -- --help"), Asked::Run(_)),
            "`--help` after `--` is for cargo test"
        );
        assert!(matches!(asked("--help"), Asked::Overview));
        assert!(matches!(asked("halp"), Asked::Unknown) && matches!(asked(""), Asked::Unknown));
    }
}
