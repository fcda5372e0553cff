//! The options of the command line.

use std::path::PathBuf;

use anyhow::{Context as _, bail, ensure};

use crate::bench_redis::Persistence;
use crate::measure::{self, Measurement};
use crate::scale::Scale;

/// The measurements to run, and their settings.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) scale: Scale,
    /// The names of the measurements. None means all.
    pub(crate) only: Vec<String>,
    /// The names of the peers, in which `all` is possible. None means only Optimus.
    pub(crate) peers: Vec<String>,
    pub(crate) json: Option<PathBuf>,
    pub(crate) persistence: Persistence,
}

/// The name of the floors. They are selected like a measurement.
pub(crate) const FLOOR: &str = "floor";

impl Options {
    /// Reads the arguments.
    ///
    /// # Errors
    ///
    /// Names the unknown argument, and the known ones.
    pub(crate) fn read(args: impl IntoIterator<Item = String>) -> anyhow::Result<Self> {
        let mut options = Self {
            scale: Scale::FULL,
            only: Vec::new(),
            peers: Vec::new(),
            json: None,
            persistence: Persistence::None,
        };
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--quick" => options.scale = Scale::QUICK,
                "--aof" => options.persistence = Persistence::Aof,
                "--only" => options.only = names(&value()?),
                "--peers" => options.peers = names(&value()?),
                "--json" => options.json = Some(value()?.into()),
                _ => bail!("unknown argument {arg:?}\n{}", usage()),
            }
        }
        for name in &options.only {
            ensure!(is_measurement(name), "there is no measurement {name:?}\n{}", usage());
        }
        Ok(options)
    }

    /// Returns whether this measurement is selected, by name or with all others.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.names(name)
    }

    /// Returns the selected measurements.
    pub(crate) fn measurements(&self) -> impl Iterator<Item = &'static Measurement> {
        let usual = measure::USUAL.iter().filter(|usual| self.wants(usual.name));
        usual.chain(measure::ON_DEMAND.iter().filter(|other| self.names(other.name)))
    }

    fn names(&self, name: &str) -> bool {
        self.only.iter().any(|only| only == name)
    }
}

fn names(list: &str) -> Vec<String> {
    list.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn is_measurement(name: &str) -> bool {
    name == FLOOR || measurements().any(|measurement| measurement.name == name)
}

fn measurements() -> impl Iterator<Item = &'static Measurement> {
    measure::USUAL.iter().chain(measure::ON_DEMAND)
}

/// Returns the text about all arguments, and the names of all measurements.
pub(crate) fn usage() -> String {
    let mut text = "\
        --quick        a short run of everything, with hard bounds on the work of Redis\n\
        --only A,B     only these measurements\n\
        --peers A,B    other queues to compare; `all` for all of them\n\
        --json FILE    the results as JSON, too\n\
        --aof          with Redis' append-only file\n\
        \nmeasurements:\n"
        .to_owned();
    for measurement in measurements() {
        text += &line(measurement.name, measurement.about);
    }
    text + &line(FLOOR, "RPUSH, LMOVE and LREM of the same records")
}

fn line(name: &str, about: &str) -> String {
    format!("  {name:<18} {about}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> anyhow::Result<Options> {
        Options::read(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn without_arguments_all_of_optimus_is_measured() {
        let options = read("").unwrap();
        let measured = |name| options.measurements().any(|wanted| wanted.name == name);
        assert!(measured("drain") && !measured("instructions"));
        assert!(options.peers.is_empty() && !options.scale.is_quick());
    }

    #[test]
    fn lists_are_read_and_an_unknown_name_is_refused_with_the_known_ones() {
        let options = read("--quick --only drain,idle --peers all --json x.json --aof").unwrap();
        assert!(options.wants("idle") && !options.wants("growth") && options.scale.is_quick());
        assert_eq!(options.persistence, Persistence::Aof);
        for wrong in ["--only drian", "--fast", "--json"] {
            let problem = read(wrong).unwrap_err().to_string();
            assert!(problem.contains("needs a value") || problem.contains("submit_seq"));
        }
    }
}
