//! One connection that reconnects indefinitely: [`Connection`].

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use redis::{Pipeline, Value};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::{
    BrokerError,
    endpoint::{Endpoint, Transport},
};
use crate::log::Log;

const RECONNECT_FIRST: Duration = Duration::from_millis(25);
const RECONNECT_MAX: Duration = Duration::from_secs(3);
/// An attempt that takes longer is replaced. The limits of its steps are shorter together.
const ATTEMPT_MAX: Duration = Duration::from_secs(30);

/// The kind of commands that a connection sends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Commands {
    /// Commands that Redis answers at once. If an answer does not arrive, the connection is broken.
    Immediate,
    /// Commands that wait on the server until something happens there.
    Blocking,
}

/// A connection that reconnects with a growing, jittered wait. It logs each change once.
#[derive(Clone)]
pub struct Connection(Arc<Inner>);

struct Inner {
    endpoint: Endpoint,
    role: &'static str,
    commands: Commands,
    log: Log,
    live: Mutex<Live>,
    /// Set while there is no connection, so that the end of an outage is logged once.
    down: AtomicBool,
    generation: AtomicU64,
    /// How many connections were dropped so far.
    breaks: AtomicU64,
}

#[derive(Default)]
struct Live {
    connection: Option<(u64, Transport)>,
    failures: u32,
    not_before: Option<Instant>,
    /// Why the server refused the last attempt, as it was logged.
    refused: Option<String>,
    /// The attempt that is in progress, from any caller, and when it began. It ends by itself, or
    /// when the last clone of the connection is dropped.
    attempt: Option<(Instant, Attempt)>,
}

type Attempt = Shared<BoxFuture<'static, Result<(u64, Transport), BrokerError>>>;

enum Found {
    Connection((u64, Transport)),
    Begun(Attempt),
    UnderWay(Attempt),
}

impl Connection {
    /// Makes a connection, which connects at its first use. `role` names it in the log.
    pub fn new(endpoint: Endpoint, role: &'static str, commands: Commands, log: Log) -> Self {
        Self(Arc::new(Inner {
            endpoint,
            role,
            commands,
            log,
            live: Mutex::default(),
            down: AtomicBool::new(false),
            generation: AtomicU64::new(0),
            breaks: AtomicU64::new(0),
        }))
    }

    /// Sends commands in one write and reads their answers, each of which may be an error. Also
    /// returns the number of the connection.
    ///
    /// With `only`, sends nothing and returns no answer if the connection has another number.
    pub(super) async fn request(
        &self,
        (pipeline, count): (&Pipeline, usize),
        within: Duration,
        only: Option<u64>,
    ) -> Result<(u64, Vec<Value>), BrokerError> {
        let (generation, mut connection) = self.connection(Instant::now() + within).await?;
        if only.is_some_and(|only| only != generation) {
            return Ok((generation, Vec::new()));
        }
        match connection.request(pipeline, count).await {
            Ok(values) if values.len() == count => Ok((generation, values)),
            Ok(values) => {
                self.forget(generation);
                Err(BrokerError::Unknown(format!("{} answers to {count} calls", values.len())))
            }
            Err(problem) => {
                self.forget(generation);
                Err(BrokerError::Unknown(format!(
                    "the connection broke before Redis answered ({problem})"
                )))
            }
        }
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.0.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the live connection, or makes a new one. Tries until `deadline`, and once if that
    /// has passed.
    ///
    /// User code may hold this future without polling it, or drop it. So the attempt runs as a
    /// separate task: the next caller waits for the attempt that this caller started.
    async fn connection(&self, deadline: Instant) -> Result<(u64, Transport), BrokerError> {
        loop {
            let not_before = self.live().not_before;
            if let Some(not_before) = not_before.filter(|at| *at > Instant::now()) {
                tokio::time::sleep_until(not_before.min(deadline)).await;
            }
            let made = match self.current_or_attempt() {
                Found::Connection(current) => return Ok(current),
                Found::Begun(attempt) => attempt.await,
                Found::UnderWay(attempt) => {
                    let late =
                        |_| BrokerError::NotDone("there is no connection to Redis yet".into());
                    tokio::time::timeout_at(deadline, attempt).await.map_err(late)?
                }
            };
            match made {
                Err(problem) if problem.is_transient() && Instant::now() < deadline => {}
                made => return made,
            }
        }
    }

    fn current_or_attempt(&self) -> Found {
        let mut live = self.live();
        match &live.connection {
            Some((_, transport)) if transport.is_retired() => {
                // What is under way over it ends by itself.
                live.connection = None;
                self.0.breaks.fetch_add(1, Ordering::AcqRel);
            }
            Some(current) => return Found::Connection(current.clone()),
            None => {}
        }
        // If its runtime has ended, the attempt is over, although it did not report that. If nobody
        // drives its runtime, it would be under way without end.
        let now = Instant::now();
        if let Some((begun, attempt)) = &live.attempt
            && attempt.peek().is_none()
            && now < *begun + ATTEMPT_MAX
        {
            return Found::UnderWay(attempt.clone());
        }
        let dialing = AbortOnDropHandle::new(tokio::spawn(dial(Arc::downgrade(&self.0))));
        let ended = |_| Err(over());
        let attempt = async move { dialing.await.unwrap_or_else(ended) }.boxed().shared();
        live.attempt = Some((now, attempt.clone()));
        Found::Begun(attempt)
    }

    fn came_up(&self, connection: Transport) -> (u64, Transport) {
        let current = (self.0.generation.fetch_add(1, Ordering::AcqRel) + 1, connection);
        *self.live() = Live { connection: Some(current.clone()), ..Live::default() };
        if self.0.down.swap(false, Ordering::AcqRel) {
            let (role, store) = (self.0.role, self.0.endpoint.describe());
            crate::log_event!(self.0.log, INFO, role, store, "connected again");
        }
        current
    }

    /// Notes that an attempt has failed, and sorts its error. The log has the first reason of an
    /// outage, and each other reason with which the server refuses this client: an operator has to
    /// do something about it.
    fn stayed_down(&self, problem: BrokerError) -> BrokerError {
        let refusal = problem.refuses_the_client().then(|| problem.to_string());
        let problem = self.objection(problem);
        let mut live = self.live();
        let wait = RECONNECT_FIRST.saturating_mul(1 << live.failures.min(10)).min(RECONNECT_MAX);
        live.failures += 1;
        live.attempt = None;
        live.not_before = Some(Instant::now() + wait.mul_f64(0.5 + fastrand::f64() / 2.0));
        let is_new = refusal.is_some() && live.refused != refusal;
        if is_new {
            live.refused = refusal;
        }
        drop(live);
        if problem.is_transient() && (!self.0.down.swap(true, Ordering::AcqRel) || is_new) {
            self.log_down(&problem.to_string());
        }
        problem
    }

    /// Returns how many connections were dropped so far. The next connection may reach another
    /// server.
    pub(super) fn breaks(&self) -> u64 {
        self.0.breaks.load(Ordering::Acquire)
    }

    /// Returns whether the connection was lost and no other one is there yet.
    pub(super) fn is_down(&self) -> bool {
        self.0.down.load(Ordering::Acquire)
    }

    /// Returns how many connections were made so far.
    pub(super) fn connects(&self) -> u64 {
        self.0.generation.load(Ordering::Acquire)
    }

    /// Sorts an error that the server answered; see [`Endpoint::objection`].
    pub(super) fn objection(&self, problem: BrokerError) -> BrokerError {
        self.0.endpoint.objection(problem)
    }

    /// Notes that the server accepted the URL and the credentials.
    pub(super) fn was_right(&self) {
        self.0.endpoint.was_right();
    }

    /// Drops a connection that does not answer in time. The next connection is tried at once,
    /// because the caller has already waited.
    pub fn reset(&self) {
        let mut live = self.live();
        live.connection = None;
        self.0.breaks.fetch_add(1, Ordering::AcqRel);
        live.not_before = None;
    }

    /// Drops a connection that failed, unless it has been replaced already.
    fn forget(&self, failed: u64) {
        let mut live = self.live();
        if live.connection.as_ref().is_some_and(|(generation, _)| *generation == failed) {
            live.connection = None;
            self.0.breaks.fetch_add(1, Ordering::AcqRel);
            drop(live);
            if !self.0.down.swap(true, Ordering::AcqRel) {
                self.log_down("the connection broke");
            }
        }
    }

    fn log_down(&self, why: &str) {
        let (role, store) = (self.0.role, self.0.endpoint.describe());
        let error = why.to_owned();
        crate::log_event!(self.0.log, WARN, role, store, error, "no connection to Redis");
    }
}

/// Makes one connection. This function holds only a weak reference, so the last clone can be
/// dropped meanwhile.
async fn dial(inner: Weak<Inner>) -> Result<(u64, Transport), BrokerError> {
    let inner_now = || inner.upgrade().map(Connection).ok_or_else(over);
    let (endpoint, commands, log) = {
        let inner = inner_now()?.0;
        (inner.endpoint.clone(), inner.commands, inner.log.clone())
    };
    let made = endpoint.connect(commands, &log).await;
    let connection = inner_now()?;
    match made {
        Ok(made) => Ok(connection.came_up(made)),
        Err(problem) => Err(connection.stayed_down(problem)),
    }
}

fn over() -> BrokerError {
    BrokerError::NotDone("the runtime of the connection ends".into())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn a_future_that_is_not_polled_does_not_keep_others_from_connecting() {
        let server = optimus_testkit::RedisServer::start();
        let endpoint = Endpoint::parse(&server.url()).expect("the testkit's URL is valid");
        let connection = Connection::new(endpoint, "test", Commands::Immediate, Log::here());
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut held = std::pin::pin!(connection.connection(deadline));
        assert!(futures_util::poll!(held.as_mut()).is_pending());
        assert!(connection.connection(deadline).await.is_ok());
        assert!(held.await.is_ok());
    }

    #[tokio::test]
    async fn an_attempt_that_nobody_drives_is_replaced() {
        let server = optimus_testkit::RedisServer::start();
        let endpoint = Endpoint::parse(&server.url()).expect("the testkit's URL is valid");
        let connection = Connection::new(endpoint, "test", Commands::Immediate, Log::here());
        let stuck: Attempt = std::future::pending().boxed().shared();
        let begun = Instant::now();
        connection.live().attempt = Some((begun, stuck.clone()));
        let late = connection.connection(begun).await;
        assert!(matches!(late, Err(BrokerError::NotDone(_))));
        let begun = begun.checked_sub(ATTEMPT_MAX).expect("the system runs for longer");
        connection.live().attempt = Some((begun, stuck));
        assert!(connection.connection(Instant::now() + ATTEMPT_MAX).await.is_ok());
    }

    #[tokio::test]
    async fn an_attempt_that_its_caller_gives_up_serves_the_next_one() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let endpoint = Endpoint::parse(&format!("redis://127.0.0.1:{port}")).expect("a plain URL");
        let connection = Connection::new(endpoint, "test", Commands::Immediate, Log::here());
        let mut dropped = Box::pin(connection.connection(Instant::now()));
        let (mut server, _) = tokio::select! {
            _ = &mut dropped => panic!("there is no answer yet"),
            accepted = listener.accept() => accepted.unwrap(),
        };
        drop(dropped);
        let next = connection.connection(Instant::now() + Duration::from_secs(20));
        let answer = async {
            let mut words = [0; 1_024];
            loop {
                let read = server.read(&mut words).await.unwrap();
                let commands = String::from_utf8_lossy(&words[..read]).matches('*').count();
                assert!(commands > 0, "the attempt continues");
                server.write_all(&b"+OK\r\n".repeat(commands)).await.unwrap();
            }
        };
        tokio::select! {
            made = next => assert!(made.is_ok()),
            _ = listener.accept() => panic!("there was an attempt already"),
            () = answer => {}
        }
    }
}
