//! Says that calls wait and no relay sends them: [`look_after_commit`], [`Hint`].
//!
//! A program that only stores calls works well without a relay, and its tasks never run. So it
//! looks into the outbox from time to time: after a commit, in the background, with a connection
//! that nobody else wants.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use optimus_core::{log::Log, log_event};
use sqlx::Pool;
use tokio::time::{Instant, sleep};

use crate::{
    OutboxDb,
    patience::within,
    statement::{Kind, Statement, Value},
    wakeup,
};

/// How often a program looks into an outbox at most.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// How long a call has waited when this is said.
const WAITED: Duration = Duration::from_secs(60);
/// The first read comes so long after the commit. The connection is back in its pool by then, and
/// most relays have sent the calls.
const FIRST_AFTER: Duration = Duration::from_secs(1);
/// A relay that runs sends the oldest call within this time, however many there are.
const SENDS_WITHIN: Duration = Duration::from_secs(3);
/// A database that refuses the read is asked so often.
const REFUSED_EVERY: Duration = Duration::from_secs(60 * 60);
/// How long the database may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// How many rows are read, of which the first ones may be parked.
const ROWS: usize = 100;
/// How many databases are remembered.
const DATABASES_MAX: usize = 64;

const UNSENT: &str = "calls wait in the outbox, and no relay sends them: start a `Relay` in a \
                      program, or a worker with `.outbox(&pool)`; a relay that runs logs why it \
                      does not send them";
const NO_OWN_RELAY: &str = "this program stores calls in the outbox of a database and runs no \
                            relay; they wait until another program runs one: a `Relay`, or a \
                            worker with `.outbox(&pool)`";

/// When to look next, for each pool of connections.
static LOOKS: LazyLock<Mutex<HashMap<usize, Instant>>> = LazyLock::new(Mutex::default);

/// Looks whether calls wait that no relay sends, unless that was done lately. It returns at once.
/// The transaction that was the reason is committed.
pub(crate) fn look_after_commit<DB: OutboxDb>(pool: &Pool<DB>) {
    let key = Arc::as_ptr(&pool.connect_options()).addr();
    if !wakeup::has_stored() || !is_due(key, Instant::now()) {
        return;
    }
    let (pool, log) = (pool.clone(), Log::here());
    tokio::spawn(async move {
        let next = match look(&pool).await {
            Looked::Sent => LOOK_EVERY,
            Looked::Refused => REFUSED_EVERY,
            Looked::Unsent(oldest) => {
                let (database, oldest_s) = (DB::NAME, oldest.as_secs());
                log_event!(log, WARN, database, oldest_s, "{UNSENT}");
                LOOK_EVERY
            }
        };
        set_next(key, Instant::now() + next);
    });
}

/// Returns whether to look now. The one who asks looks, and others do not meanwhile.
fn is_due(key: usize, now: Instant) -> bool {
    let mut looks = LOOKS.lock().unwrap_or_else(PoisonError::into_inner);
    if looks.get(&key).is_some_and(|next| now < *next) {
        return false;
    }
    if looks.len() >= DATABASES_MAX {
        looks.clear();
    }
    looks.insert(key, now + LOOK_EVERY + WAITED);
    true
}

fn set_next(key: usize, next: Instant) {
    LOOKS.lock().unwrap_or_else(PoisonError::into_inner).insert(key, next);
}

/// What a look has found.
#[derive(Debug, PartialEq)]
enum Looked {
    /// Nothing waits for long, as far as this is known: all connections may be in use.
    Sent,
    /// The oldest call has waited for this time, and was not sent while this looked.
    Unsent(Duration),
    Refused,
}

async fn look<DB: OutboxDb>(pool: &Pool<DB>) -> Looked {
    sleep(FIRST_AFTER).await;
    match oldest(pool).await {
        Ok(Some(first)) => {
            sleep(WAITED.saturating_sub(first.age).max(SENDS_WITHIN)).await;
            look_again(pool, &first).await
        }
        Ok(None) => Looked::Sent,
        Err(_) => Looked::Refused,
    }
}

/// Looks whether the call that was the oldest one is still there.
async fn look_again<DB: OutboxDb>(pool: &Pool<DB>, first: &Oldest) -> Looked {
    match oldest(pool).await {
        Ok(Some(again)) if again.seq == first.seq => Looked::Unsent(again.age),
        Ok(_) => Looked::Sent,
        Err(_) => Looked::Refused,
    }
}

/// The first row that a relay would send.
struct Oldest {
    seq: i64,
    age: Duration,
}

/// Reads the oldest row, if a connection is idle that nobody waits for.
async fn oldest<DB: OutboxDb>(pool: &Pool<DB>) -> Result<Option<Oldest>, sqlx::Error> {
    let Some(mut connection) = pool.try_acquire() else { return Ok(None) };
    let age = DB::DIALECT.age_ms();
    // A condition on `parked_ms` would let PostgreSQL sort the whole table.
    let select =
        format!("SELECT seq, {age}, parked_ms FROM optimus_outbox ORDER BY seq LIMIT {ROWS}");
    let select = Statement::new(select).once_only();
    let kinds = &[Kind::Int, Kind::Int, Kind::Int];
    let rows = match within::<DB, _>(ANSWER_WITHIN, DB::read(&mut connection, select, kinds)).await
    {
        Ok(rows) => rows,
        Err(problem @ sqlx::Error::Io(_)) => {
            // The answer may still come, so nobody else can have this connection.
            drop(connection.detach());
            return Err(problem);
        }
        Err(problem) => return Err(problem),
    };
    let first = rows.into_iter().find(|row| row[2] == Value::Null);
    Ok(first.map(|row| Oldest {
        seq: row[0].int(),
        age: Duration::from_millis(u64::try_from(row[1].int()).unwrap_or(0)),
    }))
}

/// Says once that this program runs no relay. It may store calls in transactions of which only the
/// user knows the pool, so nothing else is known.
#[derive(Debug, Default)]
pub(crate) struct Hint {
    first: OnceLock<Instant>,
    told: OnceLock<()>,
}

impl Hint {
    /// Returns whether a call was ever stored.
    pub(crate) fn has_stored(&self) -> bool {
        self.first.get().is_some()
    }

    /// Notes that a call was stored while so many relays run in this process.
    pub(crate) fn stored(&self, relays: usize) {
        if self.is_due(relays, Instant::now()) {
            log_event!(Log::here(), INFO, "{NO_OWN_RELAY}");
        }
    }

    fn is_due(&self, relays: usize, now: Instant) -> bool {
        let first = *self.first.get_or_init(|| now);
        relays == 0 && now >= first + WAITED && self.told.set(()).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_runs_no_relay_says_so_once_after_a_minute() {
        let (hint, start) = (Hint::default(), Instant::now());
        assert!(!hint.is_due(0, start), "a relay may start with the program");
        assert!(!hint.is_due(1, start + WAITED), "it runs one");
        assert!(hint.is_due(0, start + WAITED));
        assert!(!hint.is_due(0, start + 2 * WAITED), "it has said so");
    }

    #[test]
    fn an_outbox_is_looked_at_by_one_at_a_time_and_seldom() {
        let (key, other, start) = (usize::MAX, usize::MAX - 1, Instant::now());
        assert!(is_due(key, start));
        assert!(!is_due(key, start + LOOK_EVERY), "it is still looked at");
        assert!(is_due(other, start), "that is another one");
        set_next(key, start + LOOK_EVERY);
        assert!(is_due(key, start + LOOK_EVERY));
    }
}

#[cfg(feature = "sqlite")]
#[cfg(test)]
mod look_tests {
    use sqlx::{Sqlite, pool::PoolOptions};

    use super::*;

    const STORE: &str = "INSERT INTO optimus_outbox (queue, id, body) VALUES ('a', 'b', 'c')";

    async fn outbox() -> Pool<Sqlite> {
        let pool = PoolOptions::new().max_connections(1).connect("sqlite::memory:").await.unwrap();
        crate::migrate(&pool).await.unwrap();
        pool
    }

    /// Runs a statement. Its connection is back in the pool afterwards.
    async fn run(pool: &Pool<Sqlite>, sql: &'static str) {
        Sqlite::run_plain(&mut pool.acquire().await.unwrap(), sql).await.unwrap();
        while pool.num_idle() == 0 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_call_that_nobody_sends_is_found() {
        let pool = outbox().await;
        run(&pool, STORE).await;
        run(&pool, "UPDATE optimus_outbox SET at_ms = at_ms - 90000").await;
        let first = oldest(&pool).await.unwrap().unwrap();
        run(&pool, STORE).await;
        let Looked::Unsent(age) = look_again(&pool, &first).await else { panic!("it is there") };
        assert!(age >= Duration::from_secs(89), "{age:?}");
    }

    #[tokio::test]
    async fn calls_that_are_sent_while_others_come_are_not_told() {
        let pool = outbox().await;
        run(&pool, STORE).await;
        let first = oldest(&pool).await.unwrap().unwrap();
        run(&pool, STORE).await;
        run(&pool, "DELETE FROM optimus_outbox WHERE seq = 1").await;
        assert_eq!(look_again(&pool, &first).await, Looked::Sent);
    }

    #[tokio::test]
    async fn calls_that_are_put_aside_do_not_wait_for_a_relay() {
        let pool = outbox().await;
        run(&pool, STORE).await;
        run(&pool, "UPDATE optimus_outbox SET parked_ms = 1").await;
        assert!(oldest(&pool).await.unwrap().is_none());
        run(&pool, STORE).await;
        assert_eq!(oldest(&pool).await.unwrap().unwrap().seq, 2);
    }

    #[tokio::test]
    async fn a_look_takes_no_connection_that_the_program_uses() {
        let pool = outbox().await;
        run(&pool, STORE).await;
        let used = pool.acquire().await.unwrap();
        assert!(oldest(&pool).await.unwrap().is_none(), "it has looked at nothing");
        drop(used);
    }
}
