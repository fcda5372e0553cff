//! Causes faults around a running Optimus, and checks the outcome of every task. `cargo xtask soak`
//! builds and runs it.

mod agent;
mod fsck;
mod nemesis;
mod options;
mod outcome;
mod processes;
mod profile;
mod scene;
mod stall;
mod store;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let ended = match args.split_first() {
        Some((first, rest)) if first == "agent" => agent::serve(rest).map(|()| true),
        _ => options::Options::read(args).and_then(|options| scene::run_scenes(&options)),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("optimus-soak: {error:#}");
            ExitCode::FAILURE
        }
    }
}
