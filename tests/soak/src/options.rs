//! The options of the command line.

use std::time::Duration;

use anyhow::{Context as _, bail};

use crate::profile::{PROFILES, Profile, QUICK, QUICK_FLOWS};

/// The faults of the runs, and their durations.
#[derive(Debug)]
pub(crate) struct Options {
    /// One run each, one after the other.
    pub(crate) profiles: Vec<Profile>,
    pub(crate) seed: u64,
    /// Keeps the histories even after a good run.
    pub(crate) keep: bool,
}

impl Options {
    /// Reads the arguments.
    ///
    /// # Errors
    ///
    /// Names the unknown argument, and the known ones.
    pub(crate) fn read(args: impl IntoIterator<Item = String>) -> anyhow::Result<Self> {
        let profiles = vec![PROFILES[0]];
        let mut options = Self { profiles, seed: fastrand::u64(..), keep: false };
        let mut minutes = None;
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--quick" => options.profiles = vec![QUICK, QUICK_FLOWS],
                "--minutes" => minutes = Some(value()?.parse::<f64>().context("--minutes")?),
                "--seed" => options.seed = value()?.parse().context("--seed")?,
                "--profile" => options.profiles = vec![named(&value()?)?],
                "--keep" => options.keep = true,
                _ => bail!("unknown argument {arg:?}\n{}", usage()),
            }
        }
        if let Some(minutes) = minutes {
            let time = Duration::try_from_secs_f64(minutes * 60.0).context("--minutes")?;
            for profile in &mut options.profiles {
                *profile = profile.lasting(time);
            }
        }
        Ok(options)
    }
}

fn named(name: &str) -> anyhow::Result<Profile> {
    let found = PROFILES.iter().find(|profile| profile.name == name);
    found.copied().with_context(|| format!("no profile {name:?}\n{}", usage()))
}

fn usage() -> String {
    let mut text = "\
        --minutes N    runs for this time, and not until the profile's own end\n\
        --seed S       determines the order of faults\n\
        --profile P    selects the kinds of faults\n\
        --quick        runs short versions of every fault and of the flows\n\
        --keep         keeps the histories even after a good run\n\
        \nprofiles:\n"
        .to_owned();
    text.extend(PROFILES.iter().map(line));
    text
}

fn line(profile: &Profile) -> String {
    format!("  {:<10} {}\n", profile.name, profile.about)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> anyhow::Result<Options> {
        Options::read(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn minutes_and_a_seed_are_read_and_unknown_arguments_are_refused() {
        let options = read("--minutes 0.5 --seed 7 --profile kills").unwrap();
        assert_eq!((options.seed, options.profiles[0].name), (7, "kills"));
        assert_eq!(options.profiles[0].time, Some(Duration::from_secs(30)));
        for wrong in ["--fast", "--profile x", "--minutes -1", "--seed"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
