//! The server's configuration and what it means for tasks, read when a worker starts.

use std::fmt;

use redis::Value;

use super::{Broker, BrokerError, inspect::get, reply};

/// Settings of the server that decide which failures an acknowledged task survives; a setting is
/// `None` if the server does not return it. A worker prints the settings when it starts.
#[derive(Debug, Clone, Default)]
pub struct ServerFacts {
    /// The server's version.
    pub version: Option<String>,
    /// The id of the server's process on its machine.
    pub process_id: Option<u32>,
    /// The word size of the server's build, in bits.
    pub bits: Option<u32>,
    /// The server's policy at maxmemory; any policy but `noeviction` may drop tasks.
    pub maxmemory_policy: Option<String>,
    /// Whether the server appends writes to a file.
    pub appendonly: Option<bool>,
    /// When the server syncs that file.
    pub appendfsync: Option<String>,
    /// When the server saves snapshots; empty if never.
    pub save: Option<String>,
    /// Whether the server is a replica, which refuses writes.
    pub is_replica: Option<bool>,
    /// How many replicas receive the server's writes.
    pub replicas: Option<u32>,
    /// The bytes of memory that the server uses.
    pub used_memory: Option<u64>,
    /// The bytes that it may use; 0 if there is no limit.
    pub maxmemory: Option<u64>,
    /// The bytes of memory of its machine.
    pub system_memory: Option<u64>,
    /// Whether its last write to the append-only file has failed; it then refuses writes.
    pub is_append_failing: Option<bool>,
    /// Whether its last snapshot has failed; it then refuses writes, unless
    /// `stop-writes-on-bgsave-error` is off.
    pub is_snapshot_failing: Option<bool>,
}

/// The oldest version that has every command of the scripts.
const OLDEST: (u32, u32) = (6, 2);

impl ServerFacts {
    /// Returns why no worker should start on this server; `None` if it is suitable.
    pub fn refusal(&self) -> Option<String> {
        let too_old = self.version.as_deref().filter(|v| release(v).is_some_and(|v| v < OLDEST));
        if let Some(version) = too_old {
            return Some(format!("Redis {version} is too old; run 6.2 or newer"));
        }
        if self.is_replica == Some(true) {
            return Some("this Redis is a replica and refuses writes; use its primary".to_owned());
        }
        (self.bits == Some(32)).then(|| {
            "this Redis is a 32-bit build, whose scripts can't print an instant in ms; \
             run a 64-bit build"
                .to_owned()
        })
    }

    /// Risks of these settings, one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(policy) = self.maxmemory_policy.as_deref().filter(|p| *p != "noeviction") {
            warnings.push(format!(
                "maxmemory-policy is {policy}: Redis may silently evict queued tasks; \
                 set it to noeviction"
            ));
        }
        warnings
    }

    /// What an acknowledged submit survives, unless its client requires more
    /// ([`Durability`](crate::Durability)).
    pub fn promise(&self) -> &'static str {
        match (self.appendonly, self.appendfsync.as_deref()) {
            (Some(true), Some("always")) => "acknowledged tasks survive a crash of Redis",
            (Some(true), Some("everysec")) => {
                "a crash of Redis may lose the last two seconds of acknowledged tasks"
            }
            (Some(true), Some(_)) => {
                "a crash of Redis may lose what the system had not yet written to disk"
            }
            (Some(true), None) => {
                "a crash of Redis may lose acknowledged tasks; how many is \
                 unknown (CONFIG is denied)"
            }
            (Some(false), _) => self.without_persistence().unwrap_or_default(),
            (None, _) => "what survives a crash of the server is unknown (INFO is denied)",
        }
    }

    /// Describes what a crash loses if the server does not append writes to a file; `None` if it
    /// does, or if that is unknown.
    pub fn without_persistence(&self) -> Option<&'static str> {
        let loss = match self.save.as_deref() {
            Some("") => "a restart or crash of Redis loses every task; set appendonly yes",
            _ => "a crash of Redis loses every task since its last snapshot; set appendonly yes",
        };
        (self.appendonly == Some(false)).then_some(loss)
    }

    /// Describes what a failover may lose; `None` if there is no replica.
    pub fn failover(&self) -> Option<&'static str> {
        self.replicas.filter(|count| *count > 0).map(|_| {
            "a failover may lose writes that the replica had not received; \
             Durability::Replicated waits for the replica"
        })
    }

    fn settings(&self) -> String {
        let word = |name: &str, value: Option<&str>| value.map(|value| format!("{name} {value}"));
        let appendonly = self.appendonly.map(|on| if on { "yes" } else { "no" });
        let appendfsync = self.appendfsync.as_deref().filter(|_| self.appendonly == Some(true));
        let replicas = self.replicas.map(|count| match count {
            1 => "1 replica".to_owned(),
            count => format!("{count} replicas"),
        });
        let settings = [
            word("Redis", Some(self.version.as_deref().unwrap_or("of unknown version"))),
            word("appendonly", appendonly),
            word("appendfsync", appendfsync),
            word("maxmemory-policy", self.maxmemory_policy.as_deref()),
            replicas,
        ];
        settings.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// Prints the settings, then what they mean, one sentence per line.
impl fmt::Display for ServerFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.settings(), self.promise())?;
        let failover = self.failover().map(str::to_owned);
        failover.into_iter().chain(self.warnings()).try_for_each(|line| write!(f, "\n{line}"))
    }
}

impl Broker {
    /// Returns whether the server answers. It also answers if its disk is full and it refuses all
    /// writes, and `PING` with them: then it can still be read, and says why it refuses.
    pub async fn ping(&self) -> Result<(), BrokerError> {
        match self.read_one(get(&["PING"])).await {
            Err(BrokerError::NotDone(why)) if why.starts_with("MISCONF") => Ok(()),
            answer => answer.map(drop),
        }
    }

    /// Reads the settings; those that the server denies stay unknown.
    pub async fn server_facts(&self) -> Result<ServerFacts, BrokerError> {
        let setting = |name| get(&["CONFIG", "GET", name]);
        let commands = vec![get(&["INFO"]), setting("appendfsync"), setting("save")];
        let mut answers = self.read(commands).await.into_iter().map(|answer| match answer {
            Err(problem) if problem.is_transient() => Err(problem),
            answer => Ok(answer.ok()),
        });
        let mut next = || answers.next().expect("an answer for each command");
        let info = next()?.and_then(text).unwrap_or_default();
        let number = |name| line_of(&info, name).and_then(|number| number.parse().ok());
        let is_failing = |name| line_of(&info, name).map(|status| status != "ok");
        Ok(ServerFacts {
            version: line_of(&info, "redis_version:"),
            process_id: line_of(&info, "process_id:").and_then(|id| id.parse().ok()),
            bits: line_of(&info, "arch_bits:").and_then(|bits| bits.parse().ok()),
            maxmemory_policy: line_of(&info, "maxmemory_policy:"),
            appendonly: line_of(&info, "aof_enabled:").map(|on| on == "1"),
            appendfsync: next()?.and_then(second),
            save: next()?.and_then(second),
            is_replica: line_of(&info, "role:").map(|role| role == "slave"),
            replicas: line_of(&info, "connected_slaves:").and_then(|count| count.parse().ok()),
            used_memory: number("used_memory:"),
            maxmemory: number("maxmemory:"),
            system_memory: number("total_system_memory:"),
            is_append_failing: is_failing("aof_last_write_status:"),
            is_snapshot_failing: is_failing("rdb_last_bgsave_status:"),
        })
    }
}

fn second(pair: Value) -> Option<String> {
    let items = reply::plain_list("CONFIG GET", pair).ok()?;
    items.into_iter().nth(1).and_then(|value| String::from_utf8(value).ok())
}

fn text(info: Value) -> Option<String> {
    String::from_utf8(reply::plain_bytes("INFO", info).ok()??).ok()
}

fn line_of(info: &str, name: &str) -> Option<String> {
    info.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
}

/// Reads the release of a version: `7.0.15` → (7, 0).
fn release(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_too_old_or_has_32_bits_is_refused() {
        let facts = |version: &str, bits| ServerFacts {
            version: Some(version.to_owned()),
            bits: Some(bits),
            ..ServerFacts::default()
        };
        for version in ["6.2.0", "7.0.15", "10.0.0", "a fork"] {
            assert_eq!(facts(version, 64).refusal(), None, "{version}");
        }
        assert!(facts("6.0.16", 64).refusal().unwrap().contains("6.2"));
        assert!(facts("7.0.15", 32).refusal().unwrap().contains("64-bit"));
        assert_eq!(ServerFacts::default().refusal(), None);
        let replica = ServerFacts { is_replica: Some(true), ..facts("7.0.15", 64) };
        assert!(replica.refusal().unwrap().contains("primary"));
    }

    #[test]
    fn facts_are_printed_as_settings_and_one_sentence_per_line() {
        let facts = ServerFacts {
            version: Some("7.0.15".into()),
            maxmemory_policy: Some("allkeys-lru".into()),
            appendonly: Some(true),
            appendfsync: Some("everysec".into()),
            replicas: Some(1),
            ..ServerFacts::default()
        };
        let text = facts.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "Redis 7.0.15, appendonly yes, appendfsync everysec, maxmemory-policy allkeys-lru, \
             1 replica"
        );
        assert!(lines[1].contains("two seconds"), "{text}");
        assert!(lines[2].contains("failover"), "{text}");
        assert!(lines[3].contains("noeviction"), "{text}");

        let silent = ServerFacts::default().to_string();
        assert_eq!(silent.lines().next(), Some("Redis of unknown version"));
        assert!(silent.contains("is unknown"), "{silent}");
    }

    #[test]
    fn a_server_without_an_append_only_file_loses_what_no_snapshot_has() {
        let with = |appendonly, save: &str| ServerFacts {
            appendonly: Some(appendonly),
            save: Some(save.to_owned()),
            ..ServerFacts::default()
        };
        assert_eq!(with(true, "").without_persistence(), None);
        assert_eq!(ServerFacts::default().without_persistence(), None);
        for (save, loss) in [("3600 1", "since its last snapshot"), ("", "loses every task;")] {
            let facts = with(false, save);
            assert!(facts.without_persistence().unwrap().contains(loss), "{save:?}");
            assert!(facts.to_string().contains(loss), "{save:?}");
        }
    }

    #[test]
    fn an_eviction_policy_that_may_drop_tasks_gives_a_warning() {
        let with = |policy: &str| ServerFacts {
            maxmemory_policy: Some(policy.to_owned()),
            ..ServerFacts::default()
        };
        assert!(with("noeviction").warnings().is_empty());
        assert!(with("allkeys-lru").warnings()[0].contains("noeviction"));
    }
}
