//! How many calls wait in the outbox: [`lag`].

use std::time::Duration;

use sqlx::Pool;

use crate::{
    Error, OutboxDb,
    statement::{Kind, Statement},
};

/// What waits in an outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lag {
    /// How many calls are committed and not submitted yet.
    pub rows: u64,
    /// How long ago the oldest of them was made, by the clock of the database.
    pub oldest: Option<Duration>,
    /// How many calls are put aside, because they can't be submitted.
    pub parked: u64,
}

/// Counts what waits, for a metric. It reads the whole table, so call it each few seconds.
///
/// # Errors
/// [`Error::Database`].
pub async fn lag<DB: OutboxDb>(pool: &Pool<DB>) -> Result<Lag, Error> {
    let age = DB::DIALECT.age_ms();
    let select = Statement::new(format!(
        "SELECT COUNT(*), COUNT(parked_ms), \
         MAX(CASE WHEN parked_ms IS NULL THEN {age} END) FROM optimus_outbox"
    ));
    let mut connection = pool.acquire().await?;
    let rows = DB::read(&mut connection, select, &[Kind::Int, Kind::Int, Kind::Int]).await?;
    let row = rows.into_iter().next().ok_or(sqlx::Error::RowNotFound)?;
    let count = |at: usize| u64::try_from(row[at].int()).unwrap_or(0);
    let (all, parked) = (count(0), count(1));
    let oldest = (all > parked).then(|| Duration::from_millis(count(2)));
    Ok(Lag { rows: all - parked, oldest, parked })
}
