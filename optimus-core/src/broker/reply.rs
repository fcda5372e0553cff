//! Replies of scripts: the only parsing code.

use redis::Value;

use super::{BrokerError, refusal::Refusal};

/// The parts of a script's answer behind its `OK`, read in order.
#[derive(Debug)]
pub struct Reply {
    script: &'static str,
    parts: std::vec::IntoIter<Value>,
}

impl Reply {
    /// Tells an answer from a refusal.
    pub(super) fn new(script: &'static str, value: Value) -> Result<Self, BrokerError> {
        let parts = match value {
            Value::Array(parts) => parts,
            word => vec![word],
        };
        let mut reply = Self { script, parts: parts.into_iter() };
        let word = reply.text()?;
        if word == "OK" {
            return Ok(reply);
        }
        match Refusal::from_word(&word) {
            Some(refusal) => {
                let detail = reply.parts.next().and_then(|part| bytes(part).ok());
                let detail = detail.map(|d| String::from_utf8_lossy(&d).into_owned());
                Err(BrokerError::Refused(refusal, detail.unwrap_or_default()))
            }
            None => Err(BrokerError::Odd(format!("{script} answered {word:?}"))),
        }
    }

    /// The next part as bytes.
    pub fn bytes(&mut self) -> Result<Vec<u8>, BrokerError> {
        let part = self.part()?;
        bytes(part).map_err(|part| odd(self.script, &part))
    }

    /// The next part as text.
    pub fn text(&mut self) -> Result<String, BrokerError> {
        let bytes = self.bytes()?;
        String::from_utf8(bytes).map_err(|_| BrokerError::Odd(format!("{}: not text", self.script)))
    }

    /// The next part as a whole number.
    pub fn number<N: std::str::FromStr>(&mut self) -> Result<N, BrokerError> {
        let text = self.text()?;
        text.parse()
            .map_err(|_| BrokerError::Odd(format!("{}: {text:?} is no number", self.script)))
    }

    /// The next part as a flag, written `1` or `0`.
    pub fn flag(&mut self) -> Result<bool, BrokerError> {
        Ok(self.text()? == "1")
    }

    /// The next part as a number of ms, where -1 stands for none.
    pub fn wait(&mut self) -> Result<Option<std::time::Duration>, BrokerError> {
        let ms: i64 = self.number()?;
        Ok(u64::try_from(ms).ok().map(std::time::Duration::from_millis))
    }

    /// The next part as a list of byte strings, where nil is an empty one.
    pub fn list(&mut self) -> Result<Vec<Vec<u8>>, BrokerError> {
        let part = self.part()?;
        list(self.script, part)
    }

    /// The next part as a list of texts.
    pub fn texts(&mut self) -> Result<Vec<String>, BrokerError> {
        let script = self.script;
        self.list()?.into_iter().map(|item| text_of(script, item)).collect()
    }

    /// The next `count` parts, as texts.
    pub fn next_texts(&mut self, count: usize) -> Result<Vec<String>, BrokerError> {
        (0..count.min(self.parts.len())).map(|_| self.text()).collect()
    }

    /// All that is left, as texts.
    pub fn rest(self) -> Result<Vec<String>, BrokerError> {
        let script = self.script;
        list(script, Value::Array(self.parts.collect()))?
            .into_iter()
            .map(|item| text_of(script, item))
            .collect()
    }

    fn part(&mut self) -> Result<Value, BrokerError> {
        self.parts
            .next()
            .ok_or_else(|| BrokerError::Odd(format!("{} answered too little", self.script)))
    }
}

fn text_of(script: &'static str, item: Vec<u8>) -> Result<String, BrokerError> {
    String::from_utf8(item).map_err(|_| BrokerError::Odd(format!("{script}: not text")))
}

fn bytes(value: Value) -> Result<Vec<u8>, Value> {
    match value {
        Value::BulkString(bytes) => Ok(bytes),
        Value::SimpleString(text) => Ok(text.into_bytes()),
        Value::Okay => Ok(b"OK".to_vec()),
        Value::Int(n) => Ok(n.to_string().into_bytes()),
        Value::Nil => Ok(Vec::new()),
        other => Err(other),
    }
}

fn list(script: &'static str, value: Value) -> Result<Vec<Vec<u8>>, BrokerError> {
    match value {
        Value::Array(items) | Value::Set(items) => {
            items.into_iter().map(|item| bytes(item).map_err(|item| odd(script, &item))).collect()
        }
        Value::Map(pairs) => pairs
            .into_iter()
            .flat_map(|(key, value)| [key, value])
            .map(|item| bytes(item).map_err(|item| odd(script, &item)))
            .collect(),
        Value::Nil => Ok(Vec::new()),
        other => Err(odd(script, &other)),
    }
}

/// A plain command's answer as a list of byte strings.
pub(super) fn plain_list(command: &'static str, value: Value) -> Result<Vec<Vec<u8>>, BrokerError> {
    list(command, value)
}

/// A plain command's answer as bytes; `None` for nil.
pub(super) fn plain_bytes(
    command: &'static str,
    value: Value,
) -> Result<Option<Vec<u8>>, BrokerError> {
    match value {
        Value::Nil => Ok(None),
        other => bytes(other).map(Some).map_err(|other| odd(command, &other)),
    }
}

fn odd(script: &'static str, value: &Value) -> BrokerError {
    BrokerError::Odd(format!("{script} answered {value:?}"))
}
