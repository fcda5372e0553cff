//! Reads all queues for all who watch: once each 5 s, and not at all if nobody watches.

mod causes;
mod features;
mod past;
mod snapshot;

use std::{
    sync::{
        Arc, PoisonError, RwLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use optimus_core::{Client, Error, Failures, Inspector, QueueName};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, broadcast};

pub(crate) use self::{
    causes::{CAUSES_QUEUES_MAX, Causes},
    snapshot::Snapshot,
};
use self::{features::OwnFeatures, past::Past};
use crate::{
    carrying::carry_left,
    problem::Problem,
    shared::{App, Shared},
};

/// The time between two reads.
pub(crate) const EVERY: Duration = Duration::from_secs(5);
/// How many events a browser may be behind before it is dropped.
const BEHIND_MAX: usize = 4;

/// The reads of all queues.
pub(crate) struct Sampling {
    client: Client,
    inspector: Inspector,
    past: Mutex<Past>,
    failures: Arc<Failures>,
    own_features: OwnFeatures,
    /// One overview is made at a time.
    forming: Mutex<()>,
    last: RwLock<Option<Arc<Snapshot>>>,
    news: broadcast::Sender<Arc<Snapshot>>,
    seats: Arc<Semaphore>,
    listeners_max: usize,
    is_ticking: AtomicBool,
}

/// A browser that hears of each read, until this value is dropped.
pub(crate) struct Listening {
    pub(crate) news: broadcast::Receiver<Arc<Snapshot>>,
    _seat: OwnedSemaphorePermit,
}

impl Sampling {
    pub(crate) fn new(client: &Client, listeners_max: usize) -> Self {
        Self {
            client: client.clone(),
            inspector: client.inspector(),
            past: Mutex::new(Past::new(client)),
            failures: Arc::default(),
            own_features: OwnFeatures::default(),
            forming: Mutex::default(),
            last: RwLock::default(),
            news: broadcast::channel(BEHIND_MAX).0,
            seats: Arc::new(Semaphore::new(listeners_max)),
            listeners_max,
            is_ticking: AtomicBool::new(false),
        }
    }

    fn last(&self) -> Option<Arc<Snapshot>> {
        self.last.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn show(&self, snapshot: &Arc<Snapshot>) {
        let shown = Some(snapshot.clone());
        *self.last.write().unwrap_or_else(PoisonError::into_inner) = shown;
    }

    /// Returns the last read, or reads if it is too old. If Redis can't be read, the last read is
    /// returned with a note of it.
    pub(crate) async fn snapshot(&self) -> Result<Arc<Snapshot>, Problem> {
        let fresh = || self.last().filter(|last| last.at.elapsed() < EVERY);
        if let Some(last) = fresh() {
            return Ok(last);
        }
        // All others wait for the one read.
        let mut past = self.past.lock().await;
        if let Some(last) = fresh() {
            return Ok(last);
        }
        let snapshot = match past.read().await {
            Ok(snapshot) => snapshot,
            Err(problem) => match self.last() {
                Some(last) => last.without_redis(past.next_number()),
                None => return Err(problem.into()),
            },
        };
        let snapshot = Arc::new(snapshot);
        self.show(&snapshot);
        // Without a listener nobody hears it.
        let _ = self.news.send(snapshot.clone());
        Ok(snapshot)
    }

    /// Reads a queue again, because somebody has changed it.
    pub(crate) async fn refresh(&self, queue: &QueueName) -> Result<(), Error> {
        let mut past = self.past.lock().await;
        let Some(last) = self.last() else { return Ok(()) };
        if let Some(snapshot) = past.reread(&last, queue).await? {
            let snapshot = Arc::new(snapshot);
            self.show(&snapshot);
            let _ = self.news.send(snapshot);
        }
        Ok(())
    }

    /// Reads the operations again, because one was begun or has gone on.
    pub(crate) async fn refresh_operations(&self, client: &Client) {
        // Nobody watches, or Redis can't be read; the next read has them.
        let Ok(operations) = client.operations().list(past::OPERATIONS_MAX).await else { return };
        let _past = self.past.lock().await;
        let Some(last) = self.last() else { return };
        let mut snapshot = last.clone_with(last.number);
        snapshot.operations = operations;
        let snapshot = Arc::new(snapshot);
        self.show(&snapshot);
        let _ = self.news.send(snapshot);
    }

    /// Lets a browser hear of each read.
    pub(crate) fn listen(&self, app: &App) -> Result<Listening, Problem> {
        let seat = self.seats.clone().try_acquire_owned().map_err(|_| {
            Problem::unavailable(format!(
                "{} browsers listen already, which is the limit: ask for the page again later",
                self.listeners_max
            ))
        })?;
        let listening = Listening { news: self.news.subscribe(), _seat: seat };
        if !self.is_ticking.swap(true, Ordering::AcqRel) {
            tokio::spawn(tick(Arc::downgrade(app)));
        }
        Ok(listening)
    }

    fn has_listeners(&self) -> bool {
        self.news.receiver_count() > 0
    }
}

/// Reads again and again, while a browser listens.
async fn tick(app: Weak<Shared>) {
    loop {
        let Some(shared) = app.upgrade() else { return };
        let sampling = &shared.sampling;
        if !sampling.has_listeners() {
            sampling.is_ticking.store(false, Ordering::Release);
            // One that has come in between has seen that this was still set.
            let is_over =
                !sampling.has_listeners() || sampling.is_ticking.swap(true, Ordering::AcqRel);
            if is_over {
                return;
            }
        }
        let _ = sampling.snapshot().await;
        carry_left(&shared).await;
        let wait = sampling
            .last()
            .map_or(EVERY, |last| EVERY.saturating_sub(Instant::now().duration_since(last.at)));
        drop(shared);
        tokio::time::sleep(wait.max(Duration::from_millis(50))).await;
    }
}
