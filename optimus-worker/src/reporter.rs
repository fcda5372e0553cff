//! The reports that Redis has not answered yet: [`Reporter`].
//!
//! A report is held until Redis has answered it, without a time limit. While a report is held, its
//! lease is kept. Each queue has a buffer for each kind of report. If Redis refuses the reports of
//! a buffer, they are sent again with a separate back-off, and no other buffer waits for them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use optimus_core::{
    QueueName,
    broker::{Broker, BrokerError, Reply},
    log::Log,
    log_event,
};
use tokio::time::Instant;
use tracing::field::display;

use crate::{
    answered_reports,
    decide_outcome::Report,
    report_batch::{Kind, ReportBatch},
    report_buffer::{Refused, ReportBuffer},
    role_wakeups::Wakeups,
    shared::Shared,
};

/// The most unsent reports of a queue with which a worker still claims from the queue.
pub(crate) const QUEUE_HELD_MAX: usize = 10_000;
/// The most reports, and bytes of results and errors, with which a worker still claims at all.
const HELD_MAX: usize = 100_000;
const HELD_BYTES_MAX: usize = 256 * 1024 * 1024;
/// The most bytes of results and errors that one turn sends.
const TURN_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The buffers of reports.
pub(crate) struct Reporter {
    held: Mutex<Held>,
    log: Log,
    wakeups: Arc<Wakeups>,
}

#[derive(Debug, Default)]
struct Held {
    buffers: BTreeMap<QueueName, [ReportBuffer; Kind::COUNT]>,
    /// The batches that the claimer has sent, by the number of the turn.
    under_way: Vec<(u64, Vec<ReportBatch>)>,
    turns: u64,
    reports: usize,
    bytes: usize,
}

impl Held {
    fn all(&self) -> impl Iterator<Item = &ReportBuffer> {
        self.buffers.values().flatten()
    }

    fn report_buffer(&mut self, report_batch: &ReportBatch) -> &mut ReportBuffer {
        self.buffer_of(report_batch.queue(), report_batch.kind)
    }

    fn buffer_of(&mut self, queue: &QueueName, kind: Kind) -> &mut ReportBuffer {
        &mut self.buffers.entry(queue.clone()).or_default()[kind as usize]
    }
}

impl Reporter {
    pub(crate) fn new(wakeups: Arc<Wakeups>, log: Log) -> Self {
        Self { held: Mutex::default(), log, wakeups }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, report: Report) {
        let (kind, bytes) = (Kind::of(&report), report.bytes());
        let mut held = self.held();
        held.reports += 1;
        held.bytes += bytes;
        held.buffer_of(report.lease().id.queue(), kind).push(report);
        drop(held);
        self.wakeups.report_pushed();
    }

    /// Returns how many reports are not answered yet.
    pub(crate) fn len(&self) -> usize {
        self.held().reports
    }

    /// Returns how many reports could be sent now.
    pub(crate) fn ready(&self) -> usize {
        let now = Instant::now();
        self.held().all().map(|report_buffer| report_buffer.ready(now)).sum()
    }

    /// Returns when the first report can be sent.
    pub(crate) fn ready_at(&self) -> Option<Instant> {
        self.held().all().filter_map(ReportBuffer::ready_at).min()
    }

    /// Returns how long the oldest report that can be sent has waited.
    pub(crate) fn waited(&self) -> Duration {
        self.ready_at().map_or(Duration::ZERO, |at| at.elapsed())
    }

    /// Returns whether so many reports are held that the worker must claim nothing from any queue.
    pub(crate) fn is_full(&self) -> bool {
        let held = self.held();
        held.reports > HELD_MAX || held.bytes > HELD_BYTES_MAX
    }

    /// Returns whether so many reports of this queue are held that the worker must claim nothing
    /// from it.
    pub(crate) fn is_full_of(&self, queue: &QueueName) -> bool {
        let held = self.held();
        let buffers = held.buffers.get(queue).into_iter().flatten();
        buffers.map(|report_buffer| report_buffer.held).sum::<usize>() > QUEUE_HELD_MAX
    }

    /// Takes batches for at most this many script calls, the oldest first. The caller must answer,
    /// give back or refuse each batch.
    pub(crate) fn take(&self, calls: usize) -> Vec<ReportBatch> {
        let (mut held, now) = (self.held(), Instant::now());
        let (mut batches, mut bytes) = (Vec::new(), 0);
        while batches.len() < calls && bytes < TURN_BYTES_MAX {
            let buffers = held.buffers.values_mut().flatten();
            let ready = buffers
                .filter_map(|report_buffer| Some((report_buffer.ready_at()?, report_buffer)));
            let first = ready.min_by_key(|(at, _)| *at).filter(|(at, _)| *at <= now);
            let Some(report_batch) = first.and_then(|(_, report_buffer)| report_buffer.take(now))
            else {
                break;
            };
            bytes += report_batch.bytes;
            batches.push(report_batch);
        }
        batches
    }

    /// Keeps the batches that the claimer sends in one turn. Returns a number, with which the
    /// claimer takes them back.
    pub(crate) fn lend(&self, batches: Vec<ReportBatch>) -> u64 {
        let mut held = self.held();
        held.turns += 1;
        let turn = held.turns;
        if !batches.is_empty() {
            held.under_way.push((turn, batches));
        }
        turn
    }

    /// Returns the batches of that turn, or none if they were reclaimed.
    pub(crate) fn take_back(&self, turn: u64) -> Vec<ReportBatch> {
        let under_way = &mut self.held().under_way;
        let at = under_way.iter().position(|(number, _)| *number == turn);
        at.map_or_else(Vec::new, |at| under_way.swap_remove(at).1)
    }

    /// Puts back all batches that the claimer has sent, because it may never get the answers. A
    /// report that arrives twice counts once.
    pub(crate) fn reclaim(&self) {
        let mut held = self.held();
        for (_, batches) in std::mem::take(&mut held.under_way) {
            for mut report_batch in batches {
                report_batch.is_resent = true;
                held.report_buffer(&report_batch).give_back(report_batch);
            }
        }
    }

    /// Notes that the answer to a batch has arrived, so the batch is no longer held.
    fn answered(&self, report_batch: &ReportBatch) {
        let mut held = self.held();
        held.reports -= report_batch.len();
        held.bytes -= report_batch.bytes;
        if held.report_buffer(report_batch).pass(report_batch.len()) {
            let queue = report_batch.queue().clone();
            log_event!(self.log, INFO, %queue, "Redis accepts reports of this queue again");
        }
        drop(held);
        self.wakeups.reports_answered();
    }

    /// Notes that a batch was not answered.
    fn give_back(&self, report_batch: ReportBatch) {
        self.held().report_buffer(&report_batch).give_back(report_batch);
    }

    /// Notes that the answer to a batch was an error that is not transient.
    fn refused(&self, report_batch: ReportBatch, problem: &BrokerError) {
        let (queue, kind, now) = (report_batch.queue().clone(), report_batch.kind, Instant::now());
        let problem = problem.to_string();
        let mut held = self.held();
        match held.report_buffer(&report_batch).refuse(report_batch, now) {
            Refused::Held => {}
            Refused::BufferWaits => {
                log_event!(
                    self.log,
                    ERROR,
                    %queue,
                    ?kind,
                    error = problem,
                    "Redis refuses reports; they are held and sent again"
                );
            }
            Refused::Unreportable(report_batch) => {
                let before = report_batch.bytes;
                let id = report_batch.lease(0).map(|lease| display(lease.id.clone()));
                match report_batch.into_dead(&problem) {
                    Ok(dead) => {
                        let text =
                            "Redis refuses the report of a task; the task is reported as Dead";
                        log_event!(self.log, ERROR, id, error = problem, "{text}");
                        held.bytes = held.bytes + dead.bytes - before;
                        held.report_buffer(&dead).push_batch(dead);
                    }
                    Err(report_batch) => {
                        let text = "Redis refuses each report of a task; the report is held";
                        log_event!(self.log, ERROR, id, error = problem, "{text}");
                        held.report_buffer(&report_batch).park(report_batch, now);
                    }
                }
            }
        }
    }
}

/// Processes the answers to reports. Reports without an answer stay held. Returns `true` if Redis
/// answered all of them.
pub(crate) fn take_in_reports(
    shared: &Shared,
    batches: Vec<ReportBatch>,
    answers: &mut impl Iterator<Item = Result<Reply, BrokerError>>,
) -> bool {
    let mut worked = true;
    for mut report_batch in batches {
        let answer = answers.next().expect("each call has an answer");
        match answer.and_then(Broker::read_report) {
            Ok(reported) => {
                answered_reports::take_in(shared, &report_batch, &reported);
                shared.reporter.answered(&report_batch);
            }
            Err(problem) if problem.is_transient() => {
                report_batch.is_resent |= matches!(problem, BrokerError::Unknown(_));
                shared.reporter.give_back(report_batch);
                worked = false;
            }
            Err(problem) => shared.reporter.refused(report_batch, &problem),
        }
    }
    worked
}

#[cfg(test)]
mod tests {
    use optimus_core::{
        Lease, TaskId, Token, WorkerId,
        broker::{Give, Release},
    };

    use super::*;

    fn report() -> Report {
        let (queue, worker) = (QueueName::new("q").unwrap(), WorkerId::generate("test", 1));
        let lease = Lease { id: TaskId::new(queue), worker, token: Token { seq: 1, fence: 1 } };
        Report::Release(Release { lease, give: Give::Head })
    }

    #[test]
    fn reports_that_the_claimer_sent_are_sent_again_once_they_are_reclaimed() {
        let reporter = Reporter::new(Arc::default(), Log::here());
        reporter.push(report());
        let turn = reporter.lend(reporter.take(1));
        assert_eq!((reporter.ready(), reporter.len()), (0, 1));
        reporter.reclaim();
        assert_eq!((reporter.ready(), reporter.len()), (1, 1));
        assert!(reporter.take_back(turn).is_empty(), "the late answer no longer counts");
        let turn = reporter.lend(reporter.take(1));
        assert_eq!(reporter.take_back(turn).len(), 1);
    }
}
