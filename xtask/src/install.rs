//! Installs missing programs with the system's package manager.

use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use crate::cargo::run;

/// Installs a server without starting it; its package follows. Debian starts a service for each
/// server that it installs, and a policy file prevents that. The script creates this file during
/// the installation unless the system has one. (`RUNLEVEL` has the same effect on a system without
/// systemd.)
const APT_SERVER: &str = r#"
set -e
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
# An unreachable source may not matter. If it does, the installation reports it.
apt-get -o DPkg::Lock::Timeout=300 update || true
# Several packages are words of one text.
apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends $1
"#;

const APT_FAKETIME: &str = r"
set -e
export DEBIAN_FRONTEND=noninteractive
apt-get -o DPkg::Lock::Timeout=300 update || true
apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends libfaketime
";

const APT_PIP: &str = r"
set -e
export DEBIAN_FRONTEND=noninteractive
apt-get -o DPkg::Lock::Timeout=300 update || true
apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends python3-pip
";

/// A package manager: its program, its installation scripts, and whether it needs root. The script
/// of a server gets the name of a package.
struct Manager {
    program: &'static str,
    server: &'static str,
    postgres: &'static str,
    mariadb: &'static str,
    redis: &'static str,
    chromium: &'static str,
    prometheus: &'static str,
    faketime: &'static str,
    pip: &'static str,
    as_root: bool,
}

const MANAGERS: [Manager; 4] = [
    Manager {
        program: "apt-get",
        server: APT_SERVER,
        postgres: "postgresql",
        mariadb: "mariadb-server-core mariadb-client-core",
        redis: "redis-server",
        chromium: "chromium",
        prometheus: "prometheus",
        faketime: APT_FAKETIME,
        pip: APT_PIP,
        as_root: true,
    },
    Manager {
        program: "dnf",
        server: r#"dnf install -y "$1" || { [ "$1" = redis ] && dnf install -y valkey; }"#,
        postgres: "postgresql-server",
        mariadb: "mariadb-server",
        redis: "redis",
        chromium: "chromium",
        prometheus: "golang-github-prometheus",
        faketime: "dnf install -y libfaketime",
        pip: "dnf install -y python3-pip",
        as_root: true,
    },
    Manager {
        program: "apk",
        server: r#"apk add "$1""#,
        postgres: "postgresql",
        mariadb: "mariadb",
        redis: "redis",
        chromium: "chromium",
        prometheus: "prometheus",
        faketime: "apk add libfaketime",
        pip: "apk add py3-pip",
        as_root: true,
    },
    Manager {
        program: "brew",
        server: r#"brew install "$1""#,
        postgres: "postgresql",
        mariadb: "mariadb",
        redis: "redis",
        chromium: "chromium",
        prometheus: "prometheus",
        faketime: "brew install libfaketime",
        pip: "brew install python",
        as_root: false,
    },
];

/// Installs a Redis server and prints a message.
///
/// # Errors
///
/// When the system has no supported package manager, or its package manager fails.
pub(crate) fn redis_server() -> anyhow::Result<()> {
    install("Redis server", |manager| (manager.server, manager.redis))
}

/// Installs PostgreSQL.
///
/// # Errors
///
/// The same as for [`redis_server`].
pub(crate) fn postgres() -> anyhow::Result<()> {
    install("PostgreSQL", |manager| (manager.server, manager.postgres))
}

/// Installs MariaDB.
///
/// # Errors
///
/// The same as for [`redis_server`].
pub(crate) fn mariadb() -> anyhow::Result<()> {
    install("MariaDB", |manager| (manager.server, manager.mariadb))
}

/// Installs Chromium, in which the pages of the console are tested.
///
/// # Errors
///
/// The same as for [`redis_server`].
pub(crate) fn chromium() -> anyhow::Result<()> {
    install("Chromium", |manager| (manager.server, manager.chromium))
}

/// Installs pngquant, which makes the pictures of the documents small.
///
/// # Errors
///
/// The same as for [`redis_server`].
pub(crate) fn pngquant() -> anyhow::Result<()> {
    install("pngquant", |manager| (manager.server, "pngquant"))
}

/// Installs Prometheus with `promtool`. No service of it runs.
///
/// # Errors
///
/// The same as for [`redis_server`].
pub(crate) fn prometheus() -> anyhow::Result<()> {
    install("Prometheus", |manager| (manager.server, manager.prometheus))
}

/// Installs libfaketime, which changes the clock of a process.
///
/// # Errors
///
/// The same as for [`redis_server`].
pub(crate) fn faketime() -> anyhow::Result<()> {
    install("libfaketime", |manager| (manager.faketime, ""))
}

/// Installs pip. Its registry has packages that contain Redis servers.
///
/// # Errors
///
/// The same as for [`redis_server`].
pub(crate) fn pip() -> anyhow::Result<()> {
    install("pip", |manager| (manager.pip, ""))
}

/// Runs a script with its argument.
fn install(what: &str, script: fn(&Manager) -> (&'static str, &'static str)) -> anyhow::Result<()> {
    let Some(manager) = MANAGERS.iter().find(|manager| is_there(manager.program)) else {
        bail!("found no supported package manager (apt-get, dnf, apk, brew)");
    };
    eprintln!("Found no {what}. Installing it with {}.", manager.program);
    let (script, package) = script(manager);
    let mut words = vec!["sh", "-c", script, "sh", package];
    if manager.as_root && !quiet(&["sh", "-c", r#"[ "$(id -u)" = 0 ]"#]) {
        // `-n` prevents the password prompt, because this program may run unattended.
        words.splice(0..0, ["sudo", "-n"]);
    }
    let mut command = Command::new(words[0]);
    // Standard output contains only the path of the server.
    command.args(&words[1..]).stdin(Stdio::null()).stdout(std::io::stderr());
    run(&mut command).with_context(|| format!("{} could not install it", manager.program))
}

/// Returns whether a program can be run by its name.
pub(crate) fn is_there(program: &str) -> bool {
    // `which` is a separate package on some systems; `command` is part of every shell.
    quiet(&["sh", "-c", r#"command -v "$1""#, "sh", program])
}

fn quiet(words: &[&str]) -> bool {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
