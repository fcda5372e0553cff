//! What a store may lose, and the only time that a process says so: [`StoreRisks`].

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use optimus_core::{
    broker::{Broker, ServerFacts},
    log_event,
};
use tracing::{Level, level_filters::LevelFilter};

/// Each store with a risk that was told. A process has few stores.
static TOLD: Mutex<BTreeSet<(String, String)>> = Mutex::new(BTreeSet::new());

/// What a worker prints of its store when it starts.
#[derive(Debug, Default)]
pub(crate) struct StoreRisks {
    /// The lines of the banner: the settings, and what they mean.
    pub(crate) for_banner: Vec<String>,
    /// The lines without a banner: that the store may drop tasks at any time.
    pub(crate) for_quiet: Vec<String>,
}

impl StoreRisks {
    /// Logs the risks that this process has not told of this store. Without a log, they are
    /// printed.
    pub(crate) fn tell(broker: &Broker, facts: &ServerFacts) -> Self {
        if broker.endpoint().is_memory() {
            return Self::default();
        }
        let loss = facts.without_persistence().map(str::to_owned);
        let all: Vec<String> = loss.into_iter().chain(facts.warnings()).collect();
        let mut to_print = untold(&broker.endpoint().describe(), &all);
        if broker.log().is_heard() && LevelFilter::current() >= Level::WARN {
            for risk in to_print.drain(..) {
                log_event!(broker.log(), WARN, "{risk}");
            }
        }
        let is_in = |risks: &[String], line: &str| risks.iter().any(|risk| risk == line);
        let text = facts.to_string();
        let lines = text.lines().filter(|line| !is_in(&all, line) || is_in(&to_print, line));
        let for_banner = lines.map(|line| format!("  {line}")).collect();
        let drops = facts.warnings().into_iter().filter(|risk| is_in(&to_print, risk));
        let for_quiet = drops.map(|risk| format!("optimus: warning: {risk}")).collect();
        Self { for_banner, for_quiet }
    }
}

/// Returns the risks that were not told of this store, and notes them.
fn untold(store: &str, risks: &[String]) -> Vec<String> {
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    let is_new = |risk: &&String| told.insert((store.to_owned(), (*risk).clone()));
    risks.iter().filter(is_new).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_risk_is_told_once_of_each_store() {
        let risks = ["it forgets".to_owned(), "it evicts".to_owned()];
        assert_eq!(untold("risky://a", &risks[..1]), ["it forgets"]);
        assert_eq!(untold("risky://a", &risks), ["it evicts"]);
        assert_eq!(untold("risky://b", &risks), risks);
        assert!(untold("risky://b", &risks).is_empty());
    }
}
