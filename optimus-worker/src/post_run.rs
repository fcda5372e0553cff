//! The work of one post: rounds of a sharded function, one after the other, until the post is given
//! back or lost. [`PostRun`] is the control of it.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use optimus_core::{
    Granted, Progress, RosterName, Round, Shard, ShardFacts, ShardFailure, Sharded, StopSignal,
    Walk, WorkerId,
    broker::{BrokerError, Holder},
    platform,
};
use tokio::{
    runtime::Handle,
    sync::watch,
    time::{Instant, sleep},
};

use crate::{
    post_function::PostFunction,
    shared::Shared,
    source_scan,
    spin_watch::SpinWatch,
    user_round::{self, RoundEnd},
};

/// The wait after a round that failed, and the longest one.
const FAILED_WAIT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// The first rest after a round that found nothing is this part of the longest rest.
const IDLE_PARTS: u32 = 8;
/// How soon positions are read again after Redis did not answer.
pub(crate) const READ_AGAIN: Duration = Duration::from_millis(250);

/// How far the work of a post may go. A later phase never becomes an earlier one, except that a
/// pause ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Rounds follow each other.
    Run,
    /// The lease may end: the round is asked to end, and no other begins before the lease is
    /// renewed.
    Pause,
    /// The round is asked to end, and no other begins.
    Drain,
    /// The round is dropped.
    Abandon,
}

/// The control of the work of one post.
pub(crate) struct PostRun {
    pub(crate) granted: Granted,
    /// When the round is dropped, while it drains.
    pub(crate) drain_until: Option<Instant>,
    state: Arc<State>,
}

/// What the work and its control share.
pub(crate) struct State {
    phase: watch::Sender<Phase>,
    /// Asks the present round to stop. It is asked on the maintenance thread, because the handler
    /// may run without a break.
    round: Mutex<Arc<StopSignal>>,
    /// Where those who wait for that are woken.
    runtime: Handle,
    is_over: AtomicBool,
    /// The last rounds, if they have failed.
    failure: Mutex<Option<ShardFailure>>,
}

/// What a run needs to know.
pub(crate) struct Work {
    pub(crate) shared: Arc<Shared>,
    pub(crate) function: PostFunction,
    pub(crate) roster: RosterName,
    pub(crate) worker: WorkerId,
    pub(crate) granted: Granted,
    pub(crate) count: u16,
}

impl PostRun {
    /// Begins the work of a post on the handlers' runtime.
    pub(crate) fn begin(work: Work) -> Self {
        let state = Arc::new(State {
            phase: watch::Sender::new(Phase::Run),
            round: Mutex::default(),
            is_over: AtomicBool::new(false),
            runtime: work.shared.runtime.clone(),
            failure: Mutex::default(),
        });
        let granted = work.granted;
        let over = Over { state: state.clone(), shared: work.shared.clone() };
        let runtime = work.shared.runtime.clone();
        let threads = work.shared.config.user_threads.clone();
        drop(runtime.spawn(threads.run(|| work.run(over))));
        Self { granted, drain_until: None, state }
    }

    /// Returns whether nothing of the work runs any more.
    pub(crate) fn is_over(&self) -> bool {
        self.state.is_over.load(Ordering::Acquire)
    }

    /// Returns the last rounds, if they have failed.
    pub(crate) fn failure(&self) -> Option<ShardFailure> {
        self.state.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Moves the work to a later phase.
    pub(crate) fn advance(&self, phase: Phase) {
        self.state.set(|now| phase.max(now));
    }

    /// Ends a pause.
    pub(crate) fn proceed(&self) {
        self.state.set(|now| if now == Phase::Pause { Phase::Run } else { now });
    }
}

impl Drop for PostRun {
    /// No round goes on without its control, which would end it with the lease.
    fn drop(&mut self) {
        self.advance(Phase::Abandon);
    }
}

impl State {
    fn set(&self, next: impl Fn(Phase) -> Phase) {
        let mut is_stopping = false;
        self.phase.send_if_modified(|phase| {
            let next = next(*phase);
            is_stopping = next != Phase::Run;
            std::mem::replace(phase, next) != next
        });
        let round = self.round().clone();
        if is_stopping {
            StopSignal::stop_on(&round, &self.runtime);
        }
    }

    pub(crate) fn set_failure(&self, failure: Option<ShardFailure>) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    /// Only signals are under this lock, and no user code.
    fn round(&self) -> MutexGuard<'_, Arc<StopSignal>> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the signal of a new round; `None` if no round may begin now.
    fn begin_round(&self) -> Option<Arc<StopSignal>> {
        let mut round = self.round();
        *round = Arc::default();
        // A phase that is set from now on finds the new signal.
        (*self.phase.borrow() == Phase::Run).then(|| round.clone())
    }

    /// Returns the signal of the next round once one may begin; `None` if the post must be given
    /// back before.
    pub(crate) async fn next_round(&self) -> Option<Arc<StopSignal>> {
        loop {
            if let Some(round) = self.begin_round() {
                return Some(round);
            }
            let mut phases = self.phase.subscribe();
            let now = phases.wait_for(|now| *now != Phase::Pause).await;
            if now.is_ok_and(|now| *now != Phase::Run) {
                return None;
            }
        }
    }

    /// Rests, and returns whether the post must be given back now.
    pub(crate) async fn drains_within(&self, rest: Duration) -> bool {
        tokio::select! {
            biased;
            () = self.reached(Phase::Drain) => true,
            () = sleep(rest) => false,
        }
    }

    /// Resolves once the phase is at least this one.
    pub(crate) async fn reached(&self, phase: Phase) {
        let mut phases = self.phase.subscribe();
        // The sender is a part of this state.
        drop(phases.wait_for(|now| *now >= phase).await);
    }
}

/// Notes the end of the work, also if the runtime has dropped it.
struct Over {
    state: Arc<State>,
    shared: Arc<Shared>,
}

impl Drop for Over {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::Release);
        self.shared.wakeups.post_ended();
    }
}

impl Work {
    async fn run(self, over: Over) {
        let state = over.state.clone();
        match &self.function {
            PostFunction::Sharded(sharded) => Box::pin(self.rounds(&state, sharded)).await,
            PostFunction::Source(desk) => Box::pin(source_scan::run(&self, &state, desk)).await,
        }
        drop(over);
    }

    async fn rounds(&self, state: &State, sharded: &Sharded) {
        let Some(progress) = self.read_progress(state).await else { return };
        let (post, mut failures, mut idles) = (self.granted.0, 0_u32, 0_u32);
        let mut spins = SpinWatch::default();
        let once = sharded.options().walk == Walk::Once;
        loop {
            if once && progress.has_ended(post.generation, post.index) {
                state.reached(Phase::Drain).await;
                return;
            }
            let Some(token) = state.next_round().await else { return };
            let began = Instant::now();
            let end = self.round(state, token, &progress, sharded).await;
            if let RoundEnd::Returned(round) = end {
                self.works_again(state, std::mem::take(&mut failures));
                if round == Round::Again {
                    idles = 0;
                    self.watch(&mut spins, began, &progress);
                    platform::yield_now().await;
                    continue;
                }
            }
            spins.rest();
            let rest = match end {
                RoundEnd::Abandoned => return,
                RoundEnd::Returned(_) if once => {
                    self.end_pass(state, &progress).await;
                    continue;
                }
                RoundEnd::Returned(_) => {
                    idles = idles.saturating_add(1);
                    idle_rest(sharded.options().idle, idles)
                }
                RoundEnd::Failed(error) => {
                    failures = failures.saturating_add(1);
                    let wait = failed_wait(failures, fastrand::f64());
                    self.failed(state, error, failures, wait);
                    wait
                }
            };
            if state.drains_within(rest).await {
                return;
            }
        }
    }

    /// Reads how far the posts have come; `None` if the post must be given back before.
    pub(crate) async fn read_progress(&self, state: &State) -> Option<Arc<Progress>> {
        loop {
            match self.shared.shards_broker.positions(&self.roster).await {
                Ok(before) => {
                    state.set_failure(None);
                    return Some(Arc::new(Progress::from(before)));
                }
                Err(problem) if problem.is_transient() => {}
                Err(problem) => {
                    self.failed(state, problem.to_string(), 1, FAILED_WAIT.0);
                }
            }
            if state.drains_within(READ_AGAIN).await {
                return None;
            }
        }
    }

    /// Stores that the pass over the shard has ended.
    async fn end_pass(&self, state: &State, progress: &Progress) {
        while *state.phase.borrow() <= Phase::Pause {
            match self.shared.shards_broker.checkpoint(&self.holder(), "").await {
                Ok(()) => {
                    progress.end();
                    return;
                }
                // The post is lost, which the next heartbeat finds, too.
                Err(BrokerError::Refused(..)) => state.reached(Phase::Drain).await,
                Err(_) => {
                    state.drains_within(READ_AGAIN).await;
                }
            }
        }
    }

    pub(crate) fn holder(&self) -> Holder {
        let (roster, worker) = (self.roster.clone(), self.worker.clone());
        Holder { roster, worker, granted: self.granted }
    }

    /// Returns what the function sees of the post.
    pub(crate) fn shard(&self, stopping: Arc<StopSignal>, progress: &Arc<Progress>) -> Shard {
        let (post, fence) = self.granted;
        Shard::of(ShardFacts {
            name: self.function.name().to_owned(),
            index: post.index,
            count: self.count,
            generation: post.generation,
            fence,
            data: self.shared.data.clone(),
            stopping,
            progress: progress.clone(),
            holder: Some((self.shared.shards_broker.clone(), self.holder())),
        })
    }

    /// Runs one round. The future is dropped if the post must be given up at once.
    async fn round(
        &self,
        state: &State,
        stopping: Arc<StopSignal>,
        progress: &Arc<Progress>,
        sharded: &Sharded,
    ) -> RoundEnd<Round> {
        let shard = self.shard(stopping.clone(), progress);
        let ended = user_round::run(&self.shared, state, None, || sharded.run(shard)).await;
        stopping.stop();
        ended
    }
}

/// Returns the rest after the last `idles` rounds have found nothing.
fn idle_rest(longest: Duration, idles: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(idles.saturating_sub(1));
    (longest / IDLE_PARTS).saturating_mul(doubled).min(longest)
}

/// Returns the wait after the last `failures` rounds have failed; `random` is in \[0, 1).
pub(crate) fn failed_wait(failures: u32, random: f64) -> Duration {
    let (first, longest) = FAILED_WAIT;
    let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
    first.saturating_mul(doubled).min(longest).mul_f64(0.75 + 0.5 * random)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn rests_grow_to_the_longest_one() {
        let rests: Vec<_> = (1..=5).map(|idles| idle_rest(8 * S, idles)).collect();
        assert_eq!(rests, [S, 2 * S, 4 * S, 8 * S, 8 * S]);
        assert_eq!(idle_rest(8 * S, u32::MAX), 8 * S);
        let waits: Vec<_> = [1, 2, 7, u32::MAX].map(|times| failed_wait(times, 0.5)).into();
        assert_eq!(waits, [S, 2 * S, 60 * S, 60 * S]);
    }

    #[tokio::test]
    async fn a_phase_only_advances_except_that_a_pause_ends() {
        let state = Arc::new(State {
            phase: watch::Sender::new(Phase::Run),
            round: Mutex::default(),
            is_over: AtomicBool::new(false),
            runtime: Handle::current(),
            failure: Mutex::default(),
        });
        let granted = (optimus_core::Post { generation: 1, index: 0 }, 1);
        let run = PostRun { granted, drain_until: None, state };
        let round = run.state.begin_round().unwrap();
        run.advance(Phase::Pause);
        assert!(round.is_asked() && run.state.begin_round().is_none());
        run.proceed();
        let round = run.state.begin_round().unwrap();
        run.advance(Phase::Drain);
        run.proceed();
        assert!(round.is_asked() && run.state.begin_round().is_none());
        run.advance(Phase::Pause);
        assert_eq!(*run.state.phase.borrow(), Phase::Drain);
    }
}
