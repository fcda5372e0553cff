//! Calls that can't be submitted, and what an operator can do about them: [`list_parked`],
//! [`retry_parked`], [`drop_parked`].

use std::time::{Duration, SystemTime};

use optimus_core::TaskId;
use sqlx::Pool;

use crate::{
    Error, OutboxDb,
    noted::id_of,
    statement::{Kind, Statement, Value},
    transaction::begin,
    wakeup,
    whole::whole,
};

/// The most rows of one call of [`list_parked`].
pub const PARKED_MAX: usize = 1_000;

/// A call that was put aside.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parked {
    /// The number of its row.
    pub seq: i64,
    /// The task that it would be; none if the row has no valid id.
    pub id: Option<TaskId>,
    /// When it was put aside, by the clock of the database.
    pub at: SystemTime,
    /// Why it can't be submitted.
    pub error: String,
}

/// Reads parked calls above a row, up to [`PARKED_MAX`]. Begin with 0, and go on with the `seq` of
/// the last one.
///
/// # Errors
/// [`Error::Database`].
pub async fn list_parked<DB: OutboxDb>(pool: &Pool<DB>, above: i64) -> Result<Vec<Parked>, Error> {
    const KINDS: &[Kind] = &[Kind::Int, Kind::Text, Kind::Text, Kind::Int, Kind::Text];
    let select = Statement::new(format!(
        "SELECT seq, queue, id, parked_ms, error FROM optimus_outbox \
         WHERE parked_ms IS NOT NULL AND seq > ? ORDER BY seq LIMIT {PARKED_MAX}"
    ));
    let mut connection = pool.acquire().await?;
    let rows = DB::read(&mut connection, select.with(above), KINDS).await?;
    Ok(rows.into_iter().map(parked).collect())
}

fn parked(row: Vec<Value>) -> Parked {
    let [seq, queue, id, at, error] = <[Value; 5]>::try_from(row).expect("five columns");
    let [queue, id, error] = [queue, id, error].map(|text| text.into_text().unwrap_or_default());
    let at_ms = u64::try_from(at.int()).unwrap_or(0);
    let at = SystemTime::UNIX_EPOCH + Duration::from_millis(at_ms);
    Parked { seq: seq.int(), id: id_of(&queue, &id).ok(), at, error }
}

/// Lets a relay try a parked call again, behind all others. Returns whether it was there.
///
/// # Errors
/// [`Error::Database`].
pub async fn retry_parked<DB: OutboxDb>(pool: &Pool<DB>, seq: i64) -> Result<bool, Error> {
    let is_there = whole(retry(pool.clone(), seq)).await?;
    wakeup::wake();
    Ok(is_there)
}

async fn retry<DB: OutboxDb>(pool: Pool<DB>, seq: i64) -> Result<bool, Error> {
    // A relay may have passed the old number.
    let copy = "INSERT INTO optimus_outbox (queue, id, body, at_ms) SELECT queue, id, body, at_ms \
                FROM optimus_outbox WHERE seq = ? AND parked_ms IS NOT NULL";
    let mut tx = begin(pool, DB::DIALECT.begin()).await?;
    // Of two operators, the second finds no row.
    let find = "SELECT seq FROM optimus_outbox WHERE seq = ? AND parked_ms IS NOT NULL";
    let find = Statement::new(find).with(seq).add(DB::DIALECT.for_update());
    let is_there = !DB::read(&mut tx, find, &[Kind::Int]).await?.is_empty();
    if is_there {
        DB::run(&mut tx, Statement::new(copy).with(seq)).await?;
        let delete = "DELETE FROM optimus_outbox WHERE seq = ?";
        DB::run(&mut tx, Statement::new(delete).with(seq)).await?;
    }
    tx.commit().await?;
    Ok(is_there)
}

/// Deletes a parked call. Returns whether it was there.
///
/// # Errors
/// [`Error::Database`].
pub async fn drop_parked<DB: OutboxDb>(pool: &Pool<DB>, seq: i64) -> Result<bool, Error> {
    let delete = "DELETE FROM optimus_outbox WHERE seq = ? AND parked_ms IS NOT NULL";
    let mut connection = pool.acquire().await?;
    Ok(DB::run(&mut connection, Statement::new(delete).with(seq)).await? == 1)
}
