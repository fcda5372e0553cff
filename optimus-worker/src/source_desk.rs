//! What one worker tells Redis of a source, and hears: [`SourceDesk`]. All slices that the worker
//! holds share one call a second.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use optimus_core::{
    Error, RosterName, Source, Stamp,
    broker::{Broker, SourceStanding},
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
    told_at: Mutex<Option<Instant>>,
    heard: tokio::sync::Mutex<Heard>,
}

/// What was heard last, and what must be told.
#[derive(Default)]
struct Heard {
    at: Option<Instant>,
    standing: SourceStanding,
    /// A probe that was granted and that no slice has read.
    has_probe: bool,
    figures: BTreeMap<u16, String>,
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
            told_at: Mutex::new(None),
            heard: tokio::sync::Mutex::default(),
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
            self.tell(None, &BTreeMap::new()).await;
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
        let mut heard = self.heard.lock().await;
        if let Some(figures) = figures {
            heard.figures.insert(slice, figures);
        }
        let is_old = heard.at.is_none_or(|at| at.elapsed() >= ASK_EVERY);
        if is_old {
            heard.at = Some(Instant::now());
            let probes = (probe == Probe::Wanted).then_some(self.probe_every);
            let figures = std::mem::take(&mut heard.figures);
            if let Some(standing) = self.tell(probes, &figures).await {
                heard.standing = standing;
                heard.has_probe |= standing.may_probe;
            } else {
                // What was told since then is newer.
                for (slice, text) in figures {
                    heard.figures.entry(slice).or_insert(text);
                }
            }
        }
        let is_slow = heard.standing.slow_since_ms > 0;
        let may_probe = is_slow && probe == Probe::Wanted && std::mem::take(&mut heard.has_probe);
        SourceStanding { may_probe, ..heard.standing }
    }

    async fn tell(
        &self,
        probes: Option<Duration>,
        figures: &BTreeMap<u16, String>,
    ) -> Option<SourceStanding> {
        *self.told_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        let ended =
            (self.ended.0.swap(0, Ordering::AcqRel), self.ended.1.swap(0, Ordering::AcqRel));
        let call = self.broker.survey(&self.roster, ended, probes, figures);
        let answer = timeout(ASK_WITHIN, call).await;
        if let Ok(Ok(standing)) = answer {
            return Some(standing);
        }
        self.ended.0.fetch_add(ended.0, Ordering::AcqRel);
        self.ended.1.fetch_add(ended.1, Ordering::AcqRel);
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
