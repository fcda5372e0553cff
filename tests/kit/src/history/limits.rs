//! Checks limits: how many tasks started in each interval, and how many ran at once.

use std::collections::BTreeMap;

use super::account::Account;
use super::check::History;
use super::overlap::{self, runs_of};
use super::verdict::Findings;
use super::{Event, What};

/// The ms of Redis' clock are in the higher bits of a fence.
const FENCES_A_MS: u64 = 1024;
const US_A_MS: u64 = 1000;

/// What the limits allow, by name.
#[derive(Debug, Default)]
pub(super) struct Rules(BTreeMap<String, Rule>);

#[derive(Clone, Copy, Debug)]
struct Rule {
    interval_us: u64,
    burst: u64,
    max_working: u64,
}

impl Rules {
    /// Adds what a limit allows.
    pub(super) fn add(&mut self, event: &Event) {
        if let What::Rule { interval_us, burst, max_working, ref limit } = event.what {
            self.0.insert(limit.clone(), Rule { interval_us, burst, max_working });
        }
    }
}

/// Checks every limit whose rule is known.
pub(super) fn check(history: &History<'_>, rules: &Rules, findings: &mut Findings) {
    let mut limited: BTreeMap<&str, Vec<(u64, u64, &Account)>> = BTreeMap::new();
    for (task, account) in history.accounts {
        for (name, cost) in &account.limits {
            limited.entry(name).or_default().push((*task, *cost, account));
        }
    }
    for (name, tasks) in limited {
        let Some(rule) = rules.0.get(name) else { continue };
        let what = format!("limit {name}");
        if rule.interval_us > 0 {
            starts(history, *rule, &tasks, &what, findings);
        }
        if rule.max_working > 0 {
            let runs = runs_of(tasks.iter().map(|(task, _, account)| (*task, *account)));
            let most = usize::try_from(rule.max_working).unwrap_or(usize::MAX);
            overlap::check(history, &runs, (&what, most), findings);
        }
    }
}

/// Checks that no interval has more starts than the rate and the burst allow. A start is the moment
/// of the claim by Redis' clock, which the fence shows.
fn starts(
    history: &History<'_>,
    rule: Rule,
    tasks: &[(u64, u64, &Account)],
    what: &str,
    findings: &mut Findings,
) {
    if history.acts.clock_was_set || !history.acts.rollbacks.is_empty() {
        return;
    }
    let each = tasks.iter().flat_map(|(task, cost, account)| {
        let cost = (*cost).clamp(1, rule.burst.max(1));
        account.executions.iter().map(move |run| (run.fence / FENCES_A_MS, *task, cost))
    });
    let mut starts: Vec<(u64, u64, u64)> = each.collect();
    starts.sort_unstable();
    // The tokens that are left, in µs of the rate. Each start has the latest moment that its ms
    // allows, and the first one of a full burst the earliest.
    let whole = rule.burst.max(1) * rule.interval_us;
    let (mut left, mut before) = (whole, 0);
    for (ms, task, cost) in starts {
        left = (left + (ms - before) * US_A_MS).min(whole);
        before = ms;
        let needed = cost * rule.interval_us;
        if left < needed {
            findings.add(task, format!("started earlier than {what} allows"));
        }
        left = left.saturating_sub(needed);
    }
}
