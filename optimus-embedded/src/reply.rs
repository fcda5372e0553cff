//! The reply of a command, and its form for the redis crate.

use redis::Value;

use crate::error::CommandError;

/// The reply of a command that was not refused. It contains errors only inside arrays.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    Nil,
    Integer(i64),
    Bulk(Vec<u8>),
    /// A short text without line breaks.
    Status(String),
    Array(Vec<Reply>),
    Error(CommandError),
}

impl Reply {
    pub(crate) fn ok() -> Self {
        Self::Status("OK".to_owned())
    }

    pub(crate) fn bulk(bytes: impl AsRef<[u8]>) -> Self {
        Self::Bulk(bytes.as_ref().to_vec())
    }

    /// Returns the bulk string, or nil if there is none.
    pub(crate) fn bulk_or_nil(bytes: Option<impl AsRef<[u8]>>) -> Self {
        bytes.map_or(Self::Nil, Self::bulk)
    }

    pub(crate) fn bulks<B: AsRef<[u8]>>(items: impl IntoIterator<Item = B>) -> Self {
        Self::Array(items.into_iter().map(Self::bulk).collect())
    }

    /// Returns a count as a reply.
    pub(crate) fn count(count: usize) -> Self {
        Self::Integer(i64::try_from(count).expect("a count of things in memory fits an i64"))
    }
}

impl From<bool> for Reply {
    fn from(flag: bool) -> Self {
        Self::Integer(i64::from(flag))
    }
}

impl From<Result<Reply, CommandError>> for Reply {
    fn from(outcome: Result<Reply, CommandError>) -> Self {
        outcome.unwrap_or_else(Self::Error)
    }
}

impl From<Reply> for Value {
    fn from(reply: Reply) -> Self {
        match reply {
            Reply::Nil => Self::Nil,
            Reply::Integer(integer) => Self::Int(integer),
            Reply::Bulk(bytes) => Self::BulkString(bytes),
            Reply::Status(text) if text == "OK" => Self::Okay,
            Reply::Status(text) => Self::SimpleString(text),
            Reply::Array(items) => Self::Array(items.into_iter().map(Into::into).collect()),
            Reply::Error(error) => server_error(&error),
        }
    }
}

/// Creates the error from its text, because only the parser of the redis crate can create a
/// `redis::ServerError`.
fn server_error(error: &CommandError) -> Value {
    let line = format!("-{}\r\n", error.to_string().replace(['\r', '\n'], " "));
    redis::parse_redis_value(line.as_bytes())
        .expect("a line that begins with '-' parses as an error")
}
