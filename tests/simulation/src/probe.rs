//! Sees each `redis.call` of each script, and lets one fail: [`Probe`].

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use optimus_core::broker::script_texts;
use optimus_embedded::simulation::{Observer, RedisCall};

use crate::sites::{Coverage, Place};

/// What replaces the answer of the call that is to fail, by what the command is.
const READS_FAIL: [&str; 2] = [
    "NOPERM this user has no permissions to run a command or to access a key",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
];
const WRITES_FAIL: [&str; 2] = [
    "NOPERM this user has no permissions to run a command or to access a key",
    "READONLY You can't write against a read only replica.",
];

/// Clones watch the same store.
#[derive(Clone, Debug, Default)]
pub struct Probe(Arc<Mutex<State>>);

/// Where in a run a call is made.
#[derive(Clone, Copy, Debug)]
pub struct Sighting {
    /// The number of the exchange.
    pub exchange: u64,
    /// Which of its scripts, from 0.
    pub script: usize,
    /// Which of the script's calls, from 0.
    pub nth: usize,
}

#[derive(Debug)]
struct State {
    names: HashMap<&'static str, &'static str>,
    script: &'static str,
    calls: usize,
    /// Which call of the next script is to fail, and whether the refusal passes by itself.
    armed: Option<(usize, bool)>,
    /// The exchange under way, and which of its scripts.
    moment: (u64, usize),
    /// Where each call was seen first before its script had written.
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

    /// In the script that runs next, call `nth` fails, from 0; if it comes before the first write.
    /// Later none can: Redis itself refuses nothing to a script that has written.
    pub fn arm(&self, nth: usize, passing: bool) {
        self.state().armed = Some((nth, passing));
    }

    /// Nothing is to fail any more.
    pub fn disarm(&self) {
        self.state().armed = None;
    }

    /// A script of an exchange is about to be called.
    pub(crate) fn enter(&self, exchange: u64, script: usize) {
        self.state().moment = (exchange, script);
    }

    /// Where each call was first made before its script had written.
    pub fn sightings(&self) -> BTreeMap<(Place, String), Sighting> {
        self.state().sightings.clone()
    }

    /// Which calls were seen and failed so far.
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
        let what = state.coverage.add(place, call, fails);
        if !call.wrote {
            let (exchange, script) = state.moment;
            let sighting = Sighting { exchange, script, nth };
            state.sightings.entry((place, what)).or_insert(sighting);
        }
        if !fails {
            return None;
        }
        let (_, passing) = state.armed.take()?;
        let texts = if call.writes { WRITES_FAIL } else { READS_FAIL };
        Some(texts[usize::from(passing)].to_owned())
    }
}
