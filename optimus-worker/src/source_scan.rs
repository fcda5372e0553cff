//! The work of one slice of a source while a worker holds it: [`run`]. It reads one page after the
//! other, submits the tasks of a page, and only then goes on to the next page.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use optimus_core::{
    Archive, FoundEnd, FoundPage, FoundRow, PageFacts, Progress, QueueName, RowTask, SliceScans,
    SourceOptions, StopSignal, log_event, platform,
};
use tokio::time::Instant;

use crate::{
    decide_outcome,
    outcome_log::millis,
    post_run::{Phase, State, Work, failed_wait},
    refused_rows::RefusedRows,
    scan_plan::{Cell, Item, Kind, PageEnd, Plan, cells},
    source_desk::{Probe, SourceDesk},
    user_round::{self, RoundEnd},
};

/// The longest rest, after which requests of operators are read.
const REST_MAX: Duration = Duration::from_secs(1);
/// How many rows a page of a probe of a slow source has.
const PROBE_ROWS: u32 = 10;
/// How many pages a probe reads at most. The rows of the first ones may have tasks already.
const PROBE_PAGES: usize = 10;
/// How many old rows are archived at once.
const ARCHIVE_ROWS: u32 = 1_000;
/// The most bytes of the passes that are under way, as they are stored.
const CURSORS_BYTES: usize = 60 * 1024;
/// The first and the longest wait while the queue has too many tasks.
const FULL_WAIT: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));
/// The most queues whose tasks are counted before a page.
const QUEUES_MAX: usize = 16;

/// Reads the slice until the post is given back.
pub(crate) async fn run(work: &Work, state: &State, desk: &Arc<SourceDesk>) {
    let Some(mut scan) = Scan::begin(work, state, desk).await else { return };
    let slice = work.granted.0.index;
    while let Some(stopping) = state.next_round().await {
        let turn = scan.turn(state, &stopping).await;
        stopping.stop();
        match turn {
            Turn::Abandoned => return desk.forget(slice),
            Turn::Again => platform::yield_now().await,
            Turn::Rest(rest) => {
                if state.drains_within(rest).await {
                    break;
                }
            }
        }
    }
    // The next holder reads the figures when it begins.
    tokio::select! {
        biased;
        () = state.reached(Phase::Abandon) => desk.forget(slice),
        () = desk.close(slice, scan.untold()) => {}
    }
}

/// What follows a turn.
enum Turn {
    Again,
    Rest(Duration),
    Abandoned,
}

struct Scan<'a> {
    work: &'a Work,
    desk: &'a Arc<SourceDesk>,
    options: SourceOptions,
    epoch: Instant,
    plan: Plan,
    /// Into how many parts each table is cut.
    parts: u16,
    progress: Arc<Progress>,
    figures: SliceScans,
    is_told: bool,
    /// The last request to scan at once that was followed; `None` before the first look.
    scanned_ms: Option<u64>,
    /// The queues of the tasks.
    queues: Vec<QueueName>,
    /// How often the queue was too full, one time after the other.
    fulls: u32,
    /// The passes that are stored, and what is stored while none is under way.
    stored: String,
    at_begin: String,
    /// How many rows the last page had.
    rows: usize,
    refused: RefusedRows,
}

impl<'a> Scan<'a> {
    async fn begin(work: &'a Work, state: &State, desk: &'a Arc<SourceDesk>) -> Option<Self> {
        let progress = work.read_progress(state).await?;
        let (post, _) = work.granted;
        let options = desk.source().options();
        let (cells, parts) = cells(desk.tables().len(), post.index, work.count);
        let mut plan = Plan::new(&cells, options);
        let at_begin = plan.cursors(desk.tables(), parts, CURSORS_BYTES);
        let stored = progress.before.posts.get(&post).cloned();
        let stored = stored.unwrap_or_else(|| at_begin.clone());
        plan.restore(&stored, desk.tables(), parts);
        let figures = loop {
            match work.shared.shards_broker.source_seen(&work.roster).await {
                Ok(seen) => break seen.scans.get(&post.index).cloned().unwrap_or_default(),
                Err(_) if state.drains_within(crate::post_run::READ_AGAIN).await => return None,
                Err(_) => {}
            }
        };
        Some(Self {
            work,
            desk,
            options,
            epoch: Instant::now(),
            plan,
            parts,
            progress,
            figures: SliceScans::read(&figures),
            is_told: true,
            scanned_ms: None,
            queues: Vec::new(),
            fulls: 0,
            stored,
            at_begin,
            rows: 0,
            refused: RefusedRows::new(work.shared.log.clone(), desk.source().name()),
        })
    }

    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    /// Returns the figures if they have changed since the last call.
    fn untold(&mut self) -> Option<String> {
        (!std::mem::replace(&mut self.is_told, true)).then(|| self.figures.json())
    }

    /// Reads one page, if one is due.
    async fn turn(&mut self, state: &State, stopping: &Arc<StopSignal>) -> Turn {
        let slice = self.work.granted.0.index;
        let told = self.untold();
        let wants =
            if self.plan.next(self.now()).is_some() { Probe::Wanted } else { Probe::NotWanted };
        let standing = self.desk.ask(slice, told, wants).await;
        let asked = self.scanned_ms.replace(standing.scan_at_ms);
        if asked.is_some_and(|before| before < standing.scan_at_ms) {
            self.plan.all_due(self.now());
        }
        self.desk.log_slowness(&self.work.shared.log, &standing);
        if standing.is_slow() && !standing.may_probe {
            return Turn::Rest(REST_MAX);
        }
        let Some(at) = self.plan.next(self.now()) else { return self.rest() };
        if self.plan.item(at).kind == Kind::Archive {
            return self.archive(state, stopping, at).await;
        }
        if self.is_full().await {
            return self.full();
        }
        if !standing.is_slow() {
            return self.page(state, stopping, at, self.options.page).await;
        }
        self.probe(state, stopping).await
    }

    /// Reads a few short pages, until one of them has a new task.
    async fn probe(&mut self, state: &State, stopping: &Arc<StopSignal>) -> Turn {
        let before = self.figures.submitted;
        let rows = PROBE_ROWS.min(self.options.page);
        for _ in 0..PROBE_PAGES {
            let Some(at) = self.plan.next(self.now()) else { break };
            match self.page(state, stopping, at, rows).await {
                Turn::Again if self.figures.submitted == before && !stopping.is_asked() => {}
                Turn::Abandoned => return Turn::Abandoned,
                _ => break,
            }
        }
        Turn::Rest(REST_MAX)
    }

    fn rest(&self) -> Turn {
        Turn::Rest(self.plan.rest(self.now()).unwrap_or(REST_MAX).min(REST_MAX))
    }

    fn full(&mut self) -> Turn {
        self.fulls = self.fulls.saturating_add(1);
        let (first, longest) = FULL_WAIT;
        let longest = longest.min(self.options.tiers[0].every);
        let doubled = first.saturating_mul(2_u32.saturating_pow(self.fulls - 1));
        Turn::Rest(doubled.min(longest))
    }

    /// Returns whether one of the queues has as many tasks as it may have. A queue that can't be
    /// counted is full, because its tasks can't be submitted either.
    async fn is_full(&mut self) -> bool {
        for queue in &self.queues {
            let Ok(counts) = self.work.shared.shards_broker.counts(queue).await else {
                return true;
            };
            if counts.ready + counts.blocked + counts.retry >= self.options.high_water {
                return true;
            }
        }
        self.fulls = 0;
        false
    }

    fn was_full(&self, limit: u32) -> bool {
        u32::try_from(self.rows).is_ok_and(|rows| rows >= limit)
    }

    fn table(&self, cell: Cell) -> Option<String> {
        self.desk.tables().get(cell.table).cloned()
    }

    async fn page(
        &mut self,
        state: &State,
        stopping: &Arc<StopSignal>,
        at: usize,
        limit: u32,
    ) -> Turn {
        let (now, item) = (self.now(), self.plan.item(at).clone());
        let Kind::Tier(tier) = item.kind else { return Turn::Again };
        self.plan.begin(at, now);
        let facts = Arc::new(PageFacts {
            shard: self.work.shard(stopping.clone(), &self.progress),
            table: self.table(item.cell),
            slice: (item.cell.slice, self.parts),
            tier: self.options.tiers[tier],
            after: item.after.clone(),
            unread: OnceLock::new(),
            limit,
            stamp: self.desk.stamp(),
        });
        let scan = self.desk.source().parts().scan;
        let within = Some(self.options.timeout);
        let read = user_round::run(&self.work.shared, state, within, || scan(facts.clone())).await;
        self.figures.at_ms = platform::now_ms();
        self.figures.pages += 1;
        self.is_told = false;
        if let Some(error) = facts.unread.get() {
            self.begin_again(at, error);
        }
        let end = match read {
            RoundEnd::Abandoned => return Turn::Abandoned,
            RoundEnd::Failed(error) => self.failed(&item, error),
            RoundEnd::Returned(page) => match self.submit(at, page).await {
                Ok(end) => end,
                Err(error) => self.failed(&item, error),
            },
        };
        if end == PageEnd::Empty {
            self.pass_ended(at);
        }
        let has_more = matches!(end, PageEnd::Rows(_)) && self.was_full(limit);
        self.plan.ended(at, self.now(), end);
        // A pass of one page costs no call of its own.
        if has_more || self.stored != self.at_begin {
            self.store().await;
        }
        Turn::Again
    }

    /// Submits the tasks of a page. A page with a queue that was not known and is full is put off.
    async fn submit(&mut self, at: usize, page: FoundPage) -> Result<PageEnd, String> {
        let known = self.queues.len();
        self.rows = page.rows.len();
        let mut figures = self.figures.clone();
        let (mut tasks, mut refused) = (Vec::new(), Vec::new());
        for FoundRow { key, task } in page.rows {
            figures.rows += 1;
            match task {
                RowTask::None | RowTask::OtherTier => {}
                RowTask::GivenUp => figures.given_up += 1,
                RowTask::Refused(problem) => refused.push((key, problem)),
                RowTask::Submit(submission) => {
                    let queue = submission.id().queue();
                    if !self.queues.contains(queue) && self.queues.len() < QUEUES_MAX {
                        self.queues.push(queue.clone());
                    }
                    tasks.push((key, *submission));
                }
            }
        }
        if self.queues.len() > known && self.is_full().await {
            return Ok(PageEnd::Put(FULL_WAIT.0));
        }
        let (keys, tasks): (Vec<String>, Vec<_>) = tasks.into_iter().unzip();
        let client = &self.work.shared.client;
        let ends = client.within(client.submit_found(tasks)).await;
        let ends = ends.map_err(|problem| decide_outcome::text(&problem))?;
        for (key, end) in keys.into_iter().zip(ends) {
            match end {
                FoundEnd::Submitted => figures.submitted += 1,
                FoundEnd::Known => figures.known += 1,
                FoundEnd::Refused(problem) => refused.push((key, problem)),
            }
        }
        figures.refused = figures.refused.saturating_add(refused.len() as u64);
        figures.error.clear();
        let (now, table) = (self.now(), self.table(self.plan.item(at).cell).unwrap_or_default());
        if let Some(refusal) = self.refused.note((at, &table), now, refused) {
            figures.refusal = refusal;
        }
        self.figures = figures;
        // A pass can't go on after a page without a key that can be stored.
        Ok(page.last.map_or(PageEnd::Empty, PageEnd::Rows))
    }

    /// The stored key is of another type than those of the function, which a deploy has changed.
    fn begin_again(&mut self, at: usize, error: &str) {
        let (source, slice) = (self.desk.source().name(), self.work.granted.0.index);
        let table = self.table(self.plan.item(at).cell).unwrap_or_default();
        let error: String = error.chars().take(1_000).collect();
        let text = "the key at which a pass should go on is of another type; the pass over this \
                    table begins again";
        log_event!(self.work.shared.log, WARN, source, slice, table, error, "{text}");
        self.plan.begin_again(at, self.now());
    }

    fn pass_ended(&mut self, at: usize) {
        let item = self.plan.item(at);
        self.figures.passes += u64::from(item.after.is_some());
        let table = self.table(item.cell).unwrap_or_default();
        if self.refused.pass_ended((at, &table)) {
            self.figures.refusal.clear();
        }
    }

    /// Stores the passes that are under way, if that has changed.
    async fn store(&mut self) {
        let text = self.plan.cursors(self.desk.tables(), self.parts, CURSORS_BYTES);
        if text == self.stored {
            return;
        }
        // A holder that is lost, or a store that is away, costs a repeat of some pages.
        if self.work.shared.shards_broker.checkpoint(&self.work.holder(), &text).await.is_ok() {
            self.stored = text;
        }
    }

    async fn archive(&mut self, state: &State, stopping: &Arc<StopSignal>, at: usize) -> Turn {
        let item = self.plan.item(at).clone();
        let source = self.desk.source();
        let (Some(after), Some(archive)) = (self.options.archive_after, source.parts().archive)
        else {
            self.plan.archived(at, self.now(), 0, ARCHIVE_ROWS);
            return Turn::Again;
        };
        let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        let before = platform::instant(platform::now_ms().saturating_sub(after_ms));
        let shard = self.work.shard(stopping.clone(), &self.progress);
        let place = (item.cell.slice, self.parts);
        let request = Archive::of(shard, self.table(item.cell), place, before, ARCHIVE_ROWS);
        let within = Some(self.options.timeout);
        let ended = user_round::run(&self.work.shared, state, within, || archive(request)).await;
        self.is_told = false;
        let error = match ended {
            RoundEnd::Abandoned => return Turn::Abandoned,
            RoundEnd::Returned(moved) if moved <= u64::from(ARCHIVE_ROWS) => {
                self.figures.archived = self.figures.archived.saturating_add(moved);
                self.plan.archived(at, self.now(), moved, ARCHIVE_ROWS);
                return Turn::Again;
            }
            RoundEnd::Returned(moved) => format!(
                "`archive` says that it has moved {moved} rows; move at most `old.limit()`, \
                 which is {ARCHIVE_ROWS}, and return how many"
            ),
            RoundEnd::Failed(error) => error,
        };
        let end = self.failed(&item, error);
        self.plan.ended(at, self.now(), end);
        Turn::Again
    }

    /// Names the page by the failures of its rows and the key after which it begins.
    fn failed(&mut self, item: &Item, error: String) -> PageEnd {
        let wait = failed_wait(item.failures.saturating_add(1), fastrand::f64());
        self.figures.failed += 1;
        self.figures.error = error.chars().take(1_000).collect();
        let (source, slice) = (self.desk.source().name(), self.work.granted.0.index);
        let (table, after, wait_ms) = (self.table(item.cell), item.after.clone(), millis(wait));
        let failures = match item.kind {
            Kind::Tier(at) => self.options.tiers[at].failures(),
            Kind::Archive => "the archived rows".to_owned(),
        };
        let text = "a page of a source failed; it is read again after a wait";
        let log = &self.work.shared.log;
        log_event!(log, WARN, source, slice, table, failures, after, wait_ms, error, "{text}");
        PageEnd::Failed(wait)
    }
}
