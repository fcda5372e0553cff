//! How an attempt waits for an earlier one of its task that is in its transaction of `once`:
//! [`Looks`].
//!
//! An earlier attempt whose process is frozen may stay there for a minute. A wait within the
//! database would be part of the later attempt, which would fail at its timeout, and it would keep
//! a connection of the pool. So a later attempt looks again and again, each time in a transaction
//! of its own, and snoozes if the earlier one takes longer than some seconds.

use std::time::Duration;

use optimus_core::{Context, Snooze};
use sqlx::error::DatabaseError;
use tokio::time::{Instant, sleep};

use crate::{Dialect, Error};

/// The longest time from the first look to the last one. Half of the time of the attempt is left
/// for the body.
const LOOKS_FOR: Duration = Duration::from_secs(5);
/// The first wait between two looks, and the longest.
const WAITS: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];
/// How long the task snoozes after the last look.
pub(crate) const SNOOZE: Duration = Duration::from_secs(5);

/// The looks of an attempt.
pub(crate) struct Looks {
    until: Instant,
    wait: Duration,
}

impl Looks {
    pub(crate) fn of(ctx: &Context) -> Self {
        Self { until: Instant::now() + LOOKS_FOR.min(ctx.remaining() / 2), wait: WAITS[0] }
    }

    /// Waits until the next look. After the last one, this returns the error of the attempt.
    pub(crate) async fn wait(&mut self, dialect: Dialect) -> Result<(), Error> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(waits(dialect));
        }
        sleep(self.wait.min(left)).await;
        self.wait = (2 * self.wait).min(WAITS[1]);
        Ok(())
    }
}

fn waits(dialect: Dialect) -> Error {
    let what = match dialect {
        Dialect::Postgres | Dialect::MySql => {
            "an earlier attempt of this task is still in its transaction of `once`"
        }
        // It has one lock for all that is written.
        Dialect::Sqlite => {
            "another transaction, such as that of an earlier attempt of this task, keeps the \
             database of `once` locked"
        }
    };
    Error::Waits { what, source: Snooze::new(SNOOZE) }
}

/// Returns whether another transaction keeps what a statement needs.
pub(crate) fn is_taken(dialect: Dialect, problem: &sqlx::Error) -> bool {
    let Some(refused) = problem.as_database_error() else { return false };
    match dialect {
        // Its statements do not wait.
        Dialect::Postgres => false,
        // `NOWAIT` in MySQL; in MariaDB, also the end of a wait.
        Dialect::MySql => [3572, 1205].contains(&number(refused)),
        // SQLITE_BUSY, and those that add a reason in the higher bytes.
        Dialect::Sqlite => {
            let code = refused.code().and_then(|code| code.parse::<i32>().ok());
            code.is_some_and(|code| code & 0xff == 5)
        }
    }
}

/// Returns the number of an error of MySQL, which gives many errors one code.
#[cfg(feature = "mysql")]
fn number(refused: &(dyn DatabaseError + 'static)) -> u16 {
    let refused = refused.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>();
    refused.map_or(0, sqlx::mysql::MySqlDatabaseError::number)
}

#[cfg(not(feature = "mysql"))]
fn number(_: &(dyn DatabaseError + 'static)) -> u16 {
    0
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use optimus_core::{Chain, Control};

    use super::*;

    #[test]
    fn a_handler_that_returns_the_error_snoozes_and_says_why() {
        for dialect in [Dialect::Postgres, Dialect::MySql, Dialect::Sqlite] {
            let problem = waits(dialect);
            assert_eq!(Control::of(&problem), Control::Snooze(SNOOZE), "{problem}");
            assert!(problem.source().is_some(), "{problem}");
            let logged = Chain(&problem).to_string();
            assert!(logged.contains("earlier attempt of this task"), "{logged}");
            assert!(logged.contains("looks again in 5 s"), "{logged}");
            let boxed: optimus_core::BoxError = problem.into();
            assert_eq!(Control::of(&*boxed), Control::Snooze(SNOOZE));
            let wrapped = std::io::Error::other(waits(dialect));
            assert_eq!(Control::of(&wrapped), Control::Snooze(SNOOZE));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn looks_become_rarer_and_end() {
        let (mut looks, began) =
            (Looks { until: Instant::now() + LOOKS_FOR, wait: WAITS[0] }, Instant::now());
        let mut at_ms = Vec::new();
        while looks.wait(Dialect::Postgres).await.is_ok() {
            at_ms.push(began.elapsed().as_millis());
        }
        assert_eq!(at_ms, [50, 150, 350, 750, 1_550, 2_550, 3_550, 4_550, 5_000]);
    }
}
