//! The agent that submits tasks. It is a client as in any program.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::Duration;

use anyhow::bail;
use optimus::{CancelAnswer, Client, Due, ErasedCall, Error, TaskId, TaskState};
use optimus_testkit::history::{HistoryLog, What};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

use super::mix::Kind;
use super::tasks::{answer, overrun, unique, work};
use super::{Role, Settings};

/// The file for errors that no user should ever see.
pub(crate) const COMPLAINTS: &str = "complaints";

/// The number of batches per second.
const TICKS_PER_S: u64 = 20;
const SUBMIT_TIMEOUT: Duration = Duration::from_secs(5);
/// The number of failing tasks that are remembered, so that they can be requeued.
const DOOMED_MAX: usize = 64;

struct Submitter<'a> {
    client: Client,
    /// The interval of a client that is mostly idle, so that Redis closes its connection.
    operator: Client,
    log: HistoryLog,
    settings: &'a Settings,
    random: fastrand::Rng,
    doomed: VecDeque<(u64, TaskId)>,
}

/// Runs until the agent is asked to end, or has submitted all its tasks.
pub(super) async fn run(settings: &Settings) -> anyhow::Result<()> {
    let Role::Client { first, count, per_s, seed, .. } = settings.role else { bail!("it submits") };
    let log = HistoryLog::open(&settings.folder)?;
    let builder = Client::builder(&settings.url).submit_timeout(SUBMIT_TIMEOUT);
    let (client, operator) = (builder.connect().await?, Client::connect(&settings.url).await?);
    let random = fastrand::Rng::with_seed(seed);
    let mut submitter =
        Submitter { client, operator, log, settings, random, doomed: VecDeque::new() };
    let mut terminated = signal(SignalKind::terminate())?;
    let mut ticks = interval(Duration::from_millis(1_000 / TICKS_PER_S));
    // After an outage the rate continues as before, without a burst.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let end = count.map_or(u64::MAX, |count| first + count);
    let mut next = first;
    while next < end {
        tokio::select! {
            biased;
            _ = terminated.recv() => return Ok(()),
            _ = ticks.tick() => {}
        }
        let batch = (per_s / TICKS_PER_S).clamp(1, end - next);
        submitter.submit(next..next + batch).await;
        submitter.operate().await;
        next += batch;
    }
    Ok(())
}

impl Submitter<'_> {
    async fn submit(&mut self, numbers: std::ops::Range<u64>) {
        self.log.write_all(numbers.clone().map(|task| {
            let kind = Kind::of(task);
            What::Invoke { task, biz: kind.biz(task), delay_ms: kind.delay_ms(task) }
        }));
        let calls = numbers.clone().map(call);
        let answers = match self.client.submit_all(calls).await {
            Ok(handles) => handles.into_iter().map(Ok).collect(),
            Err(problem) => problem.answers,
        };
        let events: Vec<What> = numbers
            .clone()
            .zip(&answers)
            .map(|(task, answer)| match answer {
                Ok(handle) if handle.is_duplicate() => {
                    What::Duplicate { task, owner: handle.id().to_string() }
                }
                Ok(handle) => What::Acked { task, id: handle.id().to_string() },
                Err(problem) => self.failed(task, problem),
            })
            .collect();
        self.log.write_all(events);
        for (task, handle) in numbers.zip(answers) {
            let Ok(handle) = handle else { continue };
            match Kind::of(task) {
                Kind::Cancelled => self.cancel(task, handle.id()).await,
                Kind::Doomed => {
                    self.doomed.push_back((task, handle.id().clone()));
                    self.doomed.truncate(DOOMED_MAX);
                }
                _ => {}
            }
        }
    }

    /// Records the outcome of a failed submit: either nothing was done, or the outcome is unknown.
    fn failed(&self, task: u64, problem: &Error) -> What {
        if problem.is_unavailable() || problem.is_full() {
            return What::Refused { task };
        }
        if !problem.is_unknown_outcome() {
            self.complain(problem);
        }
        What::Unknown { task }
    }

    async fn cancel(&self, task: u64, id: &TaskId) {
        self.log.write(What::Cancel { task });
        match self.operator.cancel(id).await {
            Ok(CancelAnswer::Cancelled) => self.log.write(What::Cancelled { task }),
            Ok(_) => self.log.write(What::Stopping { task }),
            Err(problem) => self.refused(task, &problem),
        }
    }

    /// Sometimes requeues a dead task, like an operator.
    async fn operate(&mut self) {
        if self.random.u8(..) > 12 {
            return;
        }
        let Some((task, id)) = self.doomed.pop_front() else { return };
        match self.operator.handle::<()>(id.clone()).status().await {
            Ok(TaskState::Dead) => {
                self.log.write(What::Requeue { task });
                match self.operator.requeue(&id).await {
                    Ok(()) => self.log.write(What::Requeued { task }),
                    Err(problem) => self.refused(task, &problem),
                }
            }
            Ok(_) => {}
            Err(problem) => self.excuse(&problem),
        }
    }

    /// Returns whether the answer shows that nothing was done, because Redis was not available.
    fn refused(&self, task: u64, problem: &Error) {
        if problem.is_unavailable() {
            self.log.write(What::Undone { task });
        }
        self.excuse(problem);
    }

    /// Ignores the expected errors of an operator's call: Redis may be unavailable or full, or the
    /// task may be in another state.
    fn excuse(&self, problem: &Error) {
        let expected = problem.is_unavailable()
            || problem.is_full()
            || problem.is_unknown_outcome()
            || problem.is_wrong_state()
            || problem.is_forgotten();
        if !expected {
            self.complain(problem);
        }
    }

    fn complain(&self, problem: &Error) {
        complain(self.settings, problem);
    }
}

/// Notes an error that no user should ever see.
pub(super) fn complain(settings: &Settings, problem: &Error) {
    let path = settings.folder.join(COMPLAINTS);
    let file = OpenOptions::new().create(true).append(true).open(path);
    let written = file.and_then(|mut file| writeln!(file, "{problem}"));
    written.expect("the folder of the histories is writable");
}

fn call(number: u64) -> ErasedCall {
    let kind = Kind::of(number);
    let delay = Duration::from_millis(kind.delay_ms(number));
    let erased = match kind {
        Kind::Answering => answer(number).erase(),
        Kind::Doomed => work(number).max_retry(1).erase(),
        Kind::Overrunning => overrun(number).erase(),
        Kind::Unique => unique(number, kind.biz(number).unwrap_or_default()).erase(),
        _ if delay.is_zero() => work(number).erase(),
        _ => work(number).due(Due::In(delay)).erase(),
    };
    erased.expect("numbers can be stored")
}
