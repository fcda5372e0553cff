//! Waits for Redis to confirm writes: `WAITAOF` and `WAIT`, one for many submits.

use std::time::Duration;

use redis::{Cmd, Value};

use super::{Broker, BrokerError, Reply, ScriptCall, inspect::get, is_unknown_script};
use crate::durability::Durability;

/// Why a server can't confirm what is asked of it, in its own words and in ours.
const CANNOT: [(&str, &str); 2] = [
    ("unknown command", "is too old for that"),
    ("appendonly is disabled", "runs with appendonly no"),
];

impl Broker {
    /// Whether the server can confirm this at all; `Rejected` says why it can't.
    pub async fn try_confirm(&self, durability: Durability) -> Result<(), BrokerError> {
        if durability == Durability::Memory {
            return Ok(());
        }
        self.one(wait_for(durability, Duration::from_millis(1))).await.map(drop)
    }

    /// Runs submits and waits until what they wrote is confirmed. Those that were done and not
    /// confirmed are `Unknown`.
    ///
    /// Calls and wait go in one write, so that one server answers both: a wait at the server that
    /// took over would confirm what it never had. It waits for what its connection wrote, which is
    /// why `submit` writes even where it answers from its ledger.
    pub async fn run_confirmed(
        &self,
        calls: &[ScriptCall],
        durability: Durability,
        timeout: Duration,
    ) -> Vec<Result<Reply, BrokerError>> {
        let wait = wait_for(durability, timeout);
        let mut answers = self.send_before(&wait, calls.iter().map(ScriptCall::by_hash)).await;
        if answers.iter().any(is_unknown_script) {
            // Submits are safe to repeat, so all of them go again.
            answers = self.send_before(&wait, calls.iter().map(ScriptCall::by_text)).await;
        }
        let waited = answers.pop().expect("an answer for each command");
        let confirmed = waited.and_then(|count| judge(durability, count, timeout));
        let read = |(answer, call): (Result<Value, BrokerError>, &ScriptCall)| {
            let reply = Reply::new(call.script.name, answer?)?;
            confirmed.as_ref().map_err(unconfirmed).map(|()| reply)
        };
        answers.into_iter().zip(calls).map(read).collect()
    }

    async fn send_before(
        &self,
        wait: &Cmd,
        calls: impl Iterator<Item = Cmd>,
    ) -> Vec<Result<Value, BrokerError>> {
        self.send(calls.chain([wait.clone()]).collect()).await
    }
}

impl BrokerError {
    /// Why the server can't confirm anything, if that is what it says.
    pub fn cannot_confirm(&self) -> Option<&'static str> {
        let Self::Rejected(answer) = self else { return None };
        CANNOT.iter().find_map(|(theirs, ours)| answer.contains(theirs).then_some(*ours))
    }
}

fn wait_for(durability: Durability, timeout: Duration) -> Cmd {
    let mut command = match durability {
        Durability::Fsynced => get(&["WAITAOF", "1", "0"]),
        _ => get(&["WAIT", &needed(durability).to_string()]),
    };
    // 0 would wait for ever.
    command.arg(timeout.as_millis().max(1).to_string());
    command
}

/// How many have to confirm.
fn needed(durability: Durability) -> u32 {
    match durability {
        Durability::Memory => 0,
        Durability::Fsynced => 1,
        Durability::Replicated(count) => count,
    }
}

/// Whether as many confirmed as were asked for. `WAITAOF` answers for the server itself first.
fn judge(durability: Durability, answer: Value, timeout: Duration) -> Result<(), BrokerError> {
    let count = match answer {
        Value::Array(counts) => counts.into_iter().next().unwrap_or(Value::Nil),
        count => count,
    };
    let Value::Int(count) = count else {
        return Err(BrokerError::UnexpectedReply(format!("WAIT answered {count:?}")));
    };
    if count >= i64::from(needed(durability)) {
        return Ok(());
    }
    Err(BrokerError::Unknown(format!("it was not {durability} within {timeout:?}")))
}

fn unconfirmed(why: &BrokerError) -> BrokerError {
    BrokerError::Unknown(format!("Redis stored it, but {why}"))
}
