//! The page `docs/CLI.md`, made from the definition of the command line, and the test that it is
//! current.

use std::{env, fmt::Write as _, fs, path::Path};

use clap::{Arg, Command, CommandFactory};

use crate::{arguments::Arguments, failure::EXITS};

const PAGE: &str = "../docs/CLI.md";

const BEGIN: &str = "# The commands of `optimus`\n\nThis page is made from the program: \
    `OPTIMUS_GOLDEN=write cargo test -p optimus-tasks-cli reference` writes it. [The command \
    line](guides/cli.md) introduces it.\n";

/// Returns the page.
fn page() -> String {
    let mut program = Arguments::command();
    program.build();
    let mut page = BEGIN.to_owned();
    let globals: Vec<&Arg> = program.get_arguments().filter(|arg| arg.is_global_set()).collect();
    page.push_str("\n## Global options\n\n");
    arguments(&mut page, &globals);
    let codes =
        EXITS.lines().skip(1).map(|line| line.trim().split_once("  ").unwrap_or((line, "")));
    page.push_str("\n## Exit codes\n\n| code | meaning |\n|---|---|\n");
    for (code, meaning) in codes {
        let _ = writeln!(page, "| {code} | {} |", meaning.trim());
    }
    for command in program.get_subcommands().filter(|command| command.get_name() != "help") {
        describe(&mut page, command, "optimus");
    }
    page
}

/// Adds a command and the commands below it.
fn describe(page: &mut String, command: &Command, parent: &str) {
    let name = format!("{parent} {}", command.get_name());
    let below: Vec<&Command> =
        command.get_subcommands().filter(|command| command.get_name() != "help").collect();
    let level = if parent == "optimus" { "##" } else { "###" };
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let _ = writeln!(page, "\n{level} {name}\n\n{}", sentences(&about));
    if below.is_empty() {
        let usage = command.clone().render_usage().to_string();
        let usage =
            usage.trim_start_matches("Usage: ").replace("[OPTIONS] ", "").replace(" [OPTIONS]", "");
        let _ = writeln!(page, "\n```text\n{usage}\n```");
        let own: Vec<&Arg> = command
            .get_arguments()
            .filter(|arg| !arg.is_global_set() && arg.get_id() != "help")
            .filter(|arg| arg.get_help().is_some())
            .collect();
        if !own.is_empty() {
            page.push('\n');
            arguments(page, &own);
        }
    }
    for command in below {
        describe(page, command, &name);
    }
}

/// Adds a table of options.
fn arguments(page: &mut String, arguments: &[&Arg]) {
    page.push_str("| option | meaning |\n|---|---|\n");
    for arg in arguments {
        let value = arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
        let value = value.filter(|_| arg.get_action().takes_values());
        let name = match (arg.get_long(), arg.get_short(), value) {
            (Some(long), Some(short), None) => format!("--{long}, -{short}"),
            (Some(long), _, Some(value)) => format!("--{long} {value}"),
            (Some(long), _, None) => format!("--{long}"),
            (None, _, value) => value.unwrap_or_else(|| arg.get_id().to_string().to_uppercase()),
        };
        let help =
            arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
        let defaults: Vec<_> =
            arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
        let default = if defaults.is_empty() || !arg.get_action().takes_values() {
            String::new()
        } else {
            format!(" The default is {}.", defaults.join(", "))
        };
        let _ = writeln!(
            page,
            "| `{name}` | {}{default} |",
            sentences(&help).replace('|', "\\|").replace("\n\n", " ")
        );
    }
}

/// Returns paragraphs, the last of which ends with a full stop.
fn sentences(text: &str) -> String {
    let text = text.trim();
    let is_whole = text.is_empty() || text.ends_with(['.', ':', '!']);
    if is_whole { text.to_owned() } else { format!("{text}.") }
}

#[test]
fn the_reference_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    if env::var("OPTIMUS_GOLDEN").is_ok_and(|value| value == "write") {
        fs::write(&file, page()).expect("docs/ can be written");
    }
    let current = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        current == page(),
        "docs/CLI.md is not what the program says: OPTIMUS_GOLDEN=write cargo test -p \
         optimus-tasks-cli reference"
    );
}

#[test]
fn every_command_and_option_is_described() {
    let mut program = Arguments::command();
    program.build();
    program.debug_assert();
}
