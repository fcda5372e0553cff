//! Checks that the server's user may run every command that a worker needs. The check runs at the
//! start, because a script that is refused half-way leaves half a transition.

use super::{Broker, BrokerError, ScriptCall, inspect::get};
use crate::{
    id::{QueueName, WorkerId},
    platform,
};

/// Each command of the scripts and of the broker, with arguments that leave no change. `$` is a key
/// of this worker alone. After the first command the key holds a string, so that commands for other
/// types fail with a type error. `@` is the set of queue names.
const PROBES: [&str; 44] = [
    "SET $ 1 PX 1000",
    "GET $",
    "MGET $",
    "MSET $ 1",
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
    "ZRANK $ a",
    "ZSCORE $ a",
    "ZREM $ a",
    "ZREMRANGEBYSCORE $ 0 0",
    "SADD $ a",
    "SREM $ a",
    "SMEMBERS $",
    "SMEMBERS @",
    "PERSIST $",
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
        self.denied(&self.keys(queue).probe(worker.as_str())).await
    }

    /// Names the permissions that the user lacks for a call. The server's own message names no
    /// command if a script was denied.
    pub(super) async fn name_denied(&self, call: &ScriptCall, why: String) -> BrokerError {
        let key = format!("{}probe:{}", call.key_base(), platform::new_uuid().simple());
        match self.denied(&key).await {
            Ok(missing) if !missing.is_empty() => BrokerError::Denied(format!(
                "the Redis user lacks permissions; add to its ACL: {} (SECURITY.md has the whole \
                 line; {why})",
                missing.join(" ")
            )),
            _ => BrokerError::Rejected(why),
        }
    }

    /// Returns each permission that the server's user lacks, tested with this key.
    async fn denied(&self, key: &str) -> Result<Vec<String>, BrokerError> {
        let queues = super::keys::queues(&self.namespace);
        let word = |word: &'static str| match word {
            "$" => key,
            "@" => queues.as_str(),
            word => word,
        };
        let words = |probe: &'static str| get(&probe.split(' ').map(word).collect::<Vec<_>>());
        let answers = self.send(PROBES.into_iter().map(words).collect()).await;
        let mut missing = Vec::new();
        for (probe, answer) in PROBES.into_iter().zip(answers) {
            match answer {
                Err(problem) if problem.is_transient() => return Err(problem),
                Err(BrokerError::Rejected(why)) if why.starts_with("NOPERM") => {
                    missing.push(self.permission(probe, &why));
                }
                _ => {}
            }
        }
        missing.sort();
        missing.dedup();
        Ok(missing)
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::broker::scripts;

    #[test]
    fn every_command_of_the_scripts_is_probed() {
        let probed: BTreeSet<&str> =
            PROBES.iter().filter_map(|probe| probe.split(' ').next()).collect();
        for script in scripts::ALL {
            for call in script.source.split("redis.call('").skip(1) {
                let command = call.split('\'').next().expect("a command");
                assert!(probed.contains(command), "{}: {command}", script.name);
            }
        }
    }
}
