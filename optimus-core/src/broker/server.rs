//! What the live server's configuration means for tasks: asked at a worker's start.

use redis::Value;

use super::{Broker, BrokerError, look::get, reply};

/// Settings that decide what an acknowledgement is worth; `None` where the server won't tell.
#[derive(Debug, Clone, Default)]
pub struct ServerFacts {
    /// Its version.
    pub version: Option<String>,
    /// How many bits its words have.
    pub bits: Option<u32>,
    /// What it does at maxmemory; anything but `noeviction` may drop tasks.
    pub maxmemory_policy: Option<String>,
    /// Whether it appends writes to a file.
    pub appendonly: Option<bool>,
    /// How often it syncs that file.
    pub appendfsync: Option<String>,
}

/// The oldest version that knows every command of the scripts.
const OLDEST: (u32, u32) = (6, 2);

impl ServerFacts {
    /// Why no worker should start on it; `None` if it will do.
    pub fn refusal(&self) -> Option<String> {
        let too_old = self.version.as_deref().filter(|v| release(v).is_some_and(|v| v < OLDEST));
        if let Some(version) = too_old {
            return Some(format!("Redis {version} is too old; run 6.2 or newer"));
        }
        (self.bits == Some(32)).then(|| {
            "this Redis is a 32-bit build, whose scripts can't print an instant in ms; \
             run a 64-bit build"
                .to_owned()
        })
    }

    /// What is dangerous about them, a sentence each.
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

    /// What an acknowledged submit survives.
    pub fn promise(&self) -> &'static str {
        match (self.appendonly, self.appendfsync.as_deref()) {
            (Some(true), Some("always")) => "acknowledged tasks survive a crash of Redis",
            (Some(true), Some("everysec")) => {
                "a crash of Redis may lose the last two seconds of acknowledged tasks"
            }
            (Some(true), _) => {
                "a crash of Redis may lose what the system had not yet written to disk"
            }
            (Some(false), _) => {
                "a crash of Redis loses every task since its last snapshot; set appendonly yes"
            }
            (None, _) => "the server does not tell what survives its crash (CONFIG is denied)",
        }
    }
}

impl Broker {
    /// Whether the server answers.
    pub async fn ping(&self) -> Result<(), BrokerError> {
        self.one(get(&["PING"])).await.map(drop)
    }

    /// Asks the server; what it denies stays unknown.
    pub async fn server_facts(&self) -> Result<ServerFacts, BrokerError> {
        let settings = ["maxmemory-policy", "appendonly", "appendfsync"];
        let mut commands = vec![get(&["INFO", "server"])];
        commands.extend(settings.iter().map(|name| get(&["CONFIG", "GET", name])));
        let mut answers = self.send(commands).await.into_iter();
        let info = answers.next().expect("an answer for each call").ok().and_then(text);
        let mut setting = || {
            let answer = answers.next().expect("an answer for each call");
            match answer {
                Ok(pair) => Ok(second(pair)),
                Err(problem) if problem.is_transient() => Err(problem),
                Err(_) => Ok(None),
            }
        };
        Ok(ServerFacts {
            version: info.as_deref().and_then(|info| line_of(info, "redis_version:")),
            bits: info.as_deref().and_then(|info| line_of(info, "arch_bits:")?.parse().ok()),
            maxmemory_policy: setting()?,
            appendonly: setting()?.map(|value| value == "yes"),
            appendfsync: setting()?,
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

/// `7.0.15` → (7, 0).
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
    }

    #[test]
    fn an_eviction_policy_that_may_drop_tasks_is_warned_of() {
        let with = |policy: &str| ServerFacts {
            maxmemory_policy: Some(policy.to_owned()),
            ..ServerFacts::default()
        };
        assert!(with("noeviction").warnings().is_empty());
        assert!(with("allkeys-lru").warnings()[0].contains("noeviction"));
    }
}
