//! Installs missing programs through the system's package manager.

use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use crate::cargo::run;

/// Debian starts a service for each server that it installs, which is not wanted here. A policy
/// file prevents that. The script creates it during the installation unless the system has one.
/// (`RUNLEVEL` has the same effect on a system without systemd.)
const APT: &str = r#"
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
apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends redis-server
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

/// A package manager: its program, the scripts that install, and whether it needs root.
struct Manager {
    program: &'static str,
    redis: &'static str,
    faketime: &'static str,
    pip: &'static str,
    as_root: bool,
}

const MANAGERS: [Manager; 4] = [
    Manager { program: "apt-get", redis: APT, faketime: APT_FAKETIME, pip: APT_PIP, as_root: true },
    Manager {
        program: "dnf",
        redis: "dnf install -y redis || dnf install -y valkey",
        faketime: "dnf install -y libfaketime",
        pip: "dnf install -y python3-pip",
        as_root: true,
    },
    Manager {
        program: "apk",
        redis: "apk add redis",
        faketime: "apk add libfaketime",
        pip: "apk add py3-pip",
        as_root: true,
    },
    Manager {
        program: "brew",
        redis: "brew install redis",
        faketime: "brew install libfaketime",
        pip: "brew install python",
        as_root: false,
    },
];

/// Installs a server, with a message.
///
/// # Errors
///
/// When the system has none of the package managers above, or its package manager fails.
pub(crate) fn redis_server() -> anyhow::Result<()> {
    install("Redis server", |manager| manager.redis)
}

/// Installs libfaketime, which gives a process a wrong clock.
///
/// # Errors
///
/// The same as for [`redis_server`].
pub(crate) fn faketime() -> anyhow::Result<()> {
    install("libfaketime", |manager| manager.faketime)
}

/// Installs pip, whose registry has packages that contain Redis servers.
///
/// # Errors
///
/// The same as for [`redis_server`].
pub(crate) fn pip() -> anyhow::Result<()> {
    install("pip", |manager| manager.pip)
}

fn install(what: &str, script: fn(&Manager) -> &'static str) -> anyhow::Result<()> {
    let Some(manager) = MANAGERS.iter().find(|manager| is_there(manager.program)) else {
        bail!("no supported package manager to install it (apt-get, dnf, apk, brew)");
    };
    eprintln!("No {what} found: installing it with {}.", manager.program);
    let mut words = vec!["sh", "-c", script(manager)];
    if manager.as_root && !quiet(&["sh", "-c", r#"[ "$(id -u)" = 0 ]"#]) {
        // -n: no password prompt, because nobody may be there to answer it.
        words.splice(0..0, ["sudo", "-n"]);
    }
    let mut command = Command::new(words[0]);
    // Standard output is only for the path of the server.
    command.args(&words[1..]).stdin(Stdio::null()).stdout(std::io::stderr());
    run(&mut command).with_context(|| format!("{} could not install it", manager.program))
}

/// Whether a program can be run by its name.
pub(crate) fn is_there(program: &str) -> bool {
    // `which` is a separate package on some systems; `command` is part of every shell.
    quiet(&["sh", "-c", r#"command -v "$1""#, "sh", program])
}

fn quiet(words: &[&str]) -> bool {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
