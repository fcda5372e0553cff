//! What the live server's configuration means for tasks: asked at a worker's start.

use redis::Value;

use super::{Broker, BrokerError, look::get, reply};

/// Settings that decide what an acknowledgement is worth; `None` where the server won't tell.
#[derive(Debug, Clone, Default)]
pub struct ServerFacts {
    /// Its version.
    pub version: Option<String>,
    /// What it does at maxmemory; anything but `noeviction` may drop tasks.
    pub maxmemory_policy: Option<String>,
    /// Whether it appends writes to a file.
    pub appendonly: Option<bool>,
    /// How often it syncs that file.
    pub appendfsync: Option<String>,
}

impl ServerFacts {
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
        let info = answers.next().expect("an answer for each call");
        let mut setting = || {
            let answer = answers.next().expect("an answer for each call");
            match answer {
                Ok(pair) => Ok(second(pair)),
                Err(problem) if problem.is_transient() => Err(problem),
                Err(_) => Ok(None),
            }
        };
        Ok(ServerFacts {
            version: info.ok().and_then(version),
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

fn version(info: Value) -> Option<String> {
    let text = reply::plain_bytes("INFO", info).ok()??;
    let text = String::from_utf8(text).ok()?;
    text.lines().find_map(|line| line.strip_prefix("redis_version:")).map(|v| v.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

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
