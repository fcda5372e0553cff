//! The error of this crate: [`Error`].

use std::fmt;

use optimus_core::Snooze;
use sqlx::error::DatabaseError;

use crate::once_wait::SNOOZE;

/// Why something in a database was not done. `Debug` prints the same text as `Display`, because
/// `main` prints a returned error with it. An error whose text has that of the database is no
/// source of that: what prints all sources would print it twice. It is in the variant.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The database refused or did not answer. If this is the error of a commit, the transaction
    /// may be committed or not. A transaction that has stood still for 60 s within
    /// [`once`](crate::Once::once) or a [guard](crate::Guard::guard), or for 30 s under the
    /// [guard of a shard](crate::ShardGuard::guard), was ended by the database: then its next
    /// statement finds a broken connection.
    #[error("the database: {0}")]
    Database(sqlx::Error),
    /// The tables of this crate are not there. [`migrate`](crate::migrate) creates them, or the
    /// statements of [`Dialect::migration`](crate::Dialect::migration).
    #[error("the tables of optimus_sql are missing; run optimus_sql::migrate first: {0}")]
    NoTables(sqlx::Error),
    /// Relays of another namespace send the calls of this database: a database has one outbox. If
    /// the program has moved to this namespace, or if the database is a copy, delete the row: the
    /// next relay makes the outbox its own.
    #[error(
        "the outbox of this database belongs to the namespace {known:?}, and this relay is of \
         {own:?}: use another database or schema; if the program has moved, or the database is a \
         copy, run: DELETE FROM optimus_stream WHERE name = 'namespace'"
    )]
    OtherNamespace {
        /// The namespace to which the outbox belongs.
        known: String,
        /// The namespace of the relay.
        own: String,
    },
    /// A body has moved its transaction elsewhere, so it is rolled back.
    #[error("the body has kept its transaction, so it is not committed; drop it in the body")]
    TakenOut,
    /// The transaction was over before its commit. The database has rolled it back after an error
    /// that the body has passed over, such as a deadlock in MySQL, or any error in PostgreSQL. Or
    /// a statement has committed it, such as `CREATE TABLE` in MySQL. Nothing is committed then,
    /// but what the body did in MySQL after that statement. So a body returns the first error of
    /// its database.
    #[error(
        "the database has ended the transaction before its commit: let the body return the first \
         error of the database, and run no statement in it that commits by itself"
    )]
    Ended,
    /// A call can't be submitted, or Redis did not answer.
    #[error(transparent)]
    Task(#[from] optimus_core::Error),
    /// A later attempt has passed this guard, or the marker of this attempt may be purged. The
    /// attempt is no longer the one that holds its task, so nothing of it may be applied.
    #[error(
        "fence {fence} is too low for {name:?}, which has seen {seen}: a later attempt, or a \
         later task with the same key, has taken over, so this one must stop"
    )]
    Stale {
        /// The key of the guard, or the queue of the task.
        name: String,
        /// The fence of this attempt.
        fence: u64,
        /// The highest fence so far.
        seen: u64,
    },
    /// This attempt has run [`once`](crate::Once::once) under the same name already. A second one
    /// would find the first one's marker and run nothing.
    #[error(
        "this attempt has run `once` in this database already under the name {part:?}, so this \
         transaction would not run: give each one of a handler a name with `once_part`"
    )]
    SamePart {
        /// The name; empty for `once`.
        part: String,
    },
    /// An earlier attempt of this task is still in the body of [`once`](crate::Once::once), such as
    /// one whose process is frozen. In SQLite, it may be any other transaction that writes. A
    /// handler that returns this error snoozes, as with its source: the task runs again after 5 s,
    /// which uses no retry.
    #[error("{what}; this attempt looks again in {} s", SNOOZE.as_secs())]
    Waits {
        /// What it waits for.
        what: &'static str,
        /// The word that the worker finds.
        source: Snooze,
    },
    /// A statement of an earlier attempt has committed its transaction of `once`, such as
    /// `CREATE TABLE` in MySQL. So what it did before that statement is applied, and its output is
    /// not known. Delete the marker in `optimus_once` to let the task run again.
    #[error(
        "an earlier attempt has committed a part of its transaction, so it is not known what is \
         applied: run no statement in `once` that commits by itself, and delete the marker in \
         optimus_once once its effects are undone"
    )]
    NoOutput,
    /// An output of `once` is no JSON that reads back as the same value, such as `Some(())` or a
    /// number that is not finite; then nothing is applied. Or the output that an earlier attempt
    /// has stored is none of this type; then the effects of that attempt are applied.
    #[error("the output of `once` does not fit its type: {0}")]
    Output(serde_json::Error),
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// Returns this error as one of a worker that does not start, because this service can't.
    pub(crate) fn into_task_error(self, service: &str) -> optimus_core::Error {
        let text = match &self {
            Self::Database(sqlx::Error::PoolTimedOut) => {
                "all connections of the pool are in use; give it more, or start the worker before \
                 what holds them"
                    .to_owned()
            }
            other => other.to_string(),
        };
        let text = format!("{service} can't start: {text}");
        match self {
            Self::Task(problem) => problem,
            Self::Database(problem) if !refuses_the_user(&problem) => {
                optimus_core::Error::unavailable("the database", text)
            }
            _ => optimus_core::Error::invalid(text),
        }
    }

    /// Returns the error of a statement that only an open transaction with a mark accepts.
    pub(crate) fn of_mark(problem: sqlx::Error) -> Self {
        let is_ended = problem.as_database_error().is_some_and(|refused| {
            // In PostgreSQL a transaction that has failed; in the others the savepoint is gone.
            refused.code().as_deref() == Some("25P02") || refused.message().contains("optimus_")
        });
        if is_ended { Self::Ended } else { Self::Database(problem) }
    }

    /// Returns whether a later attempt has taken over.
    pub fn is_stale(&self) -> bool {
        matches!(self, Self::Stale { .. })
    }
}

/// Returns whether the database refuses the user, or does not have what the URL names. Somebody has
/// to change a setting then.
fn refuses_the_user(problem: &sqlx::Error) -> bool {
    // The classes of SQLSTATE: no valid authorization, no such database, no access.
    let classes = ["28", "3D", "42"];
    let code = problem.as_database_error().and_then(DatabaseError::code);
    code.is_some_and(|code| classes.iter().any(|class| code.starts_with(class)))
}

impl From<serde_json::Error> for Error {
    fn from(problem: serde_json::Error) -> Self {
        Self::Output(problem)
    }
}

impl From<sqlx::Error> for Error {
    fn from(problem: sqlx::Error) -> Self {
        let is_ours = |refused: &dyn DatabaseError| {
            let (code, text) = (refused.code(), refused.message());
            // The code of SQLite is that of any error.
            let is_missing = matches!(code.as_deref(), Some("42P01" | "42S02"))
                || text.starts_with("no such table");
            is_missing && text.contains("optimus_")
        };
        if problem.as_database_error().is_some_and(is_ours) {
            return Self::NoTables(problem);
        }
        Self::Database(problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_main_that_returns_the_error_prints_what_to_do() {
        let problem = Error::NoTables(sqlx::Error::RowNotFound);
        assert!(format!("{problem:?}").contains("run optimus_sql::migrate first"), "{problem:?}");
    }

    #[test]
    fn the_text_of_the_database_is_not_printed_a_second_time_as_a_source() {
        let text = || sqlx::Error::Protocol("refused".to_owned());
        for problem in [Error::Database(text()), Error::NoTables(text())] {
            assert!(problem.to_string().contains("refused"), "{problem}");
            assert!(std::error::Error::source(&problem).is_none(), "{problem}");
        }
    }
}
