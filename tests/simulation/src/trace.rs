//! Combines all commands and replies between processes and the store into one hash: [`Trace`].

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use redis::{Cmd, Value};

/// A running hash of each command, its reply and its virtual time.
///
/// Two runs with equal hashes are equal, because the hasher has no random key.
#[derive(Debug, Default)]
pub struct Trace {
    hasher: DefaultHasher,
    /// Whether each line is printed when it is added.
    pub loud: bool,
}

impl Trace {
    /// Adds a command that the store has answered.
    pub fn command(&mut self, at_us: u64, process: u32, verb: &str, command: &Cmd, answer: &Value) {
        let mut hasher = DefaultHasher::new();
        command.get_packed_command().hash(&mut hasher);
        let sent = hasher.finish();
        let mut hasher = DefaultHasher::new();
        hash(answer, &mut hasher);
        let answered = hasher.finish();
        (at_us, process, sent, answered).hash(&mut self.hasher);
        self.line(|| match answer {
            Value::ServerError(error) => {
                format!("{at_us} {process} {verb} {sent:016x} failed: {error:?}")
            }
            _ => format!("{at_us} {process} {verb} {sent:016x} {answered:016x}"),
        });
    }

    /// Adds another event.
    pub fn note(&mut self, at_us: u64, process: u32, what: &str) {
        (at_us, process, what).hash(&mut self.hasher);
        self.line(|| format!("{at_us} {process} {what}"));
    }

    /// Returns the hash so far.
    pub fn hash(&self) -> u64 {
        self.hasher.finish()
    }

    fn line(&self, text: impl FnOnce() -> String) {
        if self.loud {
            println!("{}", text());
        }
    }
}

/// Hashes a reply with all its values.
fn hash(value: &Value, hasher: &mut DefaultHasher) {
    std::mem::discriminant(value).hash(hasher);
    match value {
        Value::Int(number) => number.hash(hasher),
        Value::BulkString(bytes) => bytes.hash(hasher),
        Value::SimpleString(text) => text.hash(hasher),
        Value::Array(items) => {
            items.len().hash(hasher);
            for item in items {
                hash(item, hasher);
            }
        }
        Value::ServerError(error) => format!("{error:?}").hash(hasher),
        _ => {}
    }
}
