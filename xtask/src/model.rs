//! `cargo xtask model`: compares the queue with a readable model of it, in many random calls.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use optimus_testkit::REDIS_SERVER_VAR;

use crate::cargo::{cargo, run};
use crate::{Command, redis, refuse};

pub(crate) const COMMAND: Command = Command {
    name: "model",
    usage: "model [--cases N] [--steps N] [--seed S]",
    about: "Compare the queue with its model: 2,000 runs of 300 random calls, a tenth of them on \
            Redis.",
    run: model,
};

const CASES: u64 = 2_000;
const STEPS: u64 = 300;

fn model(mut args: Vec<String>) -> anyhow::Result<bool> {
    let cases = number(&mut args, "--cases")?.unwrap_or(CASES);
    let steps = number(&mut args, "--steps")?.unwrap_or(STEPS);
    // Every run tests different sequences, unless a seed is given.
    let seed = number(&mut args, "--seed")?.unwrap_or_else(seconds);
    refuse(&args)?;

    let program = redis::find_or_install()?;
    println!("{cases} runs of {steps} steps from seed {seed}");
    let target = ["--package", "optimus-transitions", "--test", "model", "--", "--nocapture"];
    let mut command = cargo(&["test", "--release"]);
    command.args(target).env(REDIS_SERVER_VAR, program);
    for (name, value) in [("CASES", cases), ("STEPS", steps), ("SEED", seed)] {
        command.env(format!("OPTIMUS_MODEL_{name}"), value.to_string());
    }
    run(&mut command).map(|()| true)
}

/// Removes an option and its number from the arguments. Returns the number.
fn number(args: &mut Vec<String>, option: &str) -> anyhow::Result<Option<u64>> {
    let Some(at) = args.iter().position(|arg| arg == option) else { return Ok(None) };
    args.remove(at);
    let value = (at < args.len()).then(|| args.remove(at));
    let value = value.with_context(|| format!("{option} needs a number"))?;
    value.parse().map(Some).with_context(|| format!("{option} {value:?} is not a number"))
}

/// Returns the time as a seed, which differs in each run.
fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
