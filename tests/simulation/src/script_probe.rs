//! Observes each `redis.call` of each script, and can make one of them fail: [`Probe`].

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use optimus_core::broker::script_texts;
use optimus_embedded::simulation::{Observer, RedisCall};

use crate::exchange_fault::Refusal;
use crate::script_coverage::{Coverage, Place};

/// The errors that replace the reply of the failing call: a lasting and a passing one for each kind
/// of command.
const READS_FAIL: [&str; 2] = [
    "NOPERM this user has no permissions to run a command or to access a key",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
];
const WRITES_FAIL: [&str; 2] = [
    "NOPERM this user has no permissions to run a command or to access a key",
    "READONLY You can't write against a read only replica.",
];

/// An observer. Clones observe the same store.
#[derive(Clone, Debug, Default)]
pub struct Probe(Arc<Mutex<State>>);

/// The position of a call in a run.
#[derive(Clone, Copy, Debug)]
pub struct Sighting {
    /// The number of the exchange.
    pub exchange: u64,
    /// The index of the script in the exchange.
    pub script: usize,
    /// The index of the call in the script.
    pub nth: usize,
}

#[derive(Debug)]
struct State {
    names: HashMap<&'static str, &'static str>,
    script: &'static str,
    calls: usize,
    /// The call of the next script that must fail, and how.
    armed: Option<(usize, Refusal)>,
    /// The current exchange, and its current script.
    moment: (u64, usize),
    /// The first position of each call that a script made before its first write.
    sightings: BTreeMap<(Place, String), Sighting>,
    coverage: Coverage,
}

impl Default for State {
    fn default() -> Self {
        let names = script_texts().map(|(name, _, sha)| (sha, name)).collect();
        Self {
            names,
            script: "",
            calls: 0,
            armed: None,
            moment: (0, 0),
            sightings: BTreeMap::new(),
            coverage: Coverage::default(),
        }
    }
}

impl Probe {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes call `nth` of the next script fail, counted from 0, if it comes before the script's
    /// first write. A later call can't fail, because Redis refuses nothing to a script that has
    /// written.
    pub fn arm(&self, nth: usize, refusal: Refusal) {
        self.state().armed = Some((nth, refusal));
    }

    /// Removes the pending failure.
    pub fn disarm(&self) {
        self.state().armed = None;
    }

    /// Notes that a script of an exchange starts next.
    pub(crate) fn enter(&self, exchange: u64, script: usize) {
        self.state().moment = (exchange, script);
    }

    /// Returns the first position of each call that a script made before its first write.
    pub fn sightings(&self) -> BTreeMap<(Place, String), Sighting> {
        self.state().sightings.clone()
    }

    /// Returns the calls that were observed and failed so far.
    pub fn coverage(&self) -> Coverage {
        self.state().coverage.clone()
    }
}

impl Observer for Probe {
    fn begins(&mut self, sha: &str) {
        let mut state = self.state();
        state.script = state.names.get(sha).copied().unwrap_or("");
        state.calls = 0;
    }

    fn before(&mut self, call: &RedisCall<'_>) -> Option<String> {
        let mut state = self.state();
        let place = Place { script: state.script, line: call.line };
        let nth = state.calls;
        state.calls += 1;
        let fails = !call.wrote && state.armed.is_some_and(|(at, _)| at == nth);
        let what = state.coverage.add(place, call);
        if fails {
            state.coverage.add_failure(place, &what);
        }
        if !call.wrote {
            let (exchange, script) = state.moment;
            let sighting = Sighting { exchange, script, nth };
            state.sightings.entry((place, what)).or_insert(sighting);
        }
        if !fails {
            return None;
        }
        let (_, refusal) = state.armed.take()?;
        let [lasting, passing] = if call.writes { WRITES_FAIL } else { READS_FAIL };
        Some(match refusal {
            Refusal::Lasting => lasting.to_owned(),
            Refusal::Passing => passing.to_owned(),
        })
    }
}
