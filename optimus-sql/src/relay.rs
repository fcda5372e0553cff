//! Submits the calls of the outbox to Redis: [`Relay`].

use std::{mem, panic::AssertUnwindSafe, pin::pin, time::Duration};

use futures_util::FutureExt;
use optimus_core::{Client, Durability, log_event, panic_sentence};
use sqlx::Pool;
use tokio::{
    task::JoinHandle,
    time::{Instant, timeout},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    Error, OutboxDb,
    duty::{Duty, Member},
    link::cause,
    noted::Noted,
    pace::Pace,
    patience::Patience,
    push::Pusher,
    stream::Stream,
    turn::{Turn, Turner},
    wakeup,
    whole::whole,
};

/// How long a relay that stops may take for its last turn.
const STOPS_WITHIN: Duration = Duration::from_secs(10);
/// How long a relay that stops submits what is committed already.
const DRAINS_FOR: Duration = Duration::from_secs(1);
/// How long a relay waits for its database at its start before it says so.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often a failure that lasts is logged.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Submits the calls that transactions have stored, each exactly once. A call that is stored after
/// the commit of another is submitted after it; calls of transactions that overlap have no order.
///
/// Run it in the application, or in a worker: see [`Outbox`](crate::Outbox). Any number of relays
/// may run on one database: one works, and the others look every second or two whether it goes on.
/// All of them must lead to the same Redis and the same namespace, because a database has one
/// outbox: it belongs to the namespace of its first relay, and relays of others are refused.
///
/// A relay that is frozen keeps no lock of PostgreSQL or MySQL, because its transaction is one
/// packet. Only if it puts rows aside at that moment, it keeps the outbox for 5 s; then the
/// database ends that transaction. The relays that wait log this. SQLite has no such limit: a
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
    /// Makes a relay from a database to the store of a client.
    ///
    /// It has one connection of its own, which does not count in `max_connections` of the pool. So
    /// it takes nothing from the application, also if the pool has a single connection. If an
    /// SQLite database is in memory, it is lost with its connection. Then the relay takes a
    /// connection of the pool for each statement and for its transactions of milliseconds.
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
    /// [`migrate`](crate::migrate), [`Error::OtherNamespace`] if relays of another namespace send
    /// the calls of this database. [`Error::Task`] if Redis can't confirm writes as required.
    pub async fn start(self) -> Result<RunningRelay, Error> {
        let ready = self.prepare().await?;
        let stop = CancellationToken::new();
        let ended = tokio::spawn(ready.carry(stop.clone()));
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

    /// Checks that the relay can run.
    pub(crate) async fn prepare(self) -> Result<ReadyRelay<DB>, Error> {
        let Self { pool, client, durability } = self;
        let noted = whole(first_look(pool.clone(), client.clone())).await?;
        let member = Member::new(&client, &noted.epoch);
        let pusher = Pusher::new(client, durability);
        pusher.broker().try_confirm(durability).await.map_err(optimus_core::Error::from)?;
        Ok(ReadyRelay { turner: Turner::new(pool, pusher), member })
    }
}

/// Reads what is noted. Logs if the database lets a relay wait. It is a task of its own: if a
/// future that waits for a pool is dropped, sqlx may close the connection, and a database in memory
/// is lost with it.
async fn first_look<DB: OutboxDb>(pool: Pool<DB>, client: Client) -> Result<Noted, Error> {
    let mut read = pin!(async {
        let mut stream =
            Stream::open(&pool, client.broker().namespace(), Patience::default().limit()).await?;
        stream.has_rows(0, &[]).await?;
        stream.noted().await
    });
    let read = if let Ok(read) = timeout(PATIENCE, &mut read).await {
        read
    } else {
        let (log, database) = (client.broker().log(), DB::NAME);
        log_event!(log, WARN, database, "the relay of the outbox waits for its database");
        read.await
    };
    match read {
        Ok(noted) => Ok(noted),
        Err(problem) => Err(cause(&pool, problem).await),
    }
}

impl RunningRelay {
    /// Ends the relay, at most 10 s later: it submits what is committed already, for at most a
    /// second, and ends its turn. Calls that are left stay in the database.
    pub async fn stop(self) {
        self.stop.cancel();
        let Self { mut ended, .. } = self;
        if timeout(STOPS_WITHIN, &mut ended).await.is_err() {
            ended.abort();
        }
    }
}

/// A relay that can run.
pub(crate) struct ReadyRelay<DB: OutboxDb> {
    turner: Turner<DB>,
    member: Option<Member>,
}

impl<DB: OutboxDb> ReadyRelay<DB> {
    /// Carries calls until it is stopped.
    pub(crate) async fn carry(self, stop: CancellationToken) {
        let Self { mut turner, member } = self;
        let (log, duty) = (turner.pusher().broker().log().clone(), Duty::default());
        let database = DB::NAME;
        log_event!(log, INFO, database, "the relay of the outbox has started");
        let keep = async {
            if let Some(member) = member {
                duty.keep(member, &stop).await;
            }
        };
        let turns = async {
            take_turns(&mut turner, Pace::new(duty.clone()), &stop).await;
            drain(&mut turner).await;
        };
        tokio::join!(keep, turns);
        log_event!(log, INFO, database, "the relay of the outbox has ended");
    }
}

/// Takes turns until it is stopped. No turn is cut short.
async fn take_turns<DB: OutboxDb>(
    turner: &mut Turner<DB>,
    mut pace: Pace,
    stop: &CancellationToken,
) {
    let log = turner.pusher().broker().log().clone();
    let (mut stored, mut logged) = (wakeup::listen(), None::<Instant>);
    while !stop.is_cancelled() {
        let outcome = turn(turner).await;
        // The relay that works looks for what follows by itself.
        let hears = !matches!(outcome, Ok(Turn::Standby));
        let wait = match outcome {
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
            Ok(Turn::Standby) => pace.standby(),
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
            Ok(()) = stored.changed(), if hears => pace.wake(),
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Submits what is committed already, such as what the last handlers of a worker have committed.
async fn drain<DB: OutboxDb>(turner: &mut Turner<DB>) {
    let began = Instant::now();
    while began.elapsed() < DRAINS_FOR && matches!(turn(turner).await, Ok(Turn::Worked)) {}
}

/// Takes a turn. Hooks of a pool of connections are user code, and may panic.
async fn turn<DB: OutboxDb>(turner: &mut Turner<DB>) -> Result<Turn, Error> {
    let outcome = AssertUnwindSafe(turner.turn()).catch_unwind().await;
    outcome.unwrap_or_else(|panic| {
        turner.forget();
        let text = format!("a turn of the relay {}", panic_sentence(&*panic));
        // Its drop may panic, too.
        mem::forget(panic);
        Err(optimus_core::Error::rejected(text).into())
    })
}
