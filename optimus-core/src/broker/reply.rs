//! Parses the replies of scripts.

use redis::Value;

use super::{BrokerError, script_refusal::Refusal};

/// The parts of a script's answer after its `OK`, read in order.
#[derive(Debug)]
pub struct Reply {
    script: &'static str,
    parts: std::vec::IntoIter<Value>,
}

impl Reply {
    /// Separates answers from refusals.
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
            None => Err(BrokerError::UnexpectedReply(format!("{script} answered {word:?}"))),
        }
    }

    /// Reads an answer in the form of the wire, for benchmarks and tests of the parser.
    pub fn from_bytes(script: &'static str, bytes: &[u8]) -> Result<Self, BrokerError> {
        let value = redis::parse_redis_value(bytes)
            .map_err(|problem| BrokerError::UnexpectedReply(problem.to_string()))?;
        Self::new(script, value)
    }

    /// Returns the next part as bytes.
    pub fn bytes(&mut self) -> Result<Vec<u8>, BrokerError> {
        let part = self.part()?;
        bytes(part).map_err(|part| unexpected(self.script, &part))
    }

    /// Returns the next part as text.
    pub fn text(&mut self) -> Result<String, BrokerError> {
        let bytes = self.bytes()?;
        String::from_utf8(bytes)
            .map_err(|_| BrokerError::UnexpectedReply(format!("{}: not text", self.script)))
    }

    /// Returns the next part as a whole number.
    pub fn number<N: std::str::FromStr>(&mut self) -> Result<N, BrokerError> {
        let text = self.text()?;
        text.parse().map_err(|_| {
            BrokerError::UnexpectedReply(format!("{}: {text:?} is not a number", self.script))
        })
    }

    /// Returns the next part as a flag, written `1` or `0`.
    pub fn flag(&mut self) -> Result<bool, BrokerError> {
        Ok(self.text()? == "1")
    }

    /// Returns the next part as a number of ms; -1 means none.
    pub fn wait(&mut self) -> Result<Option<std::time::Duration>, BrokerError> {
        let ms: i64 = self.number()?;
        Ok(u64::try_from(ms).ok().map(std::time::Duration::from_millis))
    }

    /// Returns the next part as a list of byte strings; nil is an empty list.
    pub fn list(&mut self) -> Result<Vec<Vec<u8>>, BrokerError> {
        let part = self.part()?;
        list(self.script, part)
    }

    /// Returns the next part as a list of texts.
    pub fn texts(&mut self) -> Result<Vec<String>, BrokerError> {
        let script = self.script;
        self.list()?.into_iter().map(|item| text_of(script, item)).collect()
    }

    /// Returns the next `count` parts, as texts.
    pub fn next_texts(&mut self, count: usize) -> Result<Vec<String>, BrokerError> {
        (0..count).map(|_| self.text()).collect()
    }

    /// Returns all parts that are left, as texts.
    pub fn rest(self) -> Result<Vec<String>, BrokerError> {
        let script = self.script;
        list(script, Value::Array(self.parts.collect()))?
            .into_iter()
            .map(|item| text_of(script, item))
            .collect()
    }

    /// Returns whether no parts are left.
    pub fn is_empty(&self) -> bool {
        self.parts.len() == 0
    }

    fn part(&mut self) -> Result<Value, BrokerError> {
        self.parts.next().ok_or_else(|| {
            BrokerError::UnexpectedReply(format!("{} answered with too few parts", self.script))
        })
    }
}

fn text_of(script: &'static str, item: Vec<u8>) -> Result<String, BrokerError> {
    String::from_utf8(item).map_err(|_| BrokerError::UnexpectedReply(format!("{script}: not text")))
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
        Value::Array(items) | Value::Set(items) => items
            .into_iter()
            .map(|item| bytes(item).map_err(|item| unexpected(script, &item)))
            .collect(),
        Value::Map(pairs) => pairs
            .into_iter()
            .flat_map(|(key, value)| [key, value])
            .map(|item| bytes(item).map_err(|item| unexpected(script, &item)))
            .collect(),
        Value::Nil => Ok(Vec::new()),
        other => Err(unexpected(script, &other)),
    }
}

/// Returns the answer to a plain command, as a list of byte strings.
pub(super) fn plain_list(command: &'static str, value: Value) -> Result<Vec<Vec<u8>>, BrokerError> {
    list(command, value)
}

/// Returns the answer to a plain command, as bytes; `None` for nil.
pub(super) fn plain_bytes(
    command: &'static str,
    value: Value,
) -> Result<Option<Vec<u8>>, BrokerError> {
    match value {
        Value::Nil => Ok(None),
        other => bytes(other).map(Some).map_err(|other| unexpected(command, &other)),
    }
}

fn unexpected(script: &'static str, value: &Value) -> BrokerError {
    BrokerError::UnexpectedReply(format!("{script} answered {value:?}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    fn reply(parts: Vec<Value>) -> Reply {
        let parts = [vec![Value::Okay], parts].concat();
        Reply::new("verb", Value::Array(parts)).expect("an answer")
    }

    fn is_unexpected<T: std::fmt::Debug>(read: Result<T, BrokerError>) -> bool {
        matches!(read, Err(BrokerError::UnexpectedReply(why)) if why.contains("verb"))
    }

    #[test]
    fn an_answer_a_refusal_and_an_unknown_reply_are_separated() {
        assert!(Reply::new("verb", Value::Okay).is_ok());
        assert!(Reply::new("verb", Value::SimpleString("OK".into())).is_ok());
        let refused = |parts| Reply::new("verb", Value::Array(parts)).unwrap_err();
        let wrong = refused(vec![bulk("WRONG_STATE"), bulk("dead")]);
        assert_eq!(wrong.refusal(), Some(Refusal::WrongState));
        assert!(wrong.to_string().ends_with("dead"), "{wrong}");
        assert_eq!(refused(vec![bulk("LAPSED")]).refusal(), Some(Refusal::Lapsed));
        assert!(is_unexpected(Reply::new("verb", bulk("WHAT"))));
        assert!(is_unexpected(Reply::new("verb", Value::Array(Vec::new()))));
    }

    #[test]
    fn parts_are_read_in_order_and_a_missing_one_is_an_error() {
        let mut reply = reply(vec![bulk("a"), Value::Int(7), bulk("1"), Value::Int(0), Value::Nil]);
        assert_eq!(reply.text().unwrap(), "a");
        assert_eq!(reply.number::<u8>().unwrap(), 7);
        assert_eq!((reply.flag().unwrap(), reply.flag().unwrap()), (true, false));
        assert_eq!(reply.bytes().unwrap(), b"");
        assert!(is_unexpected(reply.bytes()));
    }

    #[test]
    fn a_wait_is_a_number_of_ms_and_minus_one_means_none() {
        let mut reply = reply(vec![Value::Int(250), Value::Int(-1), bulk("soon")]);
        assert_eq!(reply.wait().unwrap(), Some(Duration::from_millis(250)));
        assert_eq!(reply.wait().unwrap(), None);
        assert!(is_unexpected(reply.wait()));
    }

    #[test]
    fn lists_have_texts_or_bytes_and_nil_is_an_empty_list() {
        let list = |items: &[&str]| Value::Array(items.iter().map(|item| bulk(item)).collect());
        let nested = Value::Array(vec![list(&["a"])]);
        let mut found = reply(vec![list(&["a", "b"]), Value::Nil, nested]);
        assert_eq!(found.texts().unwrap(), ["a", "b"]);
        assert!(found.list().unwrap().is_empty());
        assert!(is_unexpected(found.list()));
        let binary = || Value::BulkString(vec![0xff]);
        let mut found = reply(vec![Value::Set(vec![binary()]), Value::Array(vec![binary()])]);
        assert_eq!(found.list().unwrap(), [[0xff]]);
        assert!(is_unexpected(found.texts()));
        assert!(is_unexpected(reply(vec![Value::Double(0.5)]).list()));
        let pairs = Value::Map(vec![(bulk("a"), bulk("b"))]);
        assert_eq!(plain_list("verb", pairs).unwrap(), [b"a", b"b"]);
    }

    #[test]
    fn the_next_texts_leave_the_rest() {
        let mut found = reply(vec![bulk("a"), bulk("b"), Value::Int(3)]);
        assert_eq!(found.next_texts(2).unwrap(), ["a", "b"]);
        assert_eq!(found.rest().unwrap(), ["3"]);
        assert!(is_unexpected(reply(vec![bulk("a")]).next_texts(usize::MAX)));
    }

    #[test]
    fn nil_and_an_empty_string_differ_in_the_answer_to_a_plain_command() {
        assert_eq!(plain_bytes("verb", Value::Nil).unwrap(), None);
        assert_eq!(plain_bytes("verb", bulk("")).unwrap(), Some(Vec::new()));
        assert!(is_unexpected(plain_bytes("verb", Value::Double(0.5))));
    }
}
