//! Makes each `redis.call` fail once that a script makes before its first write.

use super::{Performance, Scene, run_scene};
use crate::exchange_fault::{Fault, Refusal, Silence};
use crate::fault_plan::{Exchange, FaultPlan, Latency, NoHeartbeats, Once, SHORT};
use crate::run::Voice;
use crate::script_coverage::{Coverage, Place};
use crate::script_probe::Sighting;

/// Scenes in which a lost reply leads to calls that do not occur otherwise.
const LOST_ANSWERS: [Scene; 3] = [Scene::Submit, Scene::CancelRunning, Scene::Release];

/// The fault that is active before a call fails.
#[derive(Clone, Copy)]
enum Before {
    Nothing,
    Lost(Once),
    Heartbeats(NoHeartbeats),
}

impl FaultPlan for Before {
    fn fault(&mut self, exchange: &Exchange) -> Option<Fault> {
        match self {
            Self::Nothing => None,
            Self::Lost(once) => once.fault(exchange),
            Self::Heartbeats(none) => none.fault(exchange),
        }
    }

    fn latency(&mut self) -> Option<Latency> {
        SHORT
    }
}

/// Two faults, one after the other.
#[derive(Clone, Copy)]
struct Both<First>(First, Once);

impl<First: FaultPlan> FaultPlan for Both<First> {
    fn fault(&mut self, exchange: &Exchange) -> Option<Fault> {
        self.1.fault(exchange).or_else(|| self.0.fault(exchange))
    }

    fn latency(&mut self) -> Option<Latency> {
        SHORT
    }
}

/// The coverage, and the broken promises.
#[derive(Default)]
struct Findings {
    coverage: Coverage,
    wrong: Vec<String>,
}

/// Runs the scenes with one failing call each, until every call before a script's first write has
/// failed. Returns the coverage and the broken promises.
pub fn fail_each_call() -> (Coverage, Vec<String>) {
    let mut findings = Findings::default();
    for scene in Scene::ALL {
        let exchanges = findings.fail_calls(scene, Before::Nothing);
        if LOST_ANSWERS.contains(&scene) {
            for at in 0..exchanges {
                let lost = Once { at, fault: Fault::ReplyLost(Silence::Broken) };
                findings.fail_calls(scene, Before::Lost(lost));
            }
        }
    }
    // Without heartbeats, the reaper is the first role that notices the outage.
    findings.fail_calls(Scene::Reap, Before::Heartbeats(NoHeartbeats));
    (findings.coverage, findings.wrong)
}

fn fails_at(seen: Sighting) -> Once {
    let Sighting { exchange, script, nth } = seen;
    Once { at: exchange, fault: Fault::CallFails { script, nth, refusal: Refusal::alternate(nth) } }
}

impl Findings {
    /// Runs the scene once, and once more for each of its calls that has not failed yet. Returns
    /// its number of exchanges.
    fn fail_calls(&mut self, scene: Scene, before: Before) -> u64 {
        let performance = run_scene(scene, before, Voice::Quiet);
        self.add(scene, "no call fails", &performance);
        let usual = performance.probe.sightings();
        for (call, seen) in &usual {
            if !self.is_to_fail(call, *seen, &performance) {
                continue;
            }
            let fails = Both(before, fails_at(*seen));
            let again = run_scene(scene, fails, Voice::Quiet);
            self.add(scene, &format!("{call:?} fails"), &again);
            // These calls are made only after another call has failed.
            for (later, seen) in again.probe.sightings() {
                if !usual.contains_key(&later) && self.is_to_fail(&later, seen, &again) {
                    let twice = run_scene(scene, Both(fails, fails_at(seen)), Voice::Quiet);
                    self.add(scene, &format!("{call:?} fails, then {later:?}"), &twice);
                }
            }
        }
        performance.exchanges
    }

    /// Returns whether a call was observed in the scene itself, and has not failed yet.
    fn is_to_fail(&self, call: &(Place, String), seen: Sighting, during: &Performance) -> bool {
        seen.exchange < during.exchanges && !self.coverage.has_failed(call.0, &call.1)
    }

    fn add(&mut self, scene: Scene, how: &str, performance: &Performance) {
        let outcome = &performance.outcome;
        self.coverage.merge(outcome.tally.coverage.clone());
        let with_place = |wrong: &String| format!("{scene:?}, {how}: {wrong}");
        self.wrong.extend(outcome.wrong.iter().map(with_place));
    }
}
