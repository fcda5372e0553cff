//! Checks Redis itself: its settings, its memory, its disk and its clock.

use std::time::{Duration, Instant};

use chrono::Utc;
use optimus_core::ServerFacts;

use super::Finding;
use crate::{failure::Failure, output::text, session::Session};

/// Above this part of the memory, in percent, Redis may soon refuse submits.
const MEMORY_MAX: u64 = 80;
/// A client whose clock is further off stamps its tasks, and ages on its screen are wrong.
const CLOCK_OFF_MAX: Duration = Duration::from_secs(1);

/// Checks the server.
pub(crate) async fn check(session: &Session<'_>) -> Result<Vec<Finding>, Failure> {
    let facts = session.inspector().server().await?;
    let mut findings = settings(&facts);
    findings.extend(memory(&facts));
    findings.extend(disk(&facts));
    findings.push(clock(session).await?);
    Ok(findings)
}

fn settings(facts: &ServerFacts) -> Vec<Finding> {
    let version = facts.version.as_deref().unwrap_or("of unknown version");
    let server = match facts.refusal() {
        Some(why) => Finding::warning("server", why),
        None => Finding::ok("server", format!("Redis {version}")),
    };
    let eviction = match (facts.warnings(), &facts.maxmemory_policy) {
        (warnings, _) if !warnings.is_empty() => Finding::warning("eviction", warnings.join("\n")),
        (_, Some(policy)) => Finding::ok("eviction", format!("maxmemory-policy is {policy}")),
        (_, None) => Finding::note("eviction", "maxmemory-policy is unknown (INFO is denied)"),
    };
    let persistence = match facts.without_persistence() {
        Some(loss) => Finding::warning("persistence", loss),
        None => Finding::ok("persistence", facts.promise()),
    };
    let failover = facts.failover().map(|loss| Finding::note("failover", loss));
    [server, eviction, persistence].into_iter().chain(failover).collect()
}

fn memory(facts: &ServerFacts) -> Option<Finding> {
    let used = facts.used_memory?;
    let limit = facts.maxmemory.filter(|max| *max > 0);
    let (limit, what) = match (limit, facts.system_memory) {
        (Some(max), _) => (max, "maxmemory"),
        (None, Some(all)) => (all, "the machine's memory; no maxmemory is set"),
        (None, None) => {
            return Some(Finding::note("memory", format!("{} in use", text::size(used))));
        }
    };
    let percent = u128::from(used) * 100 / u128::from(limit.max(1));
    let text =
        format!("{} of {} in use ({percent} % of {what})", text::size(used), text::size(limit));
    Some(if percent >= u128::from(MEMORY_MAX) {
        let advice = "Submits are refused when it is full, while workers still drain it. Look for \
            the largest queues with `optimus queue list --sort ready`, and add workers or memory.";
        Finding::warning("memory", format!("{text}\n{advice}"))
    } else {
        Finding::ok("memory", text)
    })
}

/// Checks whether the last writes to disk have succeeded.
fn disk(facts: &ServerFacts) -> Vec<Finding> {
    let mut findings = Vec::new();
    if facts.is_append_failing == Some(true) {
        findings.push(Finding::warning(
            "disk",
            "the last write to the append-only file has failed, so Redis refuses writes: look for \
             a full disk, and at Redis' log",
        ));
    }
    if facts.is_snapshot_failing == Some(true) {
        findings.push(Finding::warning(
            "disk",
            "the last snapshot has failed, and Redis may refuse writes because of it \
             (stop-writes-on-bgsave-error): look for a full disk, and at Redis' log",
        ));
    }
    findings
}

/// Compares the clock of this machine with that of Redis.
async fn clock(session: &Session<'_>) -> Result<Finding, Failure> {
    let (before, begun) = (Utc::now(), Instant::now());
    let now = session.inspector().now().await?;
    let trip = begun.elapsed();
    let here = before + trip / 2;
    let off = text::since(here, now).max(text::since(now, here));
    let direction = if here > now { "ahead of" } else { "behind" };
    // The answer may have been made at any moment of the trip.
    Ok(if off > CLOCK_OFF_MAX + trip / 2 {
        let off = text::duration(off);
        Finding::warning(
            "clock",
            format!(
                "the clock of this machine is {off} {direction} Redis' clock. Leases and due times \
                 use Redis' clock alone, but times of submits are those of clients: run NTP on \
                 all machines."
            ),
        )
    } else {
        Finding::ok("clock", "the clocks of this machine and of Redis agree within a second")
    })
}
