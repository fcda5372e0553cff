//! The lock of SQLite, which a transaction that writes has from its first write to its end.
//!
//! A connection that waits for the lock only looks from time to time, after sleeps of up to 100 ms.
//! `busy_timeout` is how long it does so.

use sqlx::Pool;

use crate::{
    Dialect, Error, OutboxDb,
    once_wait::is_taken,
    statement::{Kind, Statement},
};

/// How often a relay looks each ms, before it waits as all connections do. Without this, a relay
/// beside a program that writes without a pause would miss most moments at which the lock is free.
const LOOKS: u32 = 30;
const BEGIN_WITHIN_1_MS: &str = "PRAGMA busy_timeout = 1; BEGIN IMMEDIATE";

/// How long an attempt looks whether an earlier one has the lock. Others often keep it for some ms.
const LOOK_MS: i64 = 50;
const LOOK: &str = "PRAGMA busy_timeout = 50";

/// Begins a transaction of a relay.
pub(crate) async fn begin_in_sqlite<DB: OutboxDb>(
    connection: &mut DB::Connection,
) -> Result<(), sqlx::Error> {
    let usual_ms = busy_timeout_ms::<DB>(connection).await?;
    let mut begun = DB::run_plain(connection, BEGIN_WITHIN_1_MS).await;
    for _ in 1..LOOKS {
        if !begun.as_ref().is_err_and(|problem| is_taken(Dialect::Sqlite, problem)) {
            break;
        }
        begun = DB::run_plain(connection, BEGIN_WITHIN_1_MS).await;
    }
    set_busy_timeout::<DB>(connection, usual_ms).await?;
    match begun {
        Err(problem) if is_taken(Dialect::Sqlite, &problem) => {
            DB::run_plain(connection, Dialect::Sqlite.begin()).await
        }
        begun => begun,
    }
}

/// Fails if the database is locked, after a shorter time than the connection waits otherwise.
pub(crate) async fn look_in_sqlite<DB: OutboxDb>(pool: &Pool<DB>) -> Result<(), Error> {
    let mut connection = pool.acquire().await?;
    let usual_ms = busy_timeout_ms::<DB>(&mut connection).await?;
    if usual_ms <= LOOK_MS {
        return Ok(());
    }
    DB::run_plain(&mut connection, LOOK).await?;
    let tried = DB::run_plain(&mut connection, "BEGIN IMMEDIATE; ROLLBACK").await;
    set_busy_timeout::<DB>(&mut connection, usual_ms).await?;
    Ok(tried?)
}

async fn busy_timeout_ms<DB: OutboxDb>(
    connection: &mut DB::Connection,
) -> Result<i64, sqlx::Error> {
    let read = Statement::new("PRAGMA busy_timeout");
    let rows = DB::read(connection, read, &[Kind::Int]).await?;
    Ok(rows.first().map_or(0, |row| row[0].int()))
}

async fn set_busy_timeout<DB: OutboxDb>(
    connection: &mut DB::Connection,
    ms: i64,
) -> Result<(), sqlx::Error> {
    DB::run_at_once(connection, format!("PRAGMA busy_timeout = {ms}")).await.map(drop)
}

#[cfg(feature = "sqlite")]
#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sqlx::{ConnectOptions as _, Sqlite, SqliteConnection, sqlite::SqliteConnectOptions};

    use super::*;

    const USUAL_MS: i64 = 7;

    async fn two_connections(folder: &tempfile::TempDir) -> [SqliteConnection; 2] {
        let options = SqliteConnectOptions::new()
            .filename(folder.path().join("test.db"))
            .create_if_missing(true)
            .busy_timeout(Duration::from_millis(7));
        [options.connect().await.unwrap(), options.connect().await.unwrap()]
    }

    #[tokio::test]
    async fn a_relay_begins_once_the_lock_is_free_and_then_waits_as_before() {
        let folder = tempfile::tempdir().unwrap();
        let [mut other, mut relay] = two_connections(&folder).await;
        Sqlite::run_plain(&mut other, "BEGIN IMMEDIATE").await.unwrap();
        let problem = begin_in_sqlite::<Sqlite>(&mut relay).await.unwrap_err();
        assert!(is_taken(Dialect::Sqlite, &problem), "{problem}");
        assert_eq!(busy_timeout_ms::<Sqlite>(&mut relay).await.unwrap(), USUAL_MS);

        Sqlite::run_plain(&mut other, "COMMIT").await.unwrap();
        begin_in_sqlite::<Sqlite>(&mut relay).await.unwrap();
        let problem = Sqlite::run_plain(&mut other, "BEGIN IMMEDIATE").await.unwrap_err();
        assert!(is_taken(Dialect::Sqlite, &problem), "{problem}");
        assert_eq!(busy_timeout_ms::<Sqlite>(&mut relay).await.unwrap(), USUAL_MS);
    }

    #[tokio::test]
    async fn a_relay_that_is_refused_for_another_reason_does_not_try_again() {
        let folder = tempfile::tempdir().unwrap();
        let [_, mut relay] = two_connections(&folder).await;
        begin_in_sqlite::<Sqlite>(&mut relay).await.unwrap();
        let problem = begin_in_sqlite::<Sqlite>(&mut relay).await.unwrap_err();
        assert!(problem.to_string().contains("within a transaction"), "{problem}");
        assert_eq!(busy_timeout_ms::<Sqlite>(&mut relay).await.unwrap(), USUAL_MS);
    }
}
