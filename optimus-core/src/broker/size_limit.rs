//! The largest argument that the server accepts in a command, and the limits that depend on it:
//! [`SizeLimit`].
//!
//! Redis closes the connection when it receives a larger argument. Sending it again fails the same
//! way.

use redis::Value;

use super::{Broker, BrokerError, inspect::get, reply};

/// The two settings of Redis that limit the size of an argument.
const SETTINGS: [&str; 2] = ["proto-max-bulk-len", "client-query-buffer-limit"];
/// The default values of these settings.
const DEFAULTS: [usize; 2] = [512 * 1024 * 1024, 1024 * 1024 * 1024];
/// The other bytes in the query buffer when an argument is read into it.
const BUFFER_OVERHEAD: usize = 64 * 1024;
/// The size that every server accepts. A lower limit needs no request.
const ALWAYS_ACCEPTED: usize = 1024 * 1024;

/// A maximum size in bytes, which comes from a setting of the program or of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeLimit {
    bytes: usize,
    setting: &'static str,
    is_servers: bool,
}

impl SizeLimit {
    /// Returns the limit that the setting of this name gives.
    pub const fn new(bytes: usize, setting: &'static str) -> Self {
        Self { bytes, setting, is_servers: false }
    }

    /// Returns the lower of this limit and the largest argument of a server.
    fn within(self, argument_max: usize) -> Self {
        if self.bytes <= argument_max {
            return self;
        }
        Self { bytes: argument_max, is_servers: true, ..self }
    }

    /// Returns the limit, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the setting to raise for a higher limit.
    pub fn remedy(&self) -> String {
        if self.is_servers {
            let [argument, buffer] = SETTINGS;
            format!("raise {argument} and {buffer} of Redis, which takes no larger arguments")
        } else {
            format!("raise {}", self.setting)
        }
    }
}

impl Broker {
    /// Returns this limit, or that of the server if it is lower.
    pub async fn size_limit(&self, limit: SizeLimit) -> Result<SizeLimit, BrokerError> {
        if self.endpoint().is_memory() || limit.bytes <= ALWAYS_ACCEPTED {
            return Ok(limit);
        }
        Ok(limit.within(self.argument_max().await?))
    }

    /// Reads the largest argument that the server accepts. Assumes the defaults if the server does
    /// not return its settings.
    async fn argument_max(&self) -> Result<usize, BrokerError> {
        let commands = SETTINGS.map(|setting| get(&["CONFIG", "GET", setting]));
        let mut values = DEFAULTS;
        for (value, answer) in values.iter_mut().zip(self.read(commands.to_vec()).await) {
            match answer {
                Ok(pair) => *value = bytes_of(pair).unwrap_or(*value),
                Err(problem) if problem.is_transient() => return Err(problem),
                // `CONFIG` is denied.
                Err(_) => {}
            }
        }
        let [argument, buffer] = values;
        Ok(argument.min(buffer.saturating_sub(BUFFER_OVERHEAD)))
    }
}

/// Returns the second element of the reply to `CONFIG GET`.
fn bytes_of(pair: Value) -> Option<usize> {
    let words = reply::plain_list("CONFIG GET", pair).ok()?;
    let bytes: u64 = std::str::from_utf8(words.get(1)?).ok()?.parse().ok()?;
    Some(usize::try_from(bytes).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lower_limit_applies_and_names_the_setting_to_raise() {
        let limit = SizeLimit::new(100, "Builder::limit");
        assert_eq!(limit.within(100), limit);
        assert_eq!(limit.remedy(), "raise Builder::limit");
        let of_server = limit.within(99);
        assert_eq!(of_server.bytes(), 99);
        assert!(of_server.remedy().contains("proto-max-bulk-len"), "{}", of_server.remedy());
    }
}
