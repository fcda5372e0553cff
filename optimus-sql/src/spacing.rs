//! How long a relay that keeps up waits between two transactions: [`Spacing`].

use std::{collections::VecDeque, time::Duration};

use crate::Dialect;

/// The least time between two transactions. Calls that are committed meanwhile go together:
/// otherwise each would cost the database a transaction of the relay. A call waits at most so long,
/// and then for the read, the note and Redis. The first call after a quiet time does not wait.
const LEAST: Duration = Duration::from_millis(8);
/// The most of its time that a relay of many calls has a transaction in the database, as a divisor.
/// A database that is busy with the transactions of users takes longer for it, and then gets fewer
/// of them.
const SHARE: u32 = 8;
/// Only batches of so many calls wait longer: larger ones would save little otherwise.
const MANY: usize = 64;
/// The most time between two transactions.
const MOST: Duration = Duration::from_millis(50);
/// Of so many transactions, the one that took a middle time counts: a single one may take long for
/// other reasons.
const SAMPLES: usize = 5;

/// How long the last transactions of a relay took, the latest first.
#[derive(Debug, Default)]
pub(crate) struct Spacing(VecDeque<Duration>);

impl Spacing {
    /// Notes how long a transaction took.
    pub(crate) fn note(&mut self, took: Duration) {
        self.0.truncate(SAMPLES - 1);
        self.0.push_front(took);
    }

    /// Returns the time from the beginning of a transaction to that of the next, while so many
    /// calls are sent between them.
    pub(crate) fn time(&self, dialect: Dialect, calls: usize) -> Duration {
        match dialect {
            Dialect::Postgres | Dialect::MySql if calls >= MANY => {
                let mut took: Vec<Duration> = self.0.iter().copied().collect();
                took.sort_unstable();
                let middle = took.get(took.len() / 2).copied().unwrap_or_default();
                middle.saturating_mul(SHARE).clamp(LEAST, MOST)
            }
            // In SQLite it has mostly waited for the lock, which costs the database nothing.
            Dialect::Postgres | Dialect::MySql | Dialect::Sqlite => LEAST,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(took_ms: &[u64]) -> Spacing {
        let mut spacing = Spacing::default();
        for ms in took_ms {
            spacing.note(Duration::from_millis(*ms));
        }
        spacing
    }

    #[test]
    fn a_database_that_takes_long_gets_fewer_transactions_of_a_relay() {
        let time = |took_ms| after(took_ms).time(Dialect::MySql, MANY);
        assert_eq!(time(&[]), LEAST);
        assert_eq!(time(&[0, 0, 40, 1, 0]), LEAST, "a single one says nothing");
        assert_eq!(time(&[9, 9, 9, 0, 3, 2, 5, 4]), 3 * LEAST, "the last five count");
        assert_eq!(time(&[9, 9, 9]), MOST);
        assert_eq!(after(&[9, 9, 9]).time(Dialect::MySql, MANY - 1), LEAST, "few calls");
    }

    #[test]
    fn a_wait_for_the_lock_of_sqlite_is_no_work_of_the_database() {
        assert_eq!(after(&[3, 2, 5]).time(Dialect::Sqlite, MANY), LEAST);
    }
}
