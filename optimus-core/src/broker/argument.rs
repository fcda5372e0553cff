//! The largest argument that the server takes in a command, and limits that must respect it:
//! [`SizeLimit`].
//!
//! Redis closes the connection at a larger one. To send it again fails the same way.

use redis::Value;

use super::{Broker, BrokerError, inspect::get, reply};

/// The two settings that bound an argument.
const SETTINGS: [&str; 2] = ["proto-max-bulk-len", "client-query-buffer-limit"];
/// Their values where nobody has set them.
const DEFAULTS: [usize; 2] = [512 * 1024 * 1024, 1024 * 1024 * 1024];
/// What stands in the query buffer beside the argument that is read into it.
const BESIDE_IT: usize = 64 * 1024;
/// No server takes less, so this much needs no question.
const LEAST: usize = 1024 * 1024;

/// How many bytes something may have, by a setting of the program and by the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeLimit {
    bytes: usize,
    setting: &'static str,
    is_servers: bool,
}

impl SizeLimit {
    /// The limit of a setting that is called so.
    pub const fn new(bytes: usize, setting: &'static str) -> Self {
        Self { bytes, setting, is_servers: false }
    }

    /// The lower one of this and the largest argument of a server.
    fn within(self, argument_max: usize) -> Self {
        if self.bytes <= argument_max {
            return self;
        }
        Self { bytes: argument_max, is_servers: true, ..self }
    }

    /// The most bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What has to be raised for more.
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
    /// This limit, or that of the server if it is lower.
    pub async fn size_limit(&self, limit: SizeLimit) -> Result<SizeLimit, BrokerError> {
        if self.endpoint().is_memory() || limit.bytes <= LEAST {
            return Ok(limit);
        }
        Ok(limit.within(self.argument_max().await?))
    }

    /// The largest argument that the server takes; by its defaults where it won't tell.
    async fn argument_max(&self) -> Result<usize, BrokerError> {
        let asks = SETTINGS.map(|setting| get(&["CONFIG", "GET", setting]));
        let mut told = DEFAULTS;
        for (told, answer) in told.iter_mut().zip(self.read(asks.to_vec()).await) {
            match answer {
                Ok(pair) => *told = bytes_of(pair).unwrap_or(*told),
                Err(problem) if problem.is_transient() => return Err(problem),
                // It may not be asked.
                Err(_) => {}
            }
        }
        let [argument, buffer] = told;
        Ok(argument.min(buffer.saturating_sub(BESIDE_IT)))
    }
}

/// The second word of an answer to `CONFIG GET`.
fn bytes_of(pair: Value) -> Option<usize> {
    let words = reply::plain_list("CONFIG GET", pair).ok()?;
    let bytes: u64 = std::str::from_utf8(words.get(1)?).ok()?.parse().ok()?;
    Some(usize::try_from(bytes).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lower_limit_counts_and_says_what_to_raise() {
        let limit = SizeLimit::new(100, "Builder::limit");
        assert_eq!(limit.within(100), limit);
        assert_eq!(limit.remedy(), "raise Builder::limit");
        let of_server = limit.within(99);
        assert_eq!(of_server.bytes(), 99);
        assert!(of_server.remedy().contains("proto-max-bulk-len"), "{}", of_server.remedy());
    }
}
