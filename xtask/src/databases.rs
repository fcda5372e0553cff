//! Finds the SQL databases that the tests start, and installs those that are missing.

use anyhow::{Context as _, ensure};
use optimus_testkit::{find_mariadb, find_postgres};

use crate::install;

/// Installs PostgreSQL and MariaDB with the system's package manager, unless they are there.
///
/// # Errors
///
/// When one of them is missing and could not be installed.
pub(crate) fn find_or_install() -> anyhow::Result<()> {
    if find_postgres("initdb").is_none() {
        install::postgres().context("install the package postgresql")?;
    }
    if find_mariadb("mariadb-install-db").is_none() || find_mariadb("my_print_defaults").is_none() {
        install::mariadb().context("install the package mariadb-server")?;
    }
    for (program, found) in [
        ("initdb", find_postgres("initdb")),
        ("postgres", find_postgres("postgres")),
        ("mariadb-install-db", find_mariadb("mariadb-install-db")),
        ("mariadbd", find_mariadb("mariadbd")),
    ] {
        ensure!(found.is_some(), "{program} was installed but is not found; add it to PATH");
    }
    Ok(())
}
