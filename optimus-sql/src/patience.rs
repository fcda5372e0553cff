//! How long a relay waits for a statement of its database: [`Patience`].
//!
//! After a failover or behind a router that is gone, a connection may stay open without any answer.
//! Without a limit a relay would wait for it until TCP gives up, or forever.

use std::{io, time::Duration};

use tokio::time::timeout;

use crate::{Dialect, Error, OutboxDb};

/// The first limit. Another relay that is frozen may keep the lock for 5 s.
const SHORTEST: Duration = Duration::from_secs(15);
/// The last limit.
const LONGEST: Duration = Duration::from_secs(240);

/// The limit of a statement. Each time that it is passed, the next connection has twice the limit,
/// so a database that is only slow gets its turn in the end.
#[derive(Debug)]
pub(crate) struct Patience(Duration);

impl Default for Patience {
    fn default() -> Self {
        Self(SHORTEST)
    }
}

impl Patience {
    /// Returns the limit of each statement of a new connection.
    pub(crate) fn limit(&self) -> Duration {
        self.0
    }

    /// Learns from a turn that took so long.
    pub(crate) fn worked(&mut self, took: Duration) {
        if took < SHORTEST / 2 {
            self.0 = SHORTEST;
        }
    }

    /// Learns from a failure.
    pub(crate) fn failed(&mut self, problem: &Error) {
        if let Error::Database(sqlx::Error::Io(problem)) = problem
            && problem.kind() == io::ErrorKind::TimedOut
        {
            self.0 = (self.0 * 2).min(LONGEST);
        }
    }
}

/// Runs a statement on a connection that is dropped if this fails.
pub(crate) async fn within<DB: OutboxDb, T>(
    limit: Duration,
    statement: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    // SQLite has no network, and its `busy_timeout` may be longer.
    if DB::DIALECT == Dialect::Sqlite {
        return statement.await;
    }
    timeout(limit, statement).await.unwrap_or_else(|_| {
        let text = format!("it has not answered within {} s", limit.as_secs());
        Err(io::Error::new(io::ErrorKind::TimedOut, text).into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn too_late() -> Error {
        sqlx::Error::Io(io::ErrorKind::TimedOut.into()).into()
    }

    #[test]
    fn a_database_that_is_only_slow_gets_more_time_until_it_is_fast_again() {
        let mut patience = Patience::default();
        patience.failed(&too_late());
        patience.failed(&Error::Ended);
        assert_eq!(patience.limit(), 2 * SHORTEST);
        // A turn that took nearly as long needs the time again.
        patience.worked(SHORTEST);
        assert_eq!(patience.limit(), 2 * SHORTEST);
        patience.worked(SHORTEST / 4);
        assert_eq!(patience.limit(), SHORTEST);
    }

    #[test]
    fn the_time_is_limited() {
        let mut patience = Patience::default();
        (0..20).for_each(|_| patience.failed(&too_late()));
        assert_eq!(patience.limit(), LONGEST);
    }
}
