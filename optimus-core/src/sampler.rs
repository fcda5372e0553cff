//! Reads all queues and processes at once, for metrics and for the console: [`Sampler`].

use std::{
    collections::{BTreeMap, HashSet},
    time::{Duration, Instant},
};

use crate::{
    Error, broker::KnownKeys, id::QueueName, inspect::Inspector, overview::QueueOverview,
    process_page::ProcessDetails, task_page::PAGE_MAX, want_slots::WantSlots,
};

/// The most pages of processes of a read.
const PROCESS_PAGES_MAX: usize = 100;

/// The most processes of which a read keeps the rows.
const PROCESS_ROWS_MAX: usize = 1_000;

/// What was read.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    /// The queues that were read.
    pub queues: Vec<QueueSample>,
    /// Those that can't be read, and why.
    pub unreadable: Vec<(QueueName, Error)>,
    /// How many queues were not read, because there are too many.
    pub left_out: u64,
    /// Whether these are all queues of the namespace.
    pub has_all: bool,
    /// How many processes run workers. Those whose leases are over do not count.
    pub processes: u64,
    /// The first 1,000 of them by their ids, with what they run, and those whose leases are over.
    pub process_rows: Vec<ProcessDetails>,
    /// How many of their slots are busy.
    pub slots_busy: u64,
    /// How many slots they may use.
    pub slots_allowed: u64,
    /// How long the read took.
    pub took: Duration,
}

/// One queue.
#[derive(Debug, Clone)]
pub struct QueueSample {
    /// What was read of it.
    pub seen: QueueOverview,
    /// How many processes serve it. Those whose leases are over do not count.
    pub processes: u64,
    /// The slots that these may use.
    pub slots: u64,
    /// How many slots it needs.
    pub want_slots: u64,
}

/// What serves a queue.
#[derive(Debug, Clone, Copy, Default)]
struct Serving {
    processes: u64,
    slots: u64,
}

/// Reads queues and processes, and remembers what it needs for rates.
#[derive(Debug)]
pub struct Sampler {
    inspector: Inspector,
    /// The queues to read; all if there is none.
    named: Vec<QueueName>,
    queues_max: usize,
    target: Duration,
    past: BTreeMap<QueueName, WantSlots>,
    known: KnownKeys,
}

impl Sampler {
    /// Makes a sampler of these queues, or of all if there is none, up to `queues_max`. `target` is
    /// the time in which a backlog is to end.
    pub fn new(
        inspector: Inspector,
        mut named: Vec<QueueName>,
        queues_max: usize,
        target: Duration,
    ) -> Self {
        let mut known = HashSet::new();
        named.retain(|queue| known.insert(queue.clone()));
        let (past, known) = (BTreeMap::new(), KnownKeys::default());
        Self { inspector, named, queues_max, target, past, known }
    }

    /// Reads all once, as [`Inspector::overview`] does; from the second time on, with fewer
    /// commands.
    ///
    /// # Errors
    /// [`Error::is_unavailable`].
    pub async fn sample(&mut self) -> Result<Sample, Error> {
        let began = Instant::now();
        let mut queues =
            if self.named.is_empty() { self.inspector.queues().await? } else { self.named.clone() };
        let left_out = queues.len().saturating_sub(self.queues_max) as u64;
        queues.truncate(self.queues_max);
        let seen = self.inspector.overview_again(&queues, &mut self.known).await?;
        let has_all = self.named.is_empty() && left_out == 0;
        let mut sample = Sample { left_out, has_all, ..Sample::default() };
        let serving = self.processes(&mut sample).await?;
        let is_read = queues.iter().collect::<HashSet<_>>();
        self.past.retain(|queue, _| is_read.contains(queue));
        self.known.retain(|queue| is_read.contains(queue));
        let now = Instant::now();
        for mut seen in seen {
            if let Some(problem) = seen.problem.take() {
                sample.unreadable.push((seen.queue, problem));
                continue;
            }
            let past = self.past.entry(seen.queue.clone()).or_default();
            let want_slots = past.note(now, &seen, self.target);
            let serving = serving.get(seen.queue.as_str()).copied().unwrap_or_default();
            let Serving { processes, slots } = serving;
            sample.queues.push(QueueSample { seen, processes, slots, want_slots });
        }
        sample.took = began.elapsed();
        Ok(sample)
    }

    /// Reads the processes. Returns what serves each queue.
    async fn processes(&self, sample: &mut Sample) -> Result<BTreeMap<String, Serving>, Error> {
        let (mut serving, mut after) = (BTreeMap::<String, Serving>::new(), None);
        for _ in 0..PROCESS_PAGES_MAX {
            let page = self.inspector.processes(after.as_ref(), PAGE_MAX).await?;
            for process in page.rows {
                if !process.is_lost {
                    let allowed = process.doing.slots as u64;
                    sample.processes += 1;
                    sample.slots_allowed += allowed;
                    sample.slots_busy += process.doing.busy as u64;
                    for queue in &process.about.queues {
                        let queue = serving.entry(queue.clone()).or_default();
                        queue.processes += 1;
                        queue.slots += allowed;
                    }
                }
                if sample.process_rows.len() < PROCESS_ROWS_MAX {
                    sample.process_rows.push(process);
                }
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        Ok(serving)
    }
}
