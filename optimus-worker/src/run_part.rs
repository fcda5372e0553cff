//! The part of a task in a run of several calls: [`Part`].
//!
//! A run has one attempt that leads: the handler, its context, its slot and its deadline are those
//! of this attempt. The other calls follow it. Each has its own lease and its own report.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, Weak,
    atomic::{AtomicBool, Ordering},
};

use crate::attempts::{Attempt, Stop};

/// The part of a task in a run.
#[derive(Debug)]
pub(crate) enum Part {
    /// The task is not gathered.
    Alone,
    Leads(Box<Run>),
    Follows {
        leader: Weak<Attempt>,
        is_cancelled: AtomicBool,
    },
}

/// The run that an attempt leads.
#[derive(Debug)]
pub(crate) struct Run {
    /// How many calls the run may have.
    pub(crate) most: usize,
    state: Mutex<State>,
    is_cancelled: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    followers: Vec<Arc<Attempt>>,
    /// Whether all calls of the run are here.
    is_complete: bool,
}

impl Run {
    fn new(most: usize) -> Self {
        Self { most, state: Mutex::default(), is_cancelled: AtomicBool::new(false) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Part {
    /// Returns the part of an attempt that leads a run of up to this many calls.
    pub(crate) fn leads(most: usize) -> Self {
        Self::Leads(Box::new(Run::new(most)))
    }

    /// Returns the part of a call that follows this attempt.
    pub(crate) fn after(leader: &Arc<Attempt>) -> Self {
        let (leader, is_cancelled) = (Arc::downgrade(leader), AtomicBool::new(false));
        Self::Follows { leader, is_cancelled }
    }

    /// Returns the run that the attempt leads.
    pub(crate) fn run(&self) -> Option<&Run> {
        match self {
            Self::Leads(run) => Some(run),
            Self::Alone | Self::Follows { .. } => None,
        }
    }

    /// Returns how many calls the run has, if the attempt leads one.
    pub(crate) fn calls(&self) -> Option<usize> {
        self.run().map(|run| 1 + run.state().followers.len())
    }

    /// Notes that the task was cancelled.
    fn cancel(&self) {
        match self {
            Self::Alone => {}
            Self::Leads(run) => run.is_cancelled.store(true, Ordering::Release),
            Self::Follows { is_cancelled, .. } => is_cancelled.store(true, Ordering::Release),
        }
    }

    fn is_cancelled(&self) -> bool {
        match self {
            Self::Alone => false,
            Self::Leads(run) => run.is_cancelled.load(Ordering::Acquire),
            Self::Follows { is_cancelled, .. } => is_cancelled.load(Ordering::Acquire),
        }
    }
}

impl Attempt {
    /// Returns whether the two are calls of one run.
    pub(crate) fn is_in_run_of(&self, other: &Self) -> bool {
        let leader = |attempt: &Self| match &attempt.part {
            Part::Alone => None,
            Part::Leads(_) => Some(std::ptr::from_ref(attempt)),
            Part::Follows { leader, .. } => Some(leader.as_ptr()),
        };
        leader(self).is_some_and(|run| leader(other) == Some(run))
    }

    /// Returns the calls that follow this one in its run.
    pub(crate) fn followers(&self) -> Vec<Arc<Self>> {
        self.part.run().map_or_else(Vec::new, |run| run.state().followers.clone())
    }

    /// Adds calls to the run. Returns them if the attempt has ended: the caller settled it before
    /// it read the calls, and will not report these.
    pub(crate) fn add_followers(&self, calls: Vec<Arc<Self>>) -> Result<(), Vec<Arc<Self>>> {
        let Some(run) = self.part.run() else { return Err(calls) };
        let mut state = run.state();
        if self.is_settled() {
            return Err(calls);
        }
        state.followers.extend(calls);
        Ok(())
    }

    /// Removes a call that ends apart from its run.
    pub(crate) fn remove_follower(&self, call: &Arc<Self>) {
        if let Some(run) = self.part.run() {
            run.state().followers.retain(|other| !Arc::ptr_eq(other, call));
        }
    }

    /// Notes that all calls of the run are here.
    pub(crate) fn complete_run(&self) {
        if let Some(run) = self.part.run() {
            run.state().is_complete = true;
        }
        self.stop_if_cancelled();
    }

    /// Notes that the task was cancelled. Its handler is asked to stop, unless it runs other calls
    /// that were not cancelled.
    pub(crate) fn cancel(&self) {
        self.part.cancel();
        match &self.part {
            Part::Alone => self.stop(Stop::Cancelled),
            Part::Leads(_) => self.stop_if_cancelled(),
            Part::Follows { leader, .. } => {
                if let Some(leader) = leader.upgrade() {
                    leader.stop_if_cancelled();
                }
            }
        }
    }

    fn stop_if_cancelled(&self) {
        let Some(run) = self.part.run() else { return };
        let state = run.state();
        let all = self.part.is_cancelled()
            && state.is_complete
            && state.followers.iter().all(|call| call.part.is_cancelled());
        drop(state);
        if all {
            self.stop(Stop::Cancelled);
        }
    }
}
