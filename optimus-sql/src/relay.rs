//! Submits the calls of the outbox to Redis: [`Relay`].

use optimus_core::{Client, Durability, log_event};
use sqlx::Pool;
use tokio::{
    task::JoinHandle,
    time::{Instant, timeout},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use std::time::Duration;

use crate::{
    Error, OutboxDb,
    pace::Pace,
    push::Pusher,
    stream::Stream,
    turn::{STANDBY, Turn, Turner},
    wakeup,
};

/// How long a relay that stops may take for its last turn.
const STOPS_WITHIN: Duration = Duration::from_secs(10);
/// How often a failure that lasts is logged.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Submits the calls that transactions have stored, each exactly once. A call that is stored after
/// the commit of another is submitted after it; calls of transactions that overlap have no order.
///
/// Run it in the application, or beside a worker. Any number of relays may run on one database:
/// one works, and another takes over within half a second if that one is gone. One that is frozen
/// within its transaction (a few milliseconds of a turn) keeps the outbox for 5 s; then PostgreSQL
/// or MySQL ends that transaction. The relays that wait log this. SQLite has no such limit: a
/// process that is frozen there keeps the lock of the whole database.
///
/// ```no_run
/// # async fn start(pool: sqlx::SqlitePool) -> Result<(), Box<dyn std::error::Error>> {
/// use optimus_core::Client;
/// use optimus_sql::Relay;
///
/// let client = Client::from_env()?.connect().await?;
/// let relay = Relay::new(&pool, &client).start().await?;
/// // … until the program ends:
/// relay.stop().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a relay does nothing until it is started"]
pub struct Relay<DB: OutboxDb> {
    pool: Pool<DB>,
    client: Client,
    durability: Durability,
}

/// A relay that runs. If it is dropped, it stops after its turn.
#[derive(Debug)]
pub struct RunningRelay {
    ended: JoinHandle<()>,
    stop: CancellationToken,
    _stops: DropGuard,
}

impl<DB: OutboxDb> Relay<DB> {
    /// Makes a relay from a database to the store of a client. It takes one connection out of the
    /// pool for itself.
    pub fn new(pool: &Pool<DB>, client: &Client) -> Self {
        let durability = Durability::Memory;
        Self { pool: pool.clone(), client: client.clone(), durability }
    }

    /// Sets what Redis must confirm before a call is deleted from the database. If Redis may lose
    /// writes, as in a failover, calls that were not confirmed are sent again. The default is
    /// [`Durability::Memory`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Starts the relay on the current runtime. From then on it goes on through all failures of
    /// the database and of Redis.
    ///
    /// # Errors
    /// [`Error::Database`] if the database can't be reached, [`Error::NoTables`] before
    /// [`migrate`](crate::migrate). [`Error::Task`] if Redis can't confirm writes as required.
    pub async fn start(self) -> Result<RunningRelay, Error> {
        let Self { pool, client, durability } = self;
        let ready = async { Stream::open(&pool).await?.has_rows(0, &[]).await };
        ready.await.map_err(Error::at_start)?;
        let pusher = Pusher::new(client, durability);
        pusher.broker().try_confirm(durability).await.map_err(optimus_core::Error::from)?;
        let stop = CancellationToken::new();
        let turner = Turner::new(pool, pusher);
        let ended = tokio::spawn(carry(turner, stop.clone()));
        Ok(RunningRelay { ended, _stops: stop.clone().drop_guard(), stop })
    }

    /// Starts the relay and runs until the future is dropped.
    ///
    /// # Errors
    /// The errors of [`start`](Self::start).
    pub async fn run(self) -> Result<(), Error> {
        let running = self.start().await?;
        let RunningRelay { ended, _stops, .. } = running;
        drop(ended.await);
        Ok(())
    }
}

impl RunningRelay {
    /// Ends the relay after its turn, at most 10 s later. Calls that are left stay in the database.
    pub async fn stop(self) {
        self.stop.cancel();
        let Self { mut ended, .. } = self;
        if timeout(STOPS_WITHIN, &mut ended).await.is_err() {
            ended.abort();
        }
    }
}

/// Takes turns until it is stopped. No turn is cut short.
async fn carry<DB: OutboxDb>(mut turner: Turner<DB>, stop: CancellationToken) {
    let (mut pace, mut stored) = (Pace::new(), wakeup::listen());
    let mut logged: Option<Instant> = None;
    while !stop.is_cancelled() {
        let turn = turner.turn().await;
        let log = turner.pusher().broker().log().clone();
        let wait = match turn {
            Ok(Turn::Worked) => {
                logged = None;
                pace.wake();
                continue;
            }
            Ok(Turn::NewEpoch) => {
                let text = "Redis has had later calls than this database: the database was \
                            restored or copied. Its calls are submitted again; those that were \
                            done already run twice";
                log_event!(log, WARN, "{text}");
                continue;
            }
            Ok(Turn::Idle) => pace.idle(),
            Ok(Turn::Standby) => STANDBY,
            Ok(Turn::Stuck(why)) => {
                if logged.is_none_or(|at| at.elapsed() >= LOG_EVERY) {
                    logged = Some(Instant::now());
                    log_event!(log, WARN, error = %why, "calls wait in the outbox");
                }
                pace.failed()
            }
            Err(problem) => {
                if logged.is_none_or(|at| at.elapsed() >= LOG_EVERY) {
                    logged = Some(Instant::now());
                    log_event!(log, WARN, error = %problem, "the outbox can't be read");
                }
                pace.failed()
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            Ok(()) = stored.changed() => pace.wake(),
            () = tokio::time::sleep(wait) => {}
        }
    }
}
