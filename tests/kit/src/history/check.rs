//! Checks the invariants over a whole history: [`check`].

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::account::{Account, Answer, Execution};
use super::acts::{Acts, LATE_BEGIN, ns};
use super::limits::Rules as LimitRules;
use super::queues::Queues;
use super::repeat_reason::explain;
use super::verdict::{Findings, Verdict};
use super::{Event, Found, How, Why, after, biz, lanes, limits, read_history};

/// The tolerance of due times. Delays are rounded to ms when they are sent.
const EARLY_NS_MAX: u64 = 3_000_000;

/// The facts about a run that the checker must know.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The lease of a worker that reported none. A fault that lasts up to half a lease is harmless.
    pub lease: Duration,
}

/// Checks all histories in a folder.
///
/// # Errors
///
/// When they can't be read. A broken invariant is not an error, but part of the verdict.
pub fn check(folder: &Path, rules: &Rules) -> io::Result<Verdict> {
    let mut all = All::default();
    read_history(folder, |event| all.add(event))?;
    Ok(all.check_all(rules))
}

/// Checks a history that was never written to a file.
pub fn check_events(events: impl IntoIterator<Item = Event>, rules: &Rules) -> Verdict {
    let mut all = All::default();
    events.into_iter().for_each(|event| all.add(event));
    all.check_all(rules)
}

/// A whole history: all events of tasks, queues and processes.
#[derive(Default)]
struct All {
    accounts: HashMap<u64, Account>,
    queues: Queues,
    limits: LimitRules,
    acts: Acts,
}

impl All {
    fn add(&mut self, event: Event) {
        if let Some(task) = event.what.task() {
            self.accounts.entry(task).or_default().add(event);
        } else {
            self.acts.add(&event);
            self.limits.add(&event);
            self.queues.add(event);
        }
    }

    fn check_all(self, rules: &Rules) -> Verdict {
        let Self { mut accounts, queues, limits, mut acts } = self;
        acts.sort();
        let (mut verdict, mut findings) = (Verdict::default(), Findings::default());
        verdict.kills = acts.kills();
        verdict.freezes = acts.frozen.values().map(|spans| spans.len() as u64).sum();
        for (task, account) in &mut accounts {
            account.sort();
            count(account, &mut verdict);
            let check_all = Checker { task: *task, account, acts: &acts, rules };
            check_all.submit(&mut findings);
            check_all.fences(&mut findings);
            check_all.second_executions(&mut verdict, &mut findings);
            check_all.times(&mut findings);
            check_all.operations(&mut findings);
            check_all.pauses(&queues, &mut findings);
            check_all.ending(&mut verdict, &mut findings);
            recoveries(account, &acts, &mut verdict);
        }
        biz::check(&accounts, &acts, &mut findings);
        let all = History { accounts: &accounts, acts: &acts, rules };
        lanes::check(&all, &mut findings);
        limits::check(&all, &limits, &mut findings);
        after::check(&all, &mut findings);
        verdict.found = findings.count;
        findings.told.sort();
        let tell =
            |(task, what): &(u64, String)| format!("task {task} {what}: {:?}", accounts[task]);
        verdict.findings = findings.told.iter().map(tell).collect();
        verdict
    }
}

fn count(account: &Account, verdict: &mut Verdict) {
    verdict.submitted += u64::from(account.invoked.is_some());
    match account.answer {
        Some((_, Answer::Acked { .. })) => verdict.acked += 1,
        Some((_, Answer::Duplicate { .. })) => verdict.duplicates += 1,
        Some((_, Answer::Refused)) => verdict.refused += 1,
        // A client that was killed received no answer.
        Some((_, Answer::Unknown)) | None => {
            verdict.unknown += u64::from(account.invoked.is_some());
        }
    }
    verdict.executed += u64::from(!account.executions.is_empty());
    verdict.executions += account.executions.len() as u64;
}

/// Returns the time from a worker's kill until another worker began its running tasks.
fn recoveries(account: &Account, acts: &Acts, verdict: &mut Verdict) {
    for pair in account.executions.windows(2) {
        let [lost, next] = pair else { continue };
        let killed = acts.killed_since(lost.pid, lost.begun).filter(|_| lost.end.is_none());
        if let Some(wait) = killed.and_then(|at| next.begun.checked_sub(at)) {
            verdict.recoveries.push(Duration::from_nanos(wait));
        }
    }
}

/// The facts that the checks of several tasks need.
pub(super) struct History<'a> {
    pub(super) accounts: &'a HashMap<u64, Account>,
    pub(super) acts: &'a Acts,
    rules: &'a Rules,
}

impl History<'_> {
    /// Returns whether the worker missed its heartbeats, so that another worker may have the task.
    pub(super) fn may_be_taken_over(&self, run: &Execution, until: u64) -> bool {
        self.acts.kept(run.pid, run.begun, until, self.rules.lease).is_some()
    }

    /// Returns whether the worker could not begin a claimed task until its lease was over.
    pub(super) fn may_begin_late(&self, run: &Execution) -> bool {
        let since = run.begun.saturating_sub(ns(LATE_BEGIN));
        self.acts.kept(run.pid, since, run.begun, self.rules.lease).is_some()
    }
}

/// The check of one task.
pub(super) struct Checker<'a> {
    pub(super) task: u64,
    pub(super) account: &'a Account,
    pub(super) acts: &'a Acts,
    rules: &'a Rules,
}

impl Checker<'_> {
    /// Checks that only submitted tasks run, and that one submit makes one task.
    fn submit(&self, findings: &mut Findings) {
        let account = self.account;
        for oddity in &account.oddities {
            findings.add(self.task, *oddity);
        }
        let Some(first) = account.executions.first() else { return };
        if account.invoked.is_none() {
            findings.add(self.task, "ran, but no client submitted it");
        }
        match &account.answer {
            Some((_, Answer::Refused)) => findings.add(self.task, "ran, but was refused"),
            Some((_, Answer::Duplicate { .. })) => {
                findings.add(self.task, "ran, but was a duplicate of another");
            }
            _ => {}
        }
        let id = account.acked_id().unwrap_or(&first.id);
        if account.executions.iter().any(|run| run.id != id) {
            findings.add(self.task, "was submitted once and became two tasks");
        }
    }

    /// Checks that each attempt has its own fence, which is higher than the fences before it.
    fn fences(&self, findings: &mut Findings) {
        for pair in self.account.executions.windows(2) {
            let [lower, higher] = pair else { continue };
            if lower.fence == higher.fence {
                findings.add(self.task, "ran twice under one fence");
            } else if lower.begun > higher.begun && !self.may_begin_late(lower) {
                findings.add(self.task, "began under a lower fence than before");
            }
            if lower.attempt > higher.attempt && !self.counts_from_zero(lower, higher) {
                findings.add(self.task, "has a lower attempt number than before");
            }
        }
    }

    /// Returns whether an operator's requeue has set the count to zero.
    fn counts_from_zero(&self, lower: &Execution, higher: &Execution) -> bool {
        self.account.requeues.possible().any(|requeue| requeue.asked <= higher.begun)
            || self.acts.rolled_back(lower.begun, higher.begun)
    }

    /// Returns whether the worker missed its heartbeats, so that another worker may have the task.
    pub(super) fn may_be_taken_over(&self, run: &Execution, until: u64) -> bool {
        self.acts.kept(run.pid, run.begun, until, self.rules.lease).is_some()
    }

    /// Returns whether the worker could not begin a claimed task until its lease was over.
    pub(super) fn may_begin_late(&self, run: &Execution) -> bool {
        let since = run.begun.saturating_sub(ns(LATE_BEGIN));
        self.acts.kept(run.pid, since, run.begun, self.rules.lease).is_some()
    }

    /// Checks that each repeated execution has a reason.
    fn second_executions(&self, verdict: &mut Verdict, findings: &mut Findings) {
        for pair in self.account.executions.windows(2) {
            let [previous, next] = pair else { continue };
            let why = self.why(previous, next.begun);
            *verdict.second.entry(why).or_default() += 1;
            if why == Why::Unexplained {
                findings.add(self.task, "ran once more without a reason");
            }
        }
    }

    fn why(&self, previous: &Execution, until: u64) -> Why {
        explain(self.account, previous, until, self.acts, self.rules)
    }

    /// Checks that no task runs before its due time.
    fn times(&self, findings: &mut Findings) {
        let account = self.account;
        if let (Some(invoked), Some(first)) = (account.invoked, account.executions.first()) {
            let due = invoked.at + invoked.delay_ms * 1_000_000;
            // A task that was cancelled and requeued is due at once.
            let mut possible = account.requeues.possible();
            let requeued = possible.any(|requeue| requeue.asked <= first.begun);
            let hastened = self.acts.hastened(invoked.at, first.begun);
            if first.begun + EARLY_NS_MAX < due && !requeued && !hastened {
                findings.add(self.task, "ran before it was due");
            }
        }
    }

    /// Checks that each acknowledged task has ended once, in the state of its last attempt.
    fn ending(&self, verdict: &mut Verdict, findings: &mut Findings) {
        let account = self.account;
        let last = account.executions.last();
        let Some((state, fence)) = account.found else {
            if account.acked_at().is_some() {
                findings.add(self.task, "was acknowledged, and its end was not checked");
            }
            return;
        };
        match state {
            Found::Live => findings.add(self.task, "has not ended"),
            Found::Success | Found::Forgotten => match last {
                Some(run) if run.ended_as(How::Ok) => self.recorded(run, fence, findings),
                // A rollback may undo a later attempt that had taken the task over.
                _ if self.may_be_of_earlier(fence) => {}
                _ if account.acked_at().is_none() => {}
                _ if self.may_be_deleted(state) => {}
                _ if self.may_be_gone() => verdict.rolled_back += 1,
                _ => findings.add(self.task, "was acknowledged and is lost"),
            },
            Found::Dead | Found::Cancelled if account.waits && account.executions.is_empty() => {}
            Found::Dead if !self.may_have_died() => {
                findings.add(self.task, "is dead, though nothing failed");
            }
            Found::Cancelled if account.cancels.possible().next().is_none() => {
                findings.add(self.task, "is cancelled, though no operator requested that");
            }
            Found::Dead | Found::Cancelled => {}
        }
    }

    /// Returns whether the last attempt may have failed or been lost. A task that never began was
    /// lost with the worker that had claimed it.
    fn may_have_died(&self) -> bool {
        let Self { account, acts, rules, .. } = self;
        match (account.executions.last(), &account.invoked) {
            (Some(run), _) => self.why(run, u64::MAX) != Why::Unexplained,
            (None, Some(invoked)) => acts.may_have_lost(invoked.at, u64::MAX, rules.lease),
            (None, None) => false,
        }
    }

    /// Returns whether the stored result may belong to an earlier attempt, because of a rollback.
    fn may_be_of_earlier(&self, fence: u64) -> bool {
        let mut runs = self.account.executions.iter();
        let kept = runs.find(|run| run.fence == fence && run.ended_as(How::Ok));
        kept.is_some_and(|run| self.acts.rolled_back(run.begun, u64::MAX))
    }

    /// Checks that the stored result belongs to the last attempt, because Redis refuses a late
    /// result.
    fn recorded(&self, last: &Execution, fence: u64, findings: &mut Findings) {
        if fence == 0 || fence == last.fence {
            return;
        }
        let known = self.account.executions.iter().find(|run| run.fence == fence);
        match known {
            None => findings.add(self.task, "has the result of an attempt that never began"),
            Some(run) if !self.acts.rolled_back(run.begun, u64::MAX) => {
                findings.add(self.task, "has the result of an attempt that had lost its lease");
            }
            Some(_) => {}
        }
    }

    /// Returns whether the task may be forgotten because an operator deleted it.
    fn may_be_deleted(&self, state: Found) -> bool {
        state == Found::Forgotten && self.account.deletes.possible().next().is_some()
    }

    /// Returns whether a Redis that rolled back may have acknowledged the submit, even before the
    /// answer arrived.
    fn may_be_gone(&self) -> bool {
        let since = |at| self.account.invoked.map_or(at, |invoked| invoked.at);
        self.account.acked_at().is_some_and(|at| self.acts.rolled_back(since(at), at))
    }
}
