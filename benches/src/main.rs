//! Measures Optimus, and compares it with other queues. `cargo xtask bench` builds and runs it.
#![expect(clippy::cast_precision_loss, reason = "counts become rates, whose last bits are noise")]

mod agent;
mod agent_process;
mod bench;
mod bench_redis;
mod bounds;
mod callgrind;
mod executions;
mod field;
mod floor;
mod machine;
mod measure;
mod monitor;
mod options;
mod peers;
mod probe;
mod process;
mod report;
mod row;
mod scale;
mod submitter;
mod workers;

use std::process::ExitCode;

use anyhow::Context as _;

use bench::Bench;
use bench_redis::BenchRedis;
use field::Field;
use floor::Floors;
use machine::Setting;
use measure::RETURN_ONE;
use options::{FLOOR, Options};
use peers::Outcome;
use report::{Report, Skipped};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let ended = match args.split_first() {
        Some((first, rest)) if first == "agent" => agent::serve(rest).map(|()| true),
        _ => Options::read(args).and_then(|options| measure_all(&options)),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("optimus-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Measures and prints. Returns whether everything succeeded. After a failure, the other results
/// are not lost.
fn measure_all(options: &Options) -> anyhow::Result<bool> {
    let bench = Bench { redis: BenchRedis::start(options.persistence)?, scale: options.scale };
    let setting = Setting::here(&bench.redis)?;
    let mut floor = if options.wants(FLOOR) { floor::measure(&bench)? } else { Floors::new() };
    let (mut results, mut wrong, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
    for measurement in options.measurements() {
        eprintln!("{}: {}", measurement.name, measurement.about);
        match (measurement.run)(&bench) {
            Ok(rows) => results.extend(rows),
            Err(error) => wrong.push(format!("{}: {error:#}", measurement.name)),
        }
    }
    let ones = results.iter().find(|row| row.name == RETURN_ONE);
    if let Some(rate) = ones.and_then(|row| row.values.get(&Field::TasksPerS)) {
        floor.insert("evalsha_return_1_per_s", *rate);
    }
    for outcome in peers::run(options, &bench) {
        match outcome {
            Outcome::Rows(rows) => results.extend(rows),
            Outcome::Skipped { peer, reason } => skipped.push(Skipped { peer, reason }),
        }
    }
    let report = Report { setting, floor, results, skipped };
    report.print();
    if let Some(path) = &options.json {
        let json = serde_json::to_vec_pretty(&report)?;
        std::fs::write(path, json).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if options.scale.is_quick() {
        wrong.extend(bounds::broken(&report.results));
    }
    for sentence in &wrong {
        println!("WRONG {sentence}");
    }
    Ok(wrong.is_empty())
}
