//! The command line of each runner.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use super::catalog::{Settings, Way};
use super::folders::Places;

/// A runner in `benches/peers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runner {
    Sidekiq,
    BullMq,
    /// A package of the runners' own workspace, with its folder.
    Cargo(&'static str),
    Celery,
    Arq,
}

impl Runner {
    /// Returns the folder of the runner.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sidekiq => "sidekiq",
            Self::BullMq => "bullmq",
            Self::Cargo(name) => name,
            Self::Celery => "celery",
            Self::Arq => "arq",
        }
    }

    /// Returns the program that submits.
    pub(super) fn client(self, places: &Places, settings: Settings) -> Command {
        let python = places.venv(self.name()).join("bin/python");
        let mut command = match self {
            Self::Sidekiq => program("ruby", ["client.rb"]),
            Self::Celery => program(python, ["client.py"]),
            Self::BullMq | Self::Cargo(_) | Self::Arq => self.whole(places),
        };
        self.furnish(&mut command, places, settings);
        command
    }

    /// Returns a worker for tasks that are numbered below `count`. `index` distinguishes the
    /// workers of one run.
    pub(super) fn worker(
        self,
        places: &Places,
        settings: Settings,
        index: usize,
        count: u64,
    ) -> Command {
        let in_flight = settings.iter().find(|(name, _)| *name == "in_flight");
        let in_flight = in_flight.map_or("1", |(_, value)| value);
        let mut command = match self {
            Self::Sidekiq => program("sidekiq", ["-r", "./worker.rb", "-c", in_flight]),
            Self::Celery => {
                let celery = places.venv(self.name()).join("bin/celery");
                let mut command = program(celery, ["-A", "task", "worker", "--pool=solo"]);
                command.args(["--loglevel=WARNING", "--without-gossip", "--without-mingle"]);
                command.args(["--without-heartbeat", "-c", in_flight, "-n"]);
                command.arg(format!("bench-{index}@localhost"));
                command
            }
            Self::BullMq | Self::Cargo(_) | Self::Arq => {
                let mut command = self.whole(places);
                command.arg("worker").arg(count.to_string());
                command
            }
        };
        self.furnish(&mut command, places, settings);
        command.env("COUNT", count.to_string());
        command
    }

    /// Returns a runner with client and worker in one program.
    fn whole(self, places: &Places) -> Command {
        match self {
            Self::BullMq => program("node", ["runner.js"]),
            Self::Cargo(name) => {
                program(places.cargo().join(format!("release/peer-{name}")), [""; 0])
            }
            _ => program(places.venv(self.name()).join("bin/python"), ["runner.py"]),
        }
    }

    fn furnish(self, command: &mut Command, places: &Places, settings: Settings) {
        command.current_dir(places.runners.join(self.name()));
        command.env("NODE_PATH", places.node().join("node_modules"));
        command.env("PYTHONPATH", python_path(&places.runners, self.name()));
        // With this variable, the repository stays unchanged.
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.envs(settings.iter().map(|(name, value)| (name.to_uppercase(), value)));
    }
}

impl Way {
    /// Returns the name of the measurement.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Seq => "submit_seq",
            Self::Concurrent(_) => "submit_concurrent",
            Self::All(_) => "submit_all",
        }
    }

    /// Returns the words after `submit COUNT`.
    pub(super) fn words(self) -> Vec<String> {
        match self {
            Self::Seq => vec!["seq".to_owned()],
            Self::Concurrent(callers) => vec!["concurrent".to_owned(), callers.to_string()],
            Self::All(batch) => vec!["all".to_owned(), batch.to_string()],
        }
    }
}

fn program<const N: usize>(path: impl AsRef<OsStr>, args: [&str; N]) -> Command {
    let mut command = Command::new(path);
    command.args(args);
    command
}

fn python_path(runners: &Path, name: &str) -> std::ffi::OsString {
    let folders = [runners.join("python"), runners.join(name)];
    std::env::join_paths(folders).expect("the path of the repository has no colon")
}
