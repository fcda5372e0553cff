//! One connection that is that reconnects indefinitely: [`Connection`].

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use redis::{Pipeline, Value};
use tokio::{sync::Mutex as Turns, time::Instant};
use tokio_util::task::AbortOnDropHandle;

use super::{
    BrokerError,
    endpoint::{Endpoint, Transport},
};
use crate::log::Log;

const RECONNECT_FIRST: Duration = Duration::from_millis(25);
const RECONNECT_MAX: Duration = Duration::from_secs(3);

/// A connection that reconnects with a growing, jittered wait, and says so once per change.
#[derive(Clone)]
pub struct Connection(Arc<Inner>);

struct Inner {
    endpoint: Endpoint,
    role: &'static str,
    blocking: bool,
    log: Log,
    live: Mutex<Live>,
    /// Held by who makes a connection.
    dialing: Turns<()>,
    /// Set while down, so that an outage is one line in the log, and its end another.
    down: AtomicBool,
    generation: AtomicU64,
    /// How often a connection was dropped.
    breaks: AtomicU64,
}

#[derive(Default)]
struct Live {
    connection: Option<(u64, Transport)>,
    failures: u32,
    not_before: Option<Instant>,
}

impl Connection {
    /// A link that connects at its first use. `role` names it in the log.
    pub fn new(endpoint: Endpoint, role: &'static str, blocking: bool, log: Log) -> Self {
        Self(Arc::new(Inner {
            endpoint,
            role,
            blocking,
            log,
            live: Mutex::default(),
            dialing: Turns::default(),
            down: AtomicBool::new(false),
            generation: AtomicU64::new(0),
            breaks: AtomicU64::new(0),
        }))
    }

    /// Sends commands in one write and reads their answers, each of which may be an error.
    pub(super) async fn request(
        &self,
        pipeline: &Pipeline,
        count: usize,
        within: Duration,
    ) -> Result<Vec<Value>, BrokerError> {
        let (generation, mut connection) = self.connection(Instant::now() + within).await?;
        match connection.request(pipeline, count).await {
            Ok(values) if values.len() == count => Ok(values),
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

    fn current(&self) -> Option<(u64, Transport)> {
        self.live().connection.clone()
    }

    /// The live connection, or a new one: tries until `deadline`.
    ///
    /// The user's code may hold this future and not poll it. So it makes no connection itself, and
    /// waits for no turn, or all others would wait with it.
    async fn connection(&self, deadline: Instant) -> Result<(u64, Transport), BrokerError> {
        if let Some(current) = self.current() {
            return Ok(current);
        }
        let connection = self.clone();
        let dialing = tokio::spawn(async move { connection.dial(deadline).await });
        let ended = |_| Err(BrokerError::NotDone("the runtime of the connection ends".into()));
        AbortOnDropHandle::new(dialing).await.unwrap_or_else(ended)
    }

    async fn dial(&self, deadline: Instant) -> Result<(u64, Transport), BrokerError> {
        let inner = &*self.0;
        loop {
            let _turn = tokio::time::timeout_at(deadline, inner.dialing.lock())
                .await
                .map_err(|_| BrokerError::NotDone("there is no connection to Redis yet".into()))?;
            if let Some(current) = self.current() {
                return Ok(current);
            }
            let not_before = self.live().not_before;
            if let Some(not_before) = not_before {
                tokio::time::sleep_until(not_before.min(deadline)).await;
            }
            match inner.endpoint.connect(inner.blocking, &inner.log).await {
                Ok(connection) => return Ok(self.came_up(connection)),
                Err(problem) => {
                    self.stayed_down(&problem);
                    if !problem.is_transient() || Instant::now() >= deadline {
                        return Err(problem);
                    }
                }
            }
        }
    }

    fn came_up(&self, connection: Transport) -> (u64, Transport) {
        let current = (self.0.generation.fetch_add(1, Ordering::AcqRel) + 1, connection);
        *self.live() = Live { connection: Some(current.clone()), failures: 0, not_before: None };
        if self.0.down.swap(false, Ordering::AcqRel) {
            let (role, store) = (self.0.role, self.0.endpoint.describe());
            crate::tell!(self.0.log, INFO, role, store, "connected again");
        }
        current
    }

    fn stayed_down(&self, problem: &BrokerError) {
        let mut live = self.live();
        let wait = RECONNECT_FIRST.saturating_mul(1 << live.failures.min(10)).min(RECONNECT_MAX);
        live.failures += 1;
        live.not_before = Some(Instant::now() + wait.mul_f64(0.5 + fastrand::f64() / 2.0));
        drop(live);
        if problem.is_transient() {
            self.log_down(&problem.to_string());
        }
    }

    /// How often a connection was dropped so far. What comes after may be another server.
    pub(super) fn breaks(&self) -> u64 {
        self.0.breaks.load(Ordering::Acquire)
    }

    /// As the endpoint judges it: see [`Endpoint::objection`].
    pub(super) fn objection(&self, problem: BrokerError) -> BrokerError {
        self.0.endpoint.objection(problem)
    }

    /// Notes that the server answered as it should.
    pub(super) fn was_right(&self) {
        self.0.endpoint.was_right();
    }

    /// Drops the connection: it does not answer in time. The next one is tried at once, for who
    /// calls this has waited already.
    pub fn reset(&self) {
        let mut live = self.live();
        live.connection = None;
        self.0.breaks.fetch_add(1, Ordering::AcqRel);
        live.not_before = None;
    }

    /// Drops a connection that failed, unless somebody has replaced it already.
    fn forget(&self, failed: u64) {
        let mut live = self.live();
        if live.connection.as_ref().is_some_and(|(generation, _)| *generation == failed) {
            live.connection = None;
            self.0.breaks.fetch_add(1, Ordering::AcqRel);
            drop(live);
            self.log_down("the connection broke");
        }
    }

    fn log_down(&self, why: &str) {
        if !self.0.down.swap(true, Ordering::AcqRel) {
            let (role, store) = (self.0.role, self.0.endpoint.describe());
            let error = why.to_owned();
            crate::tell!(
                self.0.log,
                WARN,
                role,
                store,
                error,
                "no connection; trying again until there is one"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_future_that_nobody_polls_keeps_nobody_from_connecting() {
        let server = optimus_testkit::RedisServer::start();
        let endpoint = Endpoint::parse(&server.url()).expect("it is one of ours");
        let connection = Connection::new(endpoint, "test", false, Log::here());
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut held = std::pin::pin!(connection.connection(deadline));
        assert!(futures_util::poll!(held.as_mut()).is_pending());
        assert!(connection.connection(deadline).await.is_ok());
        assert!(held.await.is_ok());
    }
}
