//! One worker as a member of one roster: [`Member`]. It begins and ends the work of posts as the
//! answers of Redis say, and ends all of it before its lease ends.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc, time::Duration};

use optimus_core::{
    Changes, Granted, HeldPosts, InvalidName, Post, RosterName, ShardFailure, WorkerId,
    broker::{Broker, BrokerError, Hold, Holding, Refusal, ScriptCall},
    log_event,
};
use tokio::time::Instant;

use crate::{
    lease_state::BEATS_PER_LEASE,
    post_function::PostFunction,
    post_run::{Phase, PostRun, Work},
    shared::Shared,
};

/// The part of a lease before its certain end at which rounds are asked to end.
const WARN_PARTS: u32 = 6;
/// The shortest time between two heartbeats, as a fraction of a third of the lease.
const USUAL_LEAST: f64 = 0.9;
/// Members look for the posts of a dead one within this part of a lease after its end, so that they
/// do not all look at the same time.
const EXPIRY_PARTS: u32 = 75;
/// The shortest time between two heartbeats.
const BEAT_LEAST: Duration = Duration::from_millis(20);
/// How soon a member calls again after a call that failed.
const AGAIN: Duration = Duration::from_millis(250);

/// What a worker does as a member of one roster.
pub(crate) struct Member {
    shared: Arc<Shared>,
    function: PostFunction,
    roster: RosterName,
    epoch: Instant,
    held: HeldPosts,
    /// The number of the last heartbeat.
    beats: u64,
    runs: BTreeMap<Post, PostRun>,
    /// Grants that begin once the work under an earlier grant has ended.
    waiting: BTreeMap<Post, u64>,
    /// What must be given back now.
    back: Vec<Granted>,
    pub(crate) next_at: Instant,
    pub(crate) is_leaving: bool,
    pub(crate) has_left: bool,
    is_failing: bool,
}

impl Member {
    pub(crate) fn new(shared: Arc<Shared>, function: PostFunction) -> Result<Self, InvalidName> {
        let (roster, now) = (function.roster()?, Instant::now());
        Ok(Self {
            shared,
            function,
            roster,
            epoch: now,
            held: HeldPosts::default(),
            beats: 0,
            runs: BTreeMap::new(),
            waiting: BTreeMap::new(),
            back: Vec::new(),
            next_at: now,
            is_leaving: false,
            has_left: false,
            is_failing: false,
        })
    }

    pub(crate) fn roster(&self) -> &RosterName {
        &self.roster
    }

    fn worker(&self) -> &WorkerId {
        &self.shared.member
    }

    fn lease(&self) -> Duration {
        self.shared.config.lease
    }

    /// Returns how many posts have work that runs, or must be given back.
    pub(crate) fn open(&self) -> usize {
        self.runs.len() + self.back.len()
    }

    /// Ends all work: the worker shuts down.
    pub(crate) fn leave(&mut self, grace: Duration) {
        self.is_leaving = true;
        // So that the others no longer leave posts for this member.
        self.next_at = Instant::now();
        let granted: Vec<Granted> = self.held.shown();
        self.drain(&granted, grace);
    }

    /// Drops all work that still runs.
    pub(crate) fn abandon(&self) {
        self.runs.values().for_each(|run| run.advance(Phase::Abandon));
    }

    /// Notes which work has ended, and ends what may not go on.
    pub(crate) fn check(&mut self) {
        let (now, lease) = (Instant::now(), self.lease());
        let since = now.duration_since(self.epoch);
        let lost = self.held.lapse(since);
        self.stop(&lost);
        let warned_at = self.held.good_until().saturating_sub(lease / WARN_PARTS);
        for run in self.runs.values() {
            match run.drain_until {
                Some(until) if until <= now => run.advance(Phase::Abandon),
                _ if since >= warned_at => run.advance(Phase::Pause),
                _ => run.proceed(),
            }
        }
        let over: Vec<Post> =
            self.runs.iter().filter(|(_, run)| run.is_over()).map(|(post, _)| *post).collect();
        for post in over {
            let Some(run) = self.runs.remove(&post) else { continue };
            if self.held.ended(run.granted) {
                self.back.push(run.granted);
            }
            if let Some(fence) = self.waiting.remove(&post) {
                self.begin((post, fence));
            }
        }
    }

    /// Returns when the member must act next, if nothing happens before.
    pub(crate) fn next_check(&self) -> Instant {
        if self.has_left {
            return Instant::now() + self.lease();
        }
        let now = Instant::now();
        let drained = self.runs.values().filter_map(|run| run.drain_until);
        let drained = drained.filter(|until| *until > now);
        drained.chain(self.lease_ends()).fold(self.next_at, Instant::min)
    }

    /// Returns when the work must be asked to end, or must end, if Redis does not answer.
    pub(crate) fn lease_ends(&self) -> Option<Instant> {
        if self.runs.is_empty() {
            return None;
        }
        let (now, good) = (Instant::now(), self.epoch + self.held.good_until());
        let warned = good.checked_sub(self.lease() / WARN_PARTS).unwrap_or(good);
        [warned, good].into_iter().find(|at| *at > now)
    }

    /// Returns the next heartbeat.
    pub(crate) fn hold_call(&mut self, broker: &Broker) -> ScriptCall {
        self.beats += 1;
        let failing = self.runs.iter().filter_map(|(post, run)| Some((*post, run.failure()?)));
        let failing: Vec<_> = failing.collect();
        let description = &self.shared.description;
        let description = if failing.is_empty() {
            Cow::Borrowed(description)
        } else {
            Cow::Owned(ShardFailure::describe(description, failing.into_iter()))
        };
        let shown = self.held.shown();
        let keeps_everything = broker.endpoint().keeps_everything();
        let hold = Hold {
            worker: self.worker(),
            lease: self.lease(),
            asked: self.function.posts(),
            heard: self.held.heard(),
            shown: &shown,
            quiet: if keeps_everything { Duration::ZERO } else { self.lease() },
            is_leaving: self.is_leaving,
            description: &description,
            number: self.beats,
        };
        broker.hold_call(&self.roster, &hold)
    }

    /// Takes in the answer to a heartbeat that was sent at `sent`.
    pub(crate) fn answered(&mut self, sent: Instant, holding: &Holding) {
        let now = Instant::now();
        let times = (sent.duration_since(self.epoch), now.duration_since(self.epoch));
        let (before, is_first) = (self.held.shown().len(), self.held.heard().generation == 0);
        let changes = self.held.answered(times, self.lease(), holding.heard, &holding.posts);
        self.apply(changes, before);
        if is_first && holding.heard.generation > 0 {
            self.greet();
        }
        self.is_failing = false;
        let (interval, chance) = (self.lease() / BEATS_PER_LEASE, fastrand::f64());
        let usual = interval.mul_f64(USUAL_LEAST + (1.0 - USUAL_LEAST) * chance);
        let spread = (self.lease() / EXPIRY_PARTS).mul_f64(chance);
        let expiry = holding.next_expiry.map_or(usual, |next| next + spread);
        let soon = holding.soon.map_or(usual, |soon| soon + spread);
        self.next_at = now + usual.min(expiry).min(soon).max(BEAT_LEAST);
    }

    /// Notes that a heartbeat failed. The connection logs failures that pass by themselves. One
    /// that is stale has arrived twice, and its first answer is lost: the next one hears it.
    pub(crate) fn failed(&mut self, problem: &BrokerError) {
        self.next_at = Instant::now() + AGAIN.min(self.lease() / BEATS_PER_LEASE);
        let passes = problem.is_transient() || matches!(problem.refusal(), Some(Refusal::Stale));
        if !passes && !std::mem::replace(&mut self.is_failing, true) {
            let (name, error) = (self.function.name(), problem.to_string());
            let text = self.function.texts().refused;
            log_event!(self.shared.log, ERROR, name, error, "{text}");
        }
    }

    /// Takes what must be given back.
    pub(crate) fn take_back(&mut self) -> Vec<Granted> {
        std::mem::take(&mut self.back)
    }

    /// Returns whether all work has ended, so that the member can leave.
    pub(crate) fn can_leave(&self) -> bool {
        self.is_leaving && !self.has_left && self.runs.is_empty()
    }

    /// Returns whether nothing of its work runs.
    pub(crate) fn is_idle(&self) -> bool {
        self.runs.is_empty()
    }

    fn apply(&mut self, changes: Changes, before: usize) {
        let Changes { start, drain, stop, back } = changes;
        self.stop(&stop);
        self.drain(&drain, self.shared.config.shutdown_grace);
        self.back.extend(back);
        let (started, ending, lost) = (start.len(), drain.len(), stop.len());
        for granted in start {
            if self.is_leaving {
                self.held.ended(granted);
                self.back.push(granted);
            } else if self.runs.contains_key(&granted.0) {
                self.waiting.insert(granted.0, granted.1);
            } else {
                self.begin(granted);
            }
        }
        if started + ending + lost > 0 {
            let (name, held) = (self.function.name(), self.held.shown().len());
            let text = self.function.texts().changed;
            log_event!(self.shared.log, INFO, name, before, held, started, ending, lost, "{text}");
        }
    }

    fn begin(&mut self, granted: Granted) {
        let run = PostRun::begin(Work {
            shared: self.shared.clone(),
            function: self.function.clone(),
            roster: self.roster.clone(),
            worker: self.worker().clone(),
            granted,
            count: self.held.heard().count,
        });
        self.runs.insert(granted.0, run);
    }

    /// Asks the work of these to end, and drops it after the grace.
    fn drain(&mut self, granted: &[Granted], grace: Duration) {
        for granted in granted {
            match self.runs.get_mut(&granted.0) {
                Some(run) if run.granted == *granted => {
                    run.drain_until.get_or_insert(Instant::now() + grace);
                    run.advance(Phase::Drain);
                }
                // Its work has not begun.
                _ => {
                    self.waiting.remove(&granted.0);
                    if self.held.ended(*granted) {
                        self.back.push(*granted);
                    }
                }
            }
        }
    }

    /// Drops the work of these.
    fn stop(&mut self, lost: &[Granted]) {
        for (post, fence) in lost {
            if self.waiting.get(post) == Some(fence) {
                self.waiting.remove(post);
            }
            if let Some(run) = self.runs.get(post).filter(|run| run.granted.1 == *fence) {
                run.advance(Phase::Abandon);
            }
        }
    }

    /// Says that Redis has another count than the code.
    fn greet(&self) {
        let (count, asked) = (self.held.heard().count, self.function.posts());
        if count != asked {
            let (name, text) = (self.function.name(), self.function.texts().other_count);
            log_event!(self.shared.log, INFO, name, count, asked, "{text}");
        }
    }
}
