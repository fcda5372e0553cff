//! Checks that the server's user may run every command that a worker needs. The check runs at the
//! start, because a script that is refused half-way leaves half a transition.

use redis::{Cmd, Value};

use super::{Broker, BrokerError, ScriptCall, inspect::get, permitted::Missing};
use crate::id::{QueueName, WorkerId};

/// Each command of the scripts and of the broker, with arguments that leave no change. `$` is a key
/// of this worker alone. After the third command the key holds a string, so that commands for other
/// types fail with a type error, and no later command removes its expiry: if the connection breaks,
/// the key does not stay. `@` is the set of queue names.
const PROBES: [&str; 47] = [
    "PERSIST $",
    "MSET $ 1",
    "SET $ 1 PX 60000",
    "GET $",
    "MGET $",
    "EXISTS $",
    "STRLEN $",
    "HSET $ a 1",
    "HGET $ a",
    "HMGET $ a",
    "HGETALL $",
    "HKEYS $",
    "HLEN $",
    "HEXISTS $ a",
    "HSTRLEN $ a",
    "HINCRBY $ a 1",
    "HRANDFIELD $ 1",
    "HSCAN $ 0",
    "HDEL $ a",
    "LPUSH $ a",
    "RPUSH $ a",
    "LPOP $",
    "LLEN $",
    "LRANGE $ 0 0",
    "LTRIM $ 0 0",
    "BLPOP $ 0.001",
    "ZADD $ 1 a",
    "ZCARD $",
    "ZCOUNT $ 0 0",
    "ZRANGE $ 0 0",
    "ZRANGEBYSCORE $ 0 0",
    "ZRANGESTORE $ $ 0 0",
    "ZMSCORE $ a",
    "ZRANK $ a",
    "ZSCORE $ a",
    "ZREM $ a",
    "ZREMRANGEBYRANK $ 0 0",
    "ZREMRANGEBYSCORE $ 0 0",
    "SADD $ a",
    "SREM $ a",
    "SMEMBERS $",
    "SMEMBERS @",
    "TIME",
    "EVAL return(1) 0",
    "EVALSHA 0 0",
    "PEXPIRE $ 1",
    "UNLINK $",
];

impl Broker {
    /// Permissions that a worker needs and the server's user lacks, in the form of an ACL.
    pub async fn missing_permissions(
        &self,
        queue: &QueueName,
        worker: &WorkerId,
    ) -> Result<Vec<String>, BrokerError> {
        let (_, missing) = self.missing(&self.keys(queue).probe(worker.as_str())).await?;
        Ok(missing.permissions)
    }

    /// Names what the user lacks in each error of a call for which it lacks something.
    pub(super) async fn name_each_denied(
        &self,
        answers: &mut [Result<Value, BrokerError>],
        calls: &[ScriptCall],
    ) {
        for (answer, call) in answers.iter_mut().zip(calls) {
            if let Err(BrokerError::Rejected(why)) = answer
                && is_denied(why)
                && !self.endpoint.is_memory()
            {
                *answer = Err(self.name_denied(call, std::mem::take(why)).await);
            }
        }
    }

    /// Names the permissions that the user lacks for a call. The server's own message names no
    /// command if a script was denied.
    async fn name_denied(&self, call: &ScriptCall, why: String) -> BrokerError {
        self.permitted.forget();
        match self.missing(&call.probe_key()).await {
            Ok((_, missing)) if !missing.permissions.is_empty() => missing.error(&why),
            // Somebody has given it what it lacked, or the probes have no answer.
            _ => BrokerError::Denied(format!("the Redis user lacks a permission, or did: {why}")),
        }
    }

    /// Returns what the user lacks, tested with this key, and the number of the connection.
    pub(super) async fn missing(&self, key: &str) -> Result<(u64, Missing), BrokerError> {
        let (connection, answers) = self.send_over(None, self.probes(key)).await;
        let mut missing = Missing::default();
        for (probe, answer) in PROBES.into_iter().zip(answers) {
            match answer {
                Err(BrokerError::Rejected(why)) if why.starts_with("NOPERM") => {
                    let permission = self.permission(probe, &why);
                    if permission.starts_with('+') {
                        missing.commands.extend(probe.split(' ').next());
                    }
                    missing.permissions.push(permission);
                }
                // A server that is full may still be asked.
                Err(BrokerError::Rejected(_) | BrokerError::Full) | Ok(_) => {}
                Err(problem) => return Err(problem),
            }
        }
        missing.permissions.sort();
        missing.permissions.dedup();
        Ok((connection, missing))
    }

    /// Returns the commands of the probes with this key.
    fn probes(&self, key: &str) -> Vec<Cmd> {
        let queues = super::keys::queues(&self.namespace);
        let word = |word: &'static str| match word {
            "$" => key,
            "@" => queues.as_str(),
            word => word,
        };
        let words = |probe: &'static str| get(&probe.split(' ').map(word).collect::<Vec<_>>());
        PROBES.into_iter().map(words).collect()
    }

    fn permission(&self, probe: &str, why: &str) -> String {
        let command = probe.split(' ').next().unwrap_or_default().to_lowercase();
        match why.contains("access") && why.contains("key") && !why.contains("to run") {
            false => format!("+{command}"),
            true if probe.contains('@') => format!("~{}:queues", self.namespace),
            true => format!("~{{{}:*}}:*", self.namespace),
        }
    }
}

/// Redis 7.0 does not name the command; 7.2 writes `ACL failure in script`.
fn is_denied(why: &str) -> bool {
    why.starts_with("NOPERM")
        || why.contains("The user executing the script can't")
        || why.contains("ACL failure in script")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::broker::{Endpoint, scripts};

    /// `list` does without it.
    const NOT_NEEDED: &str = "INFO";

    #[test]
    fn every_command_of_the_scripts_is_probed() {
        let mut probed: BTreeSet<&str> =
            PROBES.iter().filter_map(|probe| probe.split(' ').next()).collect();
        probed.insert(NOT_NEEDED);
        for script in scripts::ALL {
            for call in script.source().split("call('").skip(1) {
                let command = call.split('\'').next().expect("a command");
                assert!(probed.contains(command), "{}: {command}", script.name);
            }
        }
    }

    #[cfg(feature = "embedded")]
    #[tokio::test]
    async fn probes_that_break_off_leave_no_key_without_an_expiry() {
        for sent in 3..PROBES.len() {
            let endpoint = Endpoint::parse(&format!("memory://probes-{sent}")).unwrap();
            let broker = Broker::new(endpoint, "probes", "test");
            let mut probes = broker.probes("key");
            probes.truncate(sent);
            drop(broker.send(probes).await);
            let left = broker.read_one(get(&["PTTL", "key"])).await.unwrap();
            assert_ne!(left, redis::Value::Int(-1), "after {}", PROBES[sent - 1]);
        }
    }
}
