//! The origin of the figures: the machine, the versions, the settings.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use anyhow::Context as _;
use serde::Serialize;

use crate::bench_redis::{BenchRedis, Persistence};

/// Names and values for display.
pub(crate) type Facts = BTreeMap<&'static str, String>;

/// The facts that a reader needs to interpret the figures.
#[derive(Debug, Serialize)]
pub(crate) struct Setting {
    pub(crate) machine: Facts,
    pub(crate) redis: Facts,
    pub(crate) software: Facts,
}

impl Setting {
    /// Collects the facts.
    ///
    /// # Errors
    ///
    /// When Redis does not report its version.
    pub(crate) fn here(redis: &BenchRedis) -> anyhow::Result<Self> {
        let machine = [
            ("cpu", field("/proc/cpuinfo", "model name")),
            ("cores", std::thread::available_parallelism().map_or(0, usize::from).to_string()),
            ("memory", field("/proc/meminfo", "MemTotal")),
            ("kernel", output_of("uname", &["-sr"])),
        ];
        let software = [
            ("optimus", env!("CARGO_PKG_VERSION").to_owned()),
            ("commit", output_of("git", &["describe", "--always", "--dirty"])),
            ("rustc", output_of("rustc", &["--version"])),
            ("profile", if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned()),
        ];
        Ok(Self { machine: machine.into(), redis: facts_of(redis)?, software: software.into() })
    }
}

fn facts_of(redis: &BenchRedis) -> anyhow::Result<Facts> {
    let info: String = redis.probe().command(&["INFO", "server"])?;
    let line =
        |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim_end);
    // Valkey reports both names. The first one has the Redis version with which Valkey is
    // compatible.
    let version = match (line("valkey_version:"), line("redis_version:")) {
        (Some(valkey), _) => format!("valkey {valkey}"),
        (None, Some(redis)) => redis.to_owned(),
        _ => return None.context("INFO does not contain the server's version"),
    };
    let persistence = match redis.persistence() {
        Persistence::None => "none",
        Persistence::Aof => "appendonly, appendfsync everysec",
    };
    let settings = [
        ("version", version),
        ("persistence", persistence.to_owned()),
        ("connection", "TCP on the loopback interface".to_owned()),
    ];
    Ok(settings.into())
}

/// Returns the first `name: value` of a file in `/proc`.
fn field(path: &str, name: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim());
    value.unwrap_or(UNKNOWN).to_owned()
}

fn output_of(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().ok();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.filter(|text| !text.is_empty()).unwrap_or_else(|| UNKNOWN.to_owned())
}

const UNKNOWN: &str = "unknown";
