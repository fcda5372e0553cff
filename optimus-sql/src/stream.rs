//! The statements of the relay: [`Stream`]. Each method is one statement. `note.rs` puts some of
//! them together, and `next_rows.rs` reads what comes next.

use std::time::Duration;

use sqlx::Pool;

use crate::{
    Dialect, Error, OutboxDb,
    database::Row,
    link::Link,
    noted::{Noted, Share, new_epoch},
    one_row::{as_one_row, read_rows},
    statement::{Kind, Statement, Value},
};

/// The name of the row. One outbox has one stream.
pub(crate) const NAME: &str = "outbox";
/// The name of the row that has the namespace to which the outbox belongs: that of the relay which
/// came first.
const OWNER: &str = "namespace";

/// About the most bytes of a reason for which a row is put aside.
const REASON_BYTES_MAX: usize = 4_096;

/// Without gaps that are locked, writers never wait for a relay. The others may be set for all
/// sessions of the server: the first two would keep a transaction open while a relay is idle, or
/// close its connection; the third refuses to delete by a list; the fourth would hide rows of a
/// batch from a relay that takes it over, and so those that Redis has would be sent again; in modes
/// such as ORACLE, MariaDB understands other words.
const MYSQL_SETTINGS: &str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; \
                              SET SESSION autocommit = 1, SESSION completion_type = 0, \
                              SESSION sql_safe_updates = 0, \
                              SESSION sql_select_limit = 18446744073709551615, \
                              SESSION sql_mode = 'STRICT_TRANS_TABLES'";

/// What a relay reads and writes. It drops it after each error, so no transaction stays open.
pub(crate) struct Stream<DB: OutboxDb> {
    link: Link<DB>,
}

/// A row of the outbox.
#[derive(Debug)]
pub(crate) struct StoredRow {
    pub(crate) seq: i64,
    pub(crate) queue: String,
    pub(crate) id: String,
    /// None if it is too large to be read.
    pub(crate) body: Option<Vec<u8>>,
    /// How long ago the call was made, by the clock of the database.
    pub(crate) age: Duration,
}

impl<DB: OutboxDb> Stream<DB> {
    /// Opens a connection, and creates the rows of the stream. Each statement is limited to this
    /// time.
    ///
    /// # Errors
    /// [`Error::OtherNamespace`] if the outbox belongs to another namespace.
    pub(crate) async fn open(
        pool: &Pool<DB>,
        namespace: &str,
        limit: Duration,
    ) -> Result<Self, Error> {
        let mut link = Link::open(pool, limit).await?;
        // A transaction may stand still for 5 s. Without a limit, a frozen process would keep the
        // row of the stream locked for all others.
        let settings = match DB::DIALECT {
            // Transactions of the user that are SERIALIZABLE must not conflict with a relay.
            // Before the first ANALYZE, PostgreSQL takes nearly all rows for parked ones, and would
            // sort the whole table for each batch instead of walking along its primary key.
            // No plan depends on the values, so each statement is planned once.
            // With `synchronous_commit` off, a crash of the server would lose the note of a batch
            // that Redis has, and the transactions that have stored its calls. To write the note
            // writes those, too.
            Dialect::Postgres => {
                "SET idle_in_transaction_session_timeout = '5s'; \
                 SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED; \
                 SET enable_seqscan = off; SET enable_bitmapscan = off; \
                 SET plan_cache_mode = force_generic_plan; \
                 SELECT set_config('synchronous_commit', 'on', false) \
                 WHERE current_setting('synchronous_commit') = 'off'"
            }
            Dialect::MySql => MYSQL_SETTINGS,
            Dialect::Sqlite => "",
        };
        link.set_up(settings).await?;
        let mut stream = Self { link };
        stream.own(namespace).await?;
        let create = DB::DIALECT.insert_new("optimus_stream", "name,epoch,number,noted");
        let create = Statement::new(create).with(NAME).with(new_epoch()).with(0).with("[]");
        stream.run(create).await?;
        Ok(stream)
    }

    /// Takes the outbox for a namespace, unless it belongs to one.
    async fn own(&mut self, namespace: &str) -> Result<(), Error> {
        let create = DB::DIALECT.insert_new("optimus_stream", "name,epoch,number,noted");
        let create = Statement::new(create).with(OWNER).with("").with(0).with(namespace);
        self.run(create).await?;
        let select = "SELECT noted FROM optimus_stream WHERE name = ?";
        let rows = self.read(Statement::new(select).with(OWNER), &[Kind::Text]).await?;
        let known = rows.into_iter().flatten().next().and_then(Value::into_text);
        match known {
            Some(known) if known != namespace => {
                Err(Error::OtherNamespace { known, own: namespace.to_owned() })
            }
            _ => Ok(()),
        }
    }

    pub(crate) async fn run(&mut self, statement: Statement) -> Result<u64, Error> {
        self.link.run(statement).await
    }

    pub(crate) async fn run_at_once(&mut self, sql: String) -> Result<Vec<u64>, Error> {
        self.link.run_at_once(sql).await
    }

    pub(crate) async fn read(
        &mut self,
        what: Statement,
        kinds: &'static [Kind],
    ) -> Result<Vec<Row>, Error> {
        self.link.read(what, kinds).await
    }

    pub(crate) async fn begin(&mut self) -> Result<(), Error> {
        self.link.begin().await
    }

    pub(crate) async fn commit(&mut self) -> Result<(), Error> {
        self.link.commit().await
    }

    pub(crate) async fn roll_back(&mut self) -> Result<(), Error> {
        self.link.roll_back().await
    }

    /// Reads what is noted.
    pub(crate) async fn noted(&mut self) -> Result<Noted, Error> {
        let select = "SELECT epoch, number, noted FROM optimus_stream WHERE name = ?";
        let select = Statement::new(select).with(NAME);
        let rows = self.read(select, &[Kind::Text, Kind::Int, Kind::Text]).await?;
        let row = rows.into_iter().next().ok_or(sqlx::Error::RowNotFound)?;
        let [epoch, number, noted] = <[Value; 3]>::try_from(row).expect("three columns");
        let (epoch, noted) = (epoch.into_text(), noted.into_text().unwrap_or_default());
        let shares: Vec<Share> = serde_json::from_str(&noted)?;
        let number = u64::try_from(number.int()).unwrap_or(0);
        Ok(Noted { epoch: epoch.unwrap_or_default(), number, shares })
    }

    /// Returns whether a row waits that belongs to none of these queues.
    pub(crate) async fn has_rows(&mut self, above: i64, but: &[&str]) -> Result<bool, Error> {
        let select = "SELECT seq FROM optimus_outbox WHERE seq > ? AND parked_ms IS NULL";
        let select = Statement::new(select).with(above).none_of("queue", but);
        let select = select.add(" ORDER BY seq LIMIT 1");
        Ok(!self.read(select, &[Kind::Int]).await?.is_empty())
    }

    /// Reads these rows, if they are still there.
    pub(crate) async fn rows_of(&mut self, seqs: &[i64]) -> Result<Vec<StoredRow>, Error> {
        let (age, body) = (DB::DIALECT.age_ms(), DB::DIALECT.body());
        let select = format!(
            "SELECT seq, queue, id, {body} AS body, {age} AS age FROM optimus_outbox WHERE "
        );
        let select = DB::DIALECT.one_of(Statement::new(select), "seq", seqs);
        self.rows(select.add(" ORDER BY seq")).await
    }

    pub(crate) async fn rows(&mut self, select: Statement) -> Result<Vec<StoredRow>, Error> {
        const KINDS: &[Kind] = &[Kind::Int, Kind::Text, Kind::Text, Kind::Bytes, Kind::Int];
        if DB::DIALECT == Dialect::Sqlite {
            let read = self.read(as_one_row(select), &[Kind::Text]).await?;
            let text = read.into_iter().flatten().next().and_then(Value::into_text);
            return Ok(read_rows(&text.unwrap_or_default()));
        }
        let rows = self.read(select, KINDS).await?;
        Ok(rows.into_iter().map(stored_row).collect())
    }

    /// Deletes rows that are submitted.
    pub(crate) async fn delete(&mut self, seqs: &[i64]) -> Result<(), Error> {
        if !seqs.is_empty() {
            self.run(DB::DIALECT.delete_each("optimus_outbox", "seq", seqs)).await?;
        }
        Ok(())
    }

    /// Puts a row aside with the reason.
    pub(crate) async fn park(&mut self, seq: i64, why: &str) -> Result<(), Error> {
        let now = DB::DIALECT.now_ms();
        let update =
            format!("UPDATE optimus_outbox SET parked_ms = {now}, error = ? WHERE seq = ?");
        self.run(Statement::new(update).with(storable(why)).with(seq)).await?;
        Ok(())
    }
}

/// Returns a reason as each database can keep it. It may repeat any part of a row that anybody may
/// insert. PostgreSQL keeps no NUL, and MySQL no long text.
pub(crate) fn storable(why: &str) -> String {
    let mut text = String::new();
    for character in why.chars() {
        if text.len() >= REASON_BYTES_MAX {
            text.push('…');
            break;
        }
        if character.is_control() {
            text.extend(character.escape_default());
        } else {
            text.push(character);
        }
    }
    text
}

pub(crate) fn stored_row(row: Row) -> StoredRow {
    let [seq, queue, id, body, age] = <[Value; 5]>::try_from(row).expect("five columns");
    StoredRow {
        seq: seq.int(),
        queue: queue.into_text().unwrap_or_default(),
        id: id.into_text().unwrap_or_default(),
        body: (body != Value::Null).then(|| body.into_bytes()),
        age: Duration::from_millis(u64::try_from(age.int()).unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_has_no_control_characters_and_is_short() {
        assert_eq!(storable("a\0b\n“c”"), "a\\u{0}b\\n“c”");
        let long = storable(&"é".repeat(70_000));
        assert!(long.len() < REASON_BYTES_MAX + 10 && long.ends_with('…'));
    }
}
