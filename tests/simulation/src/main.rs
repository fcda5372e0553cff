//! The program behind `cargo xtask simulate`. It runs one seed after the other until enough scripts
//! were called.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, process, thread};

use anyhow::{Context as _, bail};
use optimus_simulation::run::{Outcome, Voice, run};
use optimus_simulation::run_sources::run_sources;
use optimus_simulation::tally::Tally;

const CALLS: u64 = 10_000_000;
/// The number of runs at once. Each run has one thread.
const THREADS: usize = 2;
const TELL_EVERY: Duration = Duration::from_secs(10);
/// The time limit of a run. A run takes a tenth of a second to some seconds, and far longer on a
/// busy machine.
const ENDS_WITHIN: Duration = Duration::from_secs(180);

/// The options of the command line.
struct Options {
    seed: u64,
    calls: u64,
    voice: Voice,
    /// What a seed runs, and the option that chooses it.
    run: (fn(u64, Voice) -> Outcome, &'static str),
}

/// The sum of the results of all threads.
#[derive(Default)]
struct Sum {
    seeds: u64,
    tally: Tally,
    violations: u64,
    printed: u64,
}

fn main() -> ExitCode {
    let options = match read(env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("{problem:#}");
            return ExitCode::from(2);
        }
    };
    let begun = Instant::now();
    println!("seeds from {}, until {} script calls", options.seed, options.calls);
    let sum = run_all(&options, begun);
    let took = begun.elapsed();
    println!("\n{} seeds from {}, {took:.0?}", sum.seeds, options.seed);
    print!("{}", sum.tally);
    println!("  {:<28} {:>12.0}", "script calls a second", rate(&sum.tally, took));
    println!("  {:<28} {:>12}", "violations", sum.violations);
    if sum.violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_all(options: &Options, begun: Instant) -> Sum {
    let (next, sum) = (AtomicU64::new(options.seed), Mutex::new(Sum::default()));
    let threads = if options.calls <= 1 { 1 } else { THREADS };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let outcome = watched(options, seed);
                    let mut sum = sum.lock().expect("no thread panics while it holds the sum");
                    sum.add(options, outcome);
                    sum.print_progress(begun);
                    if sum.tally.script_calls >= options.calls {
                        return;
                    }
                }
            });
        }
    });
    sum.into_inner().expect("no thread panicked")
}

/// Ends the whole program if a run does not end. Virtual time stops while a task is busy, so a run
/// with a busy loop never ends.
fn watched(options: &Options, seed: u64) -> Outcome {
    let (ended, waits) = mpsc::channel::<()>();
    let replay = replay(options, seed);
    let watch = thread::spawn(move || {
        if waits.recv_timeout(ENDS_WITHIN) == Err(RecvTimeoutError::Timeout) {
            println!("VIOLATION a busy loop stops virtual time\n  {replay}");
            process::exit(1);
        }
    });
    let outcome = (options.run.0)(seed, options.voice);
    drop(ended);
    drop(watch.join());
    outcome
}

fn replay(options: &Options, seed: u64) -> String {
    format!("cargo xtask simulate {}--seed {seed} --calls 1", options.run.1)
}

impl Sum {
    fn add(&mut self, options: &Options, outcome: Outcome) {
        self.seeds += 1;
        if options.voice == Voice::Loud {
            println!("seed {}: trace {:016x}", outcome.seed, outcome.trace);
        }
        self.tally.merge(outcome.tally);
        for wrong in outcome.wrong {
            println!("VIOLATION {wrong}\n  {}", replay(options, outcome.seed));
            self.violations += 1;
        }
    }

    /// Prints the progress from time to time.
    fn print_progress(&mut self, begun: Instant) {
        let periods = begun.elapsed().as_secs() / TELL_EVERY.as_secs();
        if periods > self.printed {
            self.printed = periods;
            println!("{} seeds, {} script calls", self.seeds, self.tally.script_calls);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "the number is printed without decimals")]
fn rate(tally: &Tally, took: Duration) -> f64 {
    tally.script_calls as f64 / took.as_secs_f64()
}

/// Reads the options `--seed S`, `--calls N`, `--sources` and `--loud`.
fn read(mut args: impl Iterator<Item = String>) -> anyhow::Result<Options> {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Every run explores other seeds, unless a seed is given. The distance between such seeds is
    // large.
    let seed = since_epoch.as_secs() * 1_000_000;
    let mut options = Options { seed, calls: CALLS, voice: Voice::Quiet, run: (run, "") };
    while let Some(arg) = args.next() {
        let mut number = || -> anyhow::Result<u64> {
            let value = args.next().with_context(|| format!("{arg} needs a number"))?;
            value.parse().with_context(|| format!("{arg} {value:?} is not a number"))
        };
        match arg.as_str() {
            "--seed" => options.seed = number()?,
            "--calls" => options.calls = number()?,
            "--sources" => options.run = (run_sources, "--sources "),
            "--loud" => options.voice = Voice::Loud,
            _ => bail!(
                "unknown argument {arg:?}; there are --sources, --seed S, --calls N and --loud"
            ),
        }
    }
    Ok(options)
}
