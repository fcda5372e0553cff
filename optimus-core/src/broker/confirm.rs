//! Waits for Redis to confirm writes: one `WAITAOF` or `WAIT` for many submits.

use std::time::Duration;

use redis::{Cmd, Value};

use super::{Broker, BrokerError, Reply, ScriptCall, inspect::get, is_unknown_script};
use crate::durability::Durability;

/// Why a server can't confirm a write: a part of its message, and our text for it.
const CANNOT: [(&str, &str); 2] = [
    ("unknown command", "is too old for that"),
    ("appendonly is disabled", "runs with appendonly no"),
];

impl Broker {
    /// Returns whether the server can confirm writes in this way at all; `Rejected` has the reason
    /// if it can't.
    pub async fn try_confirm(&self, durability: Durability) -> Result<(), BrokerError> {
        if durability == Durability::Memory {
            return Ok(());
        }
        self.one(wait_for(durability, Duration::from_millis(1))).await.map(drop)
    }

    /// Runs submits and waits until Redis has confirmed their writes. Returns `Unknown` for submits
    /// that were done but not confirmed.
    ///
    /// The calls and the wait go in one write, so that the same server answers both: after a
    /// failover, the new primary would confirm writes that it never received. Redis waits for the
    /// writes of this connection. So `submit` writes even when it answers from its ledger.
    pub async fn run_confirmed(
        &self,
        calls: &[ScriptCall],
        durability: Durability,
        timeout: Duration,
    ) -> Vec<Result<Reply, BrokerError>> {
        let wait = wait_for(durability, timeout);
        let mut answers = self.send_before(&wait, calls, ScriptCall::by_hash).await;
        if answers.iter().any(is_unknown_script) {
            // Submits are safe to repeat, so all of them are sent again.
            answers = self.send_before(&wait, calls, ScriptCall::by_text).await;
        }
        self.name_each_denied(&mut answers, calls).await;
        let waited = answers.pop().expect("an answer for each command");
        let confirmed = waited.and_then(|count| check_count(durability, count, timeout));
        let read = |(answer, call): (Result<Value, BrokerError>, &ScriptCall)| {
            let reply = Reply::new(call.script.name, answer?)?;
            confirmed.as_ref().map_err(unconfirmed).map(|()| reply)
        };
        answers.into_iter().zip(calls).map(read).collect()
    }

    async fn send_before(
        &self,
        wait: &Cmd,
        calls: &[ScriptCall],
        command: fn(&ScriptCall) -> Cmd,
    ) -> Vec<Result<Value, BrokerError>> {
        let commands = || calls.iter().map(command).chain([wait.clone()]).collect();
        self.send_permitted(calls, commands).await
    }
}

impl BrokerError {
    /// Returns why the server can't confirm writes, if this error is such an answer.
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
    // A timeout of 0 would wait without a limit.
    command.arg(timeout.as_millis().max(1).to_string());
    command
}

/// Returns the number of servers that must confirm.
fn needed(durability: Durability) -> u32 {
    match durability {
        Durability::Memory => 0,
        Durability::Fsynced => 1,
        Durability::Replicated(count) => count,
    }
}

/// Returns whether enough servers confirmed. The first number that `WAITAOF` returns is for the
/// server itself.
fn check_count(
    durability: Durability,
    answer: Value,
    timeout: Duration,
) -> Result<(), BrokerError> {
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
