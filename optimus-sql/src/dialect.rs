//! The differences between the databases: [`Dialect`].

use crate::statement::Statement;

/// The most bytes of a body that a relay reads. SQLite makes digits of it, in a text of up to 10⁹
/// bytes; a row of PostgreSQL has at most 2³⁰.
const BODY_MAX: usize = 256 << 20;

/// The SQL of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL, 13 or newer.
    Postgres,
    /// MySQL, 8.0.13 or newer, and MariaDB, 10.6 or newer.
    MySql,
    /// SQLite, 3.35 or newer.
    Sqlite,
}

impl Dialect {
    /// Returns the statements that create the tables. They are safe to run again. Use them if your
    /// program has its own migrations; [`migrate`](crate::migrate) runs them otherwise.
    pub const fn migration(self) -> &'static str {
        match self {
            Self::Postgres => include_str!("../migrations/postgres.sql"),
            Self::MySql => include_str!("../migrations/mysql.sql"),
            Self::Sqlite => include_str!("../migrations/sqlite.sql"),
        }
    }

    /// Returns the statement that stores one call; its parameters are the queue, the id and the
    /// body.
    pub(crate) const fn insert(self) -> &'static str {
        match self {
            Self::Postgres => "INSERT INTO optimus_outbox (queue, id, body) VALUES ($1, $2, $3)",
            Self::MySql | Self::Sqlite => {
                "INSERT INTO optimus_outbox (queue, id, body) VALUES (?, ?, ?)"
            }
        }
    }

    /// Returns the clock of the database, in ms since the Unix epoch.
    pub(crate) const fn now_ms(self) -> &'static str {
        match self {
            Self::Postgres => "(extract(epoch FROM clock_timestamp()) * 1000)::bigint",
            Self::MySql => {
                "(timestampdiff(MICROSECOND, '1970-01-01 00:00:00', utc_timestamp(3)) DIV 1000)"
            }
            Self::Sqlite => "CAST((julianday('now') - 2440587.5) * 86400000.0 AS integer)",
        }
    }

    /// Returns how long ago the call of a row was made, in ms. A time that is wrong, which anybody
    /// may insert, must not overflow: the read would fail, and no call would be submitted.
    pub(crate) fn age_ms(self) -> String {
        format!("{} - CASE WHEN at_ms < 0 THEN 0 ELSE at_ms END", self.now_ms())
    }

    /// Returns the body of a row, or NULL if it is so large that the database could not hand it
    /// over: the read would fail, and no call would be submitted. MySQL stores no such row.
    pub(crate) fn body(self) -> String {
        match self {
            Self::Postgres | Self::Sqlite => {
                format!("CASE WHEN {} <= {BODY_MAX} THEN body END", self.size())
            }
            Self::MySql => "body".to_owned(),
        }
    }

    /// Returns the length of a body in bytes.
    pub(crate) const fn size(self) -> &'static str {
        match self {
            Self::Postgres | Self::MySql => "LENGTH(body)",
            // A text is as long as its characters before the first NUL. Anybody may insert one.
            // SQLite knows the type and the length of a BLOB without a look at it.
            Self::Sqlite => {
                "CASE typeof(body) WHEN 'blob' THEN LENGTH(body) \
                 ELSE LENGTH(CAST(body AS blob)) END"
            }
        }
    }

    /// Returns an insert that does nothing if the key is taken. Columns have no blanks.
    pub(crate) fn insert_new(self, table: &str, columns: &str) -> String {
        let holes = vec!["?"; columns.split(',').count()].join(", ");
        match self {
            Self::MySql => format!("INSERT IGNORE INTO {table} ({columns}) VALUES ({holes})"),
            Self::Postgres | Self::Sqlite => {
                format!("INSERT INTO {table} ({columns}) VALUES ({holes}) ON CONFLICT DO NOTHING")
            }
        }
    }

    /// Returns an insert that changes nothing if the key is taken, and after which the transaction
    /// may change the row. The first column is the key; columns have no blanks.
    ///
    /// In MySQL, `INSERT IGNORE` takes a shared lock of a row that exists, so two transactions that
    /// both want to change it afterwards would wait for each other.
    pub(crate) fn insert_or_lock(self, table: &str, columns: &str) -> String {
        if self != Self::MySql {
            return self.insert_new(table, columns);
        }
        let key = columns.split(',').next().unwrap_or_default();
        let holes = vec!["?"; columns.split(',').count()].join(", ");
        format!(
            "INSERT INTO {table} ({columns}) VALUES ({holes}) ON DUPLICATE KEY UPDATE {key} = {key}"
        )
    }

    /// Returns what locks the rows of a `SELECT` until the end of the transaction. In SQLite the
    /// transaction has locked the whole database.
    pub(crate) const fn for_update(self) -> &'static str {
        match self {
            Self::Postgres | Self::MySql => " FOR UPDATE",
            Self::Sqlite => "",
        }
    }

    /// Returns what keeps others from changing the rows of a `SELECT`.
    pub(crate) const fn for_share(self) -> &'static str {
        match self {
            Self::Postgres => " FOR SHARE",
            // MariaDB does not know `FOR SHARE`.
            Self::MySql => " LOCK IN SHARE MODE",
            Self::Sqlite => "",
        }
    }

    /// Returns the beginning of a transaction that writes. In SQLite, one that reads first could
    /// not write after another has written.
    pub(crate) const fn begin(self) -> &'static str {
        match self {
            Self::Postgres | Self::MySql => "BEGIN",
            Self::Sqlite => "BEGIN IMMEDIATE",
        }
    }

    /// Returns the beginning of a transaction with a mark. The mark is gone once the database has
    /// ended the transaction for whatever reason. In PostgreSQL a savepoint would cost a number of
    /// its own.
    pub(crate) const fn begin_marked(self) -> &'static str {
        match self {
            Self::Postgres => "BEGIN; SET LOCAL optimus.transaction = 'open'",
            Self::MySql => "BEGIN; SAVEPOINT optimus_open",
            Self::Sqlite => "BEGIN IMMEDIATE; SAVEPOINT optimus_open",
        }
    }

    /// Returns the same, with a limit of 60 s for how long the transaction may stand still. Without
    /// it, a process that is frozen would keep its locks.
    pub(crate) const fn begin_limited(self) -> &'static str {
        match self {
            Self::Postgres => {
                "BEGIN; SET LOCAL optimus.transaction = 'open'; \
                 SET LOCAL idle_in_transaction_session_timeout = '60s'"
            }
            // MySQL has no limit for a transaction, so the session has it meanwhile.
            Self::MySql => {
                "SET @optimus_wait = \
                 CAST(COALESCE(@optimus_wait, @@SESSION.wait_timeout) AS UNSIGNED); \
                 SET SESSION wait_timeout = 60; BEGIN; SAVEPOINT optimus_open"
            }
            Self::Sqlite => "BEGIN IMMEDIATE; SAVEPOINT optimus_open",
        }
    }

    /// Returns what gives a session its own limit back.
    pub(crate) const fn lift_limit(self) -> Option<&'static str> {
        match self {
            Self::MySql => Some("SET SESSION wait_timeout = @optimus_wait"),
            Self::Postgres | Self::Sqlite => None,
        }
    }

    /// Returns the statement that fails, or reads another value than `open`, if the mark is gone.
    pub(crate) const fn read_mark(self) -> &'static str {
        match self {
            Self::Postgres => "SELECT current_setting('optimus.transaction', true)",
            Self::MySql | Self::Sqlite => "RELEASE SAVEPOINT optimus_open",
        }
    }

    /// Returns the statement that deletes the rows with these numbers.
    pub(crate) fn delete_each(self, table: &str, column: &str, numbers: &[i64]) -> Statement {
        if self != Self::MySql {
            let delete = Statement::new(format!("DELETE FROM {table} WHERE "));
            return self.one_of(delete, column, numbers);
        }
        // With `IN`, MySQL reads the whole of a small table, and waits for each row that an open
        // transaction has.
        let delete = format!(
            "DELETE o FROM JSON_TABLE(?, '$[*]' COLUMNS (n BIGINT PATH '$')) AS listed \
             STRAIGHT_JOIN {table} AS o FORCE INDEX (PRIMARY) ON o.{column} = listed.n"
        );
        Statement::new(delete).with(format!("[{}]", joined(numbers)))
    }

    /// Adds a condition that a column is none of these numbers.
    pub(crate) fn none_of(self, statement: Statement, column: &str, numbers: &[i64]) -> Statement {
        if numbers.is_empty() {
            return statement;
        }
        let list = joined(numbers);
        // PostgreSQL and SQLite make a table with an index of the list, once for the statement.
        let (list, listed) = match self {
            Self::Postgres => (list, "unnest(string_to_array(?, ',')::bigint[])"),
            Self::Sqlite => (format!("[{list}]"), "value FROM json_each(?)"),
            // Each list is another text, so no prepared statement is kept.
            Self::MySql => {
                return statement.add(&format!(" AND {column} NOT IN ({list})")).once_only();
            }
        };
        statement.add(&format!(" AND {column} NOT IN (SELECT {listed})")).with(list)
    }

    /// Returns the number of a transaction; all those with lower numbers have ended before the
    /// statement reads. 0 if the database has no snapshots that show it.
    pub(crate) const fn ended_below(self) -> &'static str {
        match self {
            Self::Postgres => "(SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint)",
            Self::MySql | Self::Sqlite => "0",
        }
    }

    /// Adds a condition that a column is one of these numbers.
    pub(crate) fn one_of(self, statement: Statement, column: &str, numbers: &[i64]) -> Statement {
        let list = joined(numbers);
        match self {
            Self::Postgres => {
                let text = format!("{column} = ANY(string_to_array(?, ',')::bigint[])");
                statement.add(&text).with(list)
            }
            Self::Sqlite => {
                let text = format!("{column} IN (SELECT value FROM json_each(?))");
                statement.add(&text).with(format!("[{list}]"))
            }
            // Each list is another text, so no prepared statement is kept.
            Self::MySql => statement.add(&format!("{column} IN ({list})")).once_only(),
        }
    }
}

pub(crate) fn joined(numbers: &[i64]) -> String {
    numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_insert_of_a_row_has_three_parameters_in_each_dialect() {
        assert_eq!(Dialect::Postgres.insert().matches('$').count(), 3);
        for dialect in [Dialect::MySql, Dialect::Sqlite] {
            assert_eq!(dialect.insert().matches('?').count(), 3);
        }
    }

    #[test]
    fn numbers_and_texts_are_parameters_where_the_statement_is_kept() {
        let of = |dialect: Dialect| {
            let statement = dialect.one_of(Statement::new("x WHERE "), "seq", &[3, 9]);
            statement.none_of("queue", &["a", "b"])
        };
        let postgres = of(Dialect::Postgres);
        assert_eq!(
            postgres.text(Dialect::Postgres),
            "x WHERE seq = ANY(string_to_array($1, ',')::bigint[]) AND queue NOT IN ($2, $3)"
        );
        assert_eq!(postgres.values.len(), 3);
        assert!(postgres.is_kept);
        let mysql = of(Dialect::MySql);
        let text = "x WHERE seq IN (3,9) AND queue NOT IN (?, ?)";
        assert_eq!(mysql.text(Dialect::MySql), text);
        assert!(!mysql.is_kept);
    }
}
