//! Reads the rows of the next batch: [`Stream::next_rows`].

use crate::{
    Dialect, Error, OutboxDb,
    statement::{Kind, Statement},
    stream::{StoredRow, Stream, stored_row},
};

/// The most rows of a batch.
const ROWS_MAX: usize = 1_000;
/// The most bytes of a batch of several rows.
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bodies up to this length need no sum: so many of them are not above the most bytes of a batch.
const SMALL_MAX: usize = BYTES_MAX / ROWS_MAX;

/// Up to so many rows that will be deleted are read again from MySQL, and then left out. To name
/// them would make another statement of each read, which the database would have to parse.
const READ_AGAIN_MAX: usize = 64;

/// The columns of a row, and the number below which all transactions have ended.
const KINDS: &[Kind] = &[Kind::Int, Kind::Text, Kind::Text, Kind::Bytes, Kind::Int, Kind::Int];

/// The rows of a read.
pub(crate) struct NextRows {
    pub(crate) rows: Vec<StoredRow>,
    /// All transactions with lower numbers have ended before this read, if there are rows.
    pub(crate) ended_below: i64,
}

impl<DB: OutboxDb> Stream<DB> {
    /// Reads the first rows of other queues than these, as many as fit into a batch. `without` are
    /// rows that will be deleted or put aside.
    pub(crate) async fn next_rows(
        &mut self,
        above: i64,
        but: &[&str],
        without: &[i64],
    ) -> Result<NextRows, Error> {
        let select = match DB::DIALECT {
            Dialect::Sqlite => {
                let rows = self.rows(first_rows(Dialect::Sqlite, above, but, without)).await?;
                return Ok(NextRows { rows, ended_below: 0 });
            }
            Dialect::Postgres => first_rows(Dialect::Postgres, above, but, without),
            Dialect::MySql => {
                if let Some(rows) = self.small_rows(above, but, without).await? {
                    return Ok(NextRows { rows, ended_below: 0 });
                }
                first_rows(Dialect::MySql, above, but, without)
            }
        };
        let (mut rows, mut ended_below) = (Vec::new(), 0);
        for mut row in self.read(select, KINDS).await? {
            ended_below = row.pop().map_or(0, |ended| ended.int());
            rows.push(stored_row(row));
        }
        Ok(NextRows { rows, ended_below })
    }

    /// Reads the first rows from MySQL, if all of them are small. To sum their bytes there costs
    /// several times as much as to read them.
    async fn small_rows(
        &mut self,
        above: i64,
        but: &[&str],
        without: &[i64],
    ) -> Result<Option<Vec<StoredRow>>, Error> {
        let none: &[i64] = &[];
        let (named, again) =
            if without.len() > READ_AGAIN_MAX { (without, none) } else { (none, without) };
        let mut rows = Vec::new();
        for mut row in self.read(small_rows(above, but, named), KINDS).await? {
            let is_small = row.pop().is_some_and(|is_small| is_small.int() == 1);
            let row = stored_row(row);
            if again.contains(&row.seq) {
                continue;
            }
            if !is_small {
                return Ok(None);
            }
            rows.push(row);
        }
        Ok(Some(rows))
    }
}

/// Returns the statement for MySQL that reads the bodies of small rows, and tells which are small.
fn small_rows(above: i64, but: &[&str], without: &[i64]) -> Statement {
    let age = Dialect::MySql.age_ms();
    let select = format!(
        "SELECT seq, queue, id, IF(LENGTH(body) <= {SMALL_MAX}, body, '') AS body, {age} AS age, \
         LENGTH(body) <= {SMALL_MAX} AS small \
         FROM optimus_outbox WHERE seq > ? AND parked_ms IS NULL"
    );
    let select = Statement::new(select).with(above).none_of("queue", but);
    let select = Dialect::MySql.none_of(select, "seq", without);
    select.add(&format!(" ORDER BY seq LIMIT {ROWS_MAX}"))
}

/// Returns the statement that reads the rows of a batch.
fn first_rows(dialect: Dialect, above: i64, but: &[&str], without: &[i64]) -> Statement {
    let (age, ended) = (dialect.age_ms(), dialect.ended_below());
    let (body, size) = (dialect.body(), dialect.size());
    let of_summed = match dialect {
        // MySQL keeps the rows of subqueries in temporary tables: on the disk if they have bodies.
        Dialect::MySql => format!(
            "SELECT o.seq, queue, id, {body} AS body, {age} AS age, {ended} AS ended FROM (\
             SELECT seq, size, SUM(size) OVER (ORDER BY seq) AS total FROM (\
             SELECT seq, {size} AS size"
        ),
        Dialect::Postgres | Dialect::Sqlite => format!(
            "SELECT seq, queue, id, body, age, {ended} AS ended FROM (\
             SELECT seq, queue, id, body, {age} AS age, size, \
             SUM(size) OVER (ORDER BY seq) AS total FROM (\
             SELECT seq, queue, id, {body} AS body, {size} AS size, at_ms"
        ),
    };
    let bodies = match dialect {
        Dialect::MySql => " STRAIGHT_JOIN optimus_outbox AS o ON o.seq = summed.seq",
        Dialect::Postgres | Dialect::Sqlite => "",
    };
    let select = Statement::new(of_summed)
        .add(" FROM optimus_outbox WHERE seq > ? AND parked_ms IS NULL")
        .with(above)
        .none_of("queue", but);
    dialect.none_of(select, "seq", without).add(&format!(
        " ORDER BY seq LIMIT {ROWS_MAX}) AS first_rows) AS summed{bodies} \
         WHERE total <= {BYTES_MAX} OR total = size ORDER BY summed.seq"
    ))
}
