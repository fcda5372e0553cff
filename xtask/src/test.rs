//! `cargo xtask test`: runs all checks and tests, on a machine that has only cargo.

use std::env;
use std::io::{BufRead as _, BufReader};
use std::num::NonZero;
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use optimus_testkit::{REDIS_SERVER_VAR, RedisServer, SHARED_REDIS_VAR};

use crate::cargo::cargo;
use crate::check::check;
use crate::releases::{RELEASES, Release};
use crate::steps::Steps;
use crate::tally::Tally;
use crate::{Command, bench, console, databases, prometheus, redis, refuse, soak};

pub(crate) const COMMAND: Command = Command {
    name: "test",
    usage: "test [--fast] [--redis all|6.2|8.2] [-- <arguments of cargo test>]",
    about: "Run all tests with a private Redis, and format, clippy, rustdoc, console, bench and \
            soak unless --fast is given. With --redis, run the tests again on those releases.",
    run: test,
};

/// The variable of the test harness for the number of tests that run at the same time.
const TEST_THREADS_VAR: &str = "RUST_TEST_THREADS";

/// The least number of tests that run at the same time. Most tests wait for a lease, a timeout or a
/// server: with four at a time, two cores are idle for more than 80 % of the time of the journeys.
const TEST_THREADS_MIN: usize = 8;

/// The time that the output may stay open after the tests have ended. If it stays open longer, a
/// test has left a process behind that does not close it.
const OUTPUT_ENDS_WITHIN: Duration = Duration::from_secs(5);

fn test(args: Vec<String>) -> anyhow::Result<bool> {
    let (mut ours, cargos) = split(args);
    let releases = take_releases(&mut ours)?;
    let fast = ours.iter().any(|arg| arg == "--fast");
    refuse(&ours.into_iter().filter(|arg| arg != "--fast").collect::<Vec<_>>())?;

    let mut steps = Steps::default();
    let mut program = None;
    steps.run("redis server", || {
        let found = redis::find_or_install()?;
        println!("{}", found.display());
        program = Some(found);
        Ok(())
    });
    steps.run("databases", databases::find_or_install);
    steps.run("prometheus", || {
        prometheus::find_or_install();
        Ok(())
    });
    if !fast {
        check(&mut steps);
        steps.run("console", || console::check(console::Extent::Short));
    }
    let mut tally = Tally::default();
    let before = steps.failed();
    steps.run("tests", || {
        let program = program.as_deref().context("the tests need a Redis server")?;
        tests(&cargos, program, &mut tally)
    });
    for release in releases {
        steps.run(release.step, || tests(&cargos, &release.find_or_download()?, &mut tally));
    }
    // If only other steps than the tests failed, count one failure, so that the last line always
    // shows a failure.
    let mut other = if tally.failed > 0 { before } else { steps.failed() };
    if !fast {
        let measured = steps.run("bench --quick", || {
            bench::quick(program.as_deref().context("the bench needs a Redis server")?)
        });
        let soaked = steps.run("soak --quick", || {
            soak::quick(program.as_deref().context("the soak needs a Redis server")?)
        });
        other += usize::from(!measured) + usize::from(!soaked);
    }

    steps.print_overview();
    tally.failures.print();
    println!("  {} tests ignored; {other} steps failed without a failed test\n", tally.ignored);
    println!("{} passed, {} failed", tally.passed, tally.failed + other);
    Ok(steps.failed() == 0)
}

/// Removes `--redis <releases>` from the arguments of this command. Returns the releases.
fn take_releases(args: &mut Vec<String>) -> anyhow::Result<Vec<&'static Release>> {
    let Some(at) = args.iter().position(|arg| arg == "--redis") else { return Ok(Vec::new()) };
    let wanted = args.drain(at..args.len().min(at + 2)).nth(1).unwrap_or_default();
    let chosen = |release: &&Release| wanted == "all" || wanted == release.name;
    let releases: Vec<_> = RELEASES.iter().filter(chosen).collect();
    ensure!(!releases.is_empty(), "--redis takes all, 6.2 or 8.2, not {wanted:?}");
    Ok(releases)
}

/// Splits the arguments into those of this command and, after `--`, those of cargo test.
fn split(mut args: Vec<String>) -> (Vec<String>, Vec<String>) {
    let Some(at) = args.iter().position(|arg| arg == "--") else { return (args, Vec::new()) };
    let cargos = args.split_off(at + 1);
    args.pop();
    (args, cargos)
}

fn tests(args: &[String], program: &std::path::Path, tally: &mut Tally) -> anyhow::Result<()> {
    let server = RedisServer::start();
    println!("private server: {}", server.url());
    let one_package = args.iter().any(|arg| arg == "-p" || arg.starts_with("--package"));
    let scope: &[&str] = if one_package { &[] } else { &["--workspace"] };
    let mut command = cargo(&["test", "--no-fail-fast"]);
    command.args(scope).args(args).stdout(Stdio::piped());
    command.env(REDIS_SERVER_VAR, program).env(SHARED_REDIS_VAR, server.url());
    if env::var_os(TEST_THREADS_VAR).is_none() {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        command.env(TEST_THREADS_VAR, cores.max(TEST_THREADS_MIN).to_string());
    }
    let mut child = command.spawn().context("cargo could not be started")?;

    let lines = read_lines(&mut child);
    let whole = relay(&lines, &mut child, tally)?;
    let status = child.wait()?;
    drop(server);

    ensure!(whole, "a process that a test left behind still holds the output open");
    ensure!(status.success(), "cargo test ended with {status}");
    Ok(())
}

/// Reads on a separate thread, because nothing else can interrupt a read that waits for a line.
fn read_lines(child: &mut Child) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    let stdout = child.stdout.take().expect("the output is a pipe");
    thread::spawn(move || {
        for line in BufReader::new(stdout).split(b'\n') {
            let Ok(line) = line else { return };
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Prints each line as it arrives and counts the results in it. Returns whether the output ended.
/// The output does not end if a test left a process behind.
fn relay(lines: &Receiver<String>, child: &mut Child, tally: &mut Tally) -> anyhow::Result<bool> {
    let mut ended: Option<Instant> = None;
    loop {
        match lines.recv_timeout(Duration::from_millis(200)) {
            Ok(line) => {
                println!("{line}");
                tally.add(&line);
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(true),
            Err(RecvTimeoutError::Timeout) => match ended {
                Some(at) if at.elapsed() > OUTPUT_ENDS_WITHIN => return Ok(false),
                Some(_) => {}
                None => ended = child.try_wait()?.map(|_| Instant::now()),
            },
        }
    }
}
