//! Installs the dependencies of a runner with the package manager of its language.

use std::env;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};

use super::folders::Places;
use super::program::Runner;
use super::program_error::complaint;

/// Installs the missing dependencies.
///
/// # Errors
///
/// When an installation fails. The reason names the log.
pub(super) fn install(runner: Runner, places: &Places) -> anyhow::Result<()> {
    match runner {
        Runner::Sidekiq => sidekiq(places),
        Runner::BullMq => bullmq(places),
        Runner::Cargo(name) => cargo(name, places),
        Runner::Celery | Runner::Arq => python(runner.name(), places),
    }
}

/// The script that installs the package of the system, which has only one version. The package
/// contains no service, so nothing is started.
const APT: &str = "
set -e
export DEBIAN_FRONTEND=noninteractive
apt-get -o DPkg::Lock::Timeout=300 update || true
apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends ruby-sidekiq
";

fn sidekiq(places: &Places) -> anyhow::Result<()> {
    if is_there("sidekiq") && is_there("ruby") {
        return Ok(());
    }
    ensure!(is_there("apt-get"), "there is no sidekiq, and no apt-get to install it");
    // `-n` prevents the password prompt, because this program may run unattended.
    let script = r#"[ "$(id -u)" = 0 ] && exec sh -c "$1" || exec sudo -n sh -c "$1""#;
    let mut shell = Command::new("sh");
    run("sidekiq", places, shell.args(["-c", script, "install", APT]))
}

fn bullmq(places: &Places) -> anyhow::Result<()> {
    ensure!(is_there("node") && is_there("npm"), "there is no node with npm");
    let (source, node) = (places.runners.join("bullmq"), places.node());
    installed_once(&source.join("package-lock.json"), &node, || {
        for file in ["package.json", "package-lock.json"] {
            fs::copy(source.join(file), node.join(file)).with_context(|| file.to_owned())?;
        }
        // The command is not `npm ci`, which refuses a lock file that lacks the builds of an
        // optional dependency for other systems. The versions in the lock file are installed
        // unchanged.
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(&node);
        run("bullmq", places, &mut npm)
    })
}

fn cargo(name: &str, places: &Places) -> anyhow::Result<()> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.args(["build", "--release", "--locked", "--package", &format!("peer-{name}")]);
    cargo.arg("--target-dir").arg(places.cargo()).current_dir(&places.runners);
    run(name, places, &mut cargo)
}

fn python(name: &str, places: &Places) -> anyhow::Result<()> {
    ensure!(is_there("python3"), "there is no python3");
    let (requirements, venv) =
        (places.runners.join(name).join("requirements.txt"), places.venv(name));
    installed_once(&requirements, &venv, || {
        run(name, places, Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        let mut pip = Command::new(venv.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--requirement"]);
        run(name, places, pip.arg(&requirements))
    })
}

/// Installs the packages of `list` into `home`, unless that was done before with the same list.
fn installed_once(
    list: &Path,
    home: &Path,
    work: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let wanted = fs::read(list).with_context(|| list.display().to_string())?;
    let stamp = home.join("installed");
    if fs::read(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    fs::create_dir_all(home)?;
    work()?;
    Ok(fs::write(stamp, wanted)?)
}

fn is_there(program: &str) -> bool {
    // `which` is a separate package on some systems; `command` is part of every shell.
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"command -v "$1""#, "sh", program]);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    shell.status().is_ok_and(|status| status.success())
}

/// Runs a command with its output in a log.
fn run(name: &str, places: &Places, command: &mut Command) -> anyhow::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    eprintln!("{name}: installing missing packages with {program}");
    let log = places.log(&format!("{name}-install"));
    let output = File::create(&log).with_context(|| log.display().to_string())?;
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    let status = command.status().with_context(|| format!("{program} can't be started"))?;
    if !status.success() {
        let complaint = complaint(&log).unwrap_or_default();
        bail!("{program} ended with {status}: {complaint} (see {} for more)", log.display());
    }
    Ok(())
}
