//! What one worker tells Redis of a source, and hears: [`SourceDesk`]. All slices that the worker
//! holds share one call a second.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use optimus_core::{
    Error, RosterName, Source, Stamp,
    broker::{Broker, Ended, SourceStanding},
    log::Log,
    log_event,
};
use tokio::time::{Instant, timeout};

/// How often a worker tells and asks.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// How long one call may take.
const ASK_WITHIN: Duration = Duration::from_secs(2);
/// The time between two probes of a slow source.
const PROBE_EVERY: Duration = Duration::from_secs(60);

/// Whether a slice would read a probe now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Probe {
    Wanted,
    NotWanted,
}

/// One source, as a worker knows it.
pub(crate) struct SourceDesk {
    source: Source,
    roster: RosterName,
    /// The tables, which the program's code named when the worker was built.
    tables: Vec<String>,
    broker: Broker,
    probe_every: Duration,
    ended: (AtomicU64, AtomicU64),
    /// The last request to scan at once of which this worker has heard.
    scan_at_ms: AtomicU64,
    told_at: Mutex<Option<Instant>>,
    /// The figures of slices that are not told yet.
    figures: Mutex<BTreeMap<u16, String>>,
    heard: tokio::sync::Mutex<Heard>,
    /// Whether the log says that the source is slow.
    is_said_slow: AtomicBool,
}

/// What was heard last.
#[derive(Default)]
struct Heard {
    at: Option<Instant>,
    standing: SourceStanding,
    /// A probe that was granted and that no slice has read.
    has_probe: bool,
}

impl SourceDesk {
    pub(crate) fn new(source: Source, broker: Broker) -> Result<Self, Error> {
        let probe_every = PROBE_EVERY.max(source.options().tiers[0].every);
        Ok(Self {
            roster: RosterName::sources(source.name())?,
            tables: source.tables()?,
            source,
            broker,
            probe_every,
            ended: (AtomicU64::new(0), AtomicU64::new(0)),
            scan_at_ms: AtomicU64::new(0),
            told_at: Mutex::new(None),
            figures: Mutex::default(),
            heard: tokio::sync::Mutex::default(),
            is_said_slow: AtomicBool::new(false),
        })
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    pub(crate) fn roster(&self) -> &RosterName {
        &self.roster
    }

    pub(crate) fn tables(&self) -> &[String] {
        &self.tables
    }

    /// Returns what its tasks need to know.
    pub(crate) fn stamp(&self) -> Stamp {
        Stamp {
            source: self.source.name(),
            has_hooks: self.source.has_hooks(),
            keeps_failures: self.source.parts().on_failure.is_some(),
            remember: self.source.options().remember,
            attempts: self.source.options().attempts,
        }
    }

    /// Counts an attempt of a task of the source, and tells it if the last call is long ago.
    pub(crate) async fn count(&self, succeeded: Attempted) {
        match succeeded {
            Attempted::Succeeded => &self.ended.0,
            Attempted::Failed => &self.ended.1,
        }
        .fetch_add(1, Ordering::Relaxed);
        if self.is_time() {
            self.tell(None).await;
        }
    }

    /// Tells the figures of a slice, and returns what was heard within the last second. A probe is
    /// granted to one slice.
    pub(crate) async fn ask(
        &self,
        slice: u16,
        figures: Option<String>,
        probe: Probe,
    ) -> SourceStanding {
        self.keep(slice, figures);
        let mut heard = self.heard.lock().await;
        let is_old = heard.at.is_none_or(|at| at.elapsed() >= ASK_EVERY);
        if is_old {
            let probes = (probe == Probe::Wanted).then_some(self.probe_every);
            if let Some(standing) = self.tell(probes).await {
                heard.standing = standing;
                heard.has_probe |= standing.may_probe;
            }
            // Those who have waited for a call that was not answered do not repeat it.
            heard.at = Some(Instant::now());
        }
        let is_slow = heard.standing.is_slow();
        let may_probe = is_slow && probe == Probe::Wanted && std::mem::take(&mut heard.has_probe);
        SourceStanding { may_probe, ..heard.standing }
    }

    /// Writes to the log when the source becomes slow and when that is over, once for all slices of
    /// this worker.
    pub(crate) fn log_slowness(&self, log: &Log, standing: &SourceStanding) {
        let (source, is_slow) = (self.source.name(), standing.is_slow());
        if self.is_said_slow.swap(is_slow, Ordering::AcqRel) == is_slow {
            return;
        }
        if is_slow {
            let text = "half of the last hundred attempts at tasks of this source have failed, so \
                        it reads only a few rows a minute until more attempts succeed than fail";
            log_event!(log, WARN, source, "{text}");
        } else {
            log_event!(log, INFO, source, "the tasks of this source succeed, so it reads all rows");
        }
    }

    /// Tells the last figures of a slice, which is given back then.
    pub(crate) async fn close(&self, slice: u16, figures: Option<String>) {
        self.keep(slice, figures);
        // Another slice that ends may have told them meanwhile.
        if let Ok(_heard) = timeout(ASK_WITHIN, self.heard.lock()).await
            && self.figures().contains_key(&slice)
        {
            self.tell(None).await;
        }
        self.forget(slice);
    }

    /// Forgets the figures of a slice that is lost: its next holder tells newer ones.
    pub(crate) fn forget(&self, slice: u16) {
        self.figures().remove(&slice);
    }

    fn keep(&self, slice: u16, figures: Option<String>) {
        if let Some(figures) = figures {
            self.figures().insert(slice, figures);
        }
    }

    fn figures(&self) -> MutexGuard<'_, BTreeMap<u16, String>> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn tell(&self, probes: Option<Duration>) -> Option<SourceStanding> {
        *self.told_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        let figures = std::mem::take(&mut *self.figures());
        let ended = Ended {
            ok: self.ended.0.swap(0, Ordering::AcqRel),
            failed: self.ended.1.swap(0, Ordering::AcqRel),
            scan_at_ms: self.scan_at_ms.load(Ordering::Acquire),
        };
        let call = self.broker.survey(&self.roster, ended, probes, &figures);
        if let Ok(Ok(standing)) = timeout(ASK_WITHIN, call).await {
            self.scan_at_ms.store(standing.scan_at_ms, Ordering::Release);
            return Some(standing);
        }
        self.ended.0.fetch_add(ended.ok, Ordering::AcqRel);
        self.ended.1.fetch_add(ended.failed, Ordering::AcqRel);
        let mut kept = self.figures();
        for (slice, text) in figures {
            // What was told since then is newer.
            kept.entry(slice).or_insert(text);
        }
        None
    }

    fn is_time(&self) -> bool {
        let mut told_at = self.told_at.lock().unwrap_or_else(PoisonError::into_inner);
        let is_time = told_at.is_none_or(|at| at.elapsed() >= ASK_EVERY);
        if is_time {
            *told_at = Some(Instant::now());
        }
        is_time
    }
}

/// How an attempt has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempted {
    Succeeded,
    Failed,
}
