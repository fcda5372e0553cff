//! What ended in all queues, read once for all who ask: [`StatsOfAll`].

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use optimus_core::{QueueName, StatsSum, StatsUnit};
use tokio::{sync::Mutex as Turn, task::JoinSet};

use crate::{
    access::{Identity, Patterns},
    problem::Problem,
    sampling::Snapshot,
    shared::App,
    view::StatsShown,
};

/// How many queues are added up.
const QUEUES_MAX: usize = 1_000;
/// In so many parts they are read.
const PARTS: usize = 4;
/// How many sums are kept: of other times, and for people who see other queues.
const SUMS_MAX: usize = 32;
/// A sum is shown for at least and at most so long.
const SHOWN: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(60)];
/// In between, it is shown for so many times the time that its read took.
const SHOWN_TIMES: u32 = 200;
/// What is older than this many times that time is not shown at all.
const STALE_MAX: u32 = 4;

/// The sums over all queues. A sum takes Redis 10 to 30 µs a queue, so all who ask for the same
/// share one read: each 5 s, and less often if a read takes long.
#[derive(Default)]
pub(crate) struct StatsOfAll {
    kept: Mutex<HashMap<Asked, Kept>>,
    /// One read at a time: however many ask for what, Redis is busy with one of them.
    turn: Arc<Turn<()>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Asked {
    seen: Patterns,
    unit: StatsUnit,
    last: u32,
}

#[derive(Clone)]
struct Kept {
    at: Instant,
    shown_for: Duration,
    sum: Arc<Sum>,
}

/// What ended in several queues.
pub(crate) struct Sum {
    pub(crate) stats: StatsShown,
    /// How many queues were added up.
    pub(crate) queues: usize,
    /// How many were left out, because there are too many, or because they can't be read.
    pub(crate) left_out: usize,
}

impl StatsOfAll {
    fn kept(&self, asked: &Asked) -> Option<Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(asked).cloned()
    }

    fn fresh(&self, asked: &Asked) -> Option<Arc<Sum>> {
        let kept = self.kept(asked)?;
        (kept.at.elapsed() < kept.shown_for).then_some(kept.sum)
    }

    fn keep(&self, asked: Asked, sum: Arc<Sum>, took: Duration) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= SUMS_MAX && !kept.contains_key(&asked) {
            let oldest =
                kept.iter().min_by_key(|(_, kept)| kept.at).map(|(asked, _)| asked.clone());
            oldest.and_then(|oldest| kept.remove(&oldest));
        }
        let shown_for = (took * SHOWN_TIMES).clamp(SHOWN[0], SHOWN[1]);
        kept.insert(asked, Kept { at: Instant::now(), shown_for, sum });
    }

    /// Returns the sum over the queues that somebody sees. One that is too old is read again: in
    /// the background, and the old one is returned, unless it is much too old.
    pub(crate) async fn read(
        app: &App,
        identity: &Identity,
        unit: StatsUnit,
        last: u32,
    ) -> Result<Arc<Sum>, Problem> {
        let own = &app.stats_of_all;
        let asked = Asked { seen: identity.queues.clone(), unit, last };
        if let Some(sum) = own.fresh(&asked) {
            return Ok(sum);
        }
        let stale = own.kept(&asked);
        let stale = stale.filter(|kept| kept.at.elapsed() < kept.shown_for * STALE_MAX);
        if let Some(Kept { sum, .. }) = stale {
            if let Ok(turn) = own.turn.clone().try_lock_owned() {
                let (app, identity) = (app.clone(), identity.clone());
                tokio::spawn(async move {
                    // If Redis can't be read, the next one who asks learns it.
                    let _ = read_all(&app, &identity, asked).await;
                    drop(turn);
                });
            }
            return Ok(sum);
        }
        let _turn = own.turn.lock().await;
        match own.fresh(&asked) {
            Some(sum) => Ok(sum),
            None => read_all(app, identity, asked).await,
        }
    }
}

async fn read_all(app: &App, identity: &Identity, asked: Asked) -> Result<Arc<Sum>, Problem> {
    let snapshot = app.sampling.snapshot().await?;
    let (queues, left_out) = readable(&snapshot, identity);
    let (count, begun) = (queues.len(), Instant::now());
    let Asked { unit, last, .. } = asked;
    // Parts are read at the same time, so that all cores may add up.
    let mut parts = JoinSet::new();
    for part in queues.chunks(count.div_ceil(PARTS).max(1)) {
        let (inspector, part) = (app.inspector(), part.to_vec());
        parts.spawn(async move { inspector.stats_sum(&part, unit, last).await });
    }
    let mut sum = StatsSum::new(unit);
    while let Some(part) = parts.join_next().await {
        let is_ending = |_| Problem::unavailable("the console ends");
        sum.add(part.map_err(is_ending)??);
    }
    let unreadable = sum.unreadable.len();
    let (queues, left_out) = (count - unreadable, left_out + unreadable);
    let sum = Arc::new(Sum { stats: StatsShown::of(sum, last), queues, left_out });
    app.stats_of_all.keep(asked, sum.clone(), begun.elapsed());
    Ok(sum)
}

/// Returns the queues to read, and how many are left out.
fn readable(snapshot: &Snapshot, identity: &Identity) -> (Vec<QueueName>, usize) {
    let entries = snapshot.seen_by(identity).filter(|entry| entry.row.problem.is_none());
    let names = entries.map(|entry| QueueName::new(&entry.row.queue));
    let mut queues: Vec<QueueName> = names.filter_map(Result::ok).collect();
    let left_out = queues.len().saturating_sub(QUEUES_MAX);
    queues.truncate(QUEUES_MAX);
    (queues, left_out)
}
