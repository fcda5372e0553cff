//! The errors of commands, with the texts of Redis 7.

/// A server error. Its text starts with the code, as in the protocol.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("ERR optimus-embedded does not implement '{0}'")]
    Unimplemented(String),
    #[error("WRONGTYPE Operation against a key holding the wrong kind of value")]
    WrongType,
    #[error("OOM command not allowed when used memory > 'maxmemory'.")]
    OutOfMemory,
    #[error("NOSCRIPT No matching script. Please use EVAL.")]
    NoScript,
    #[error("EXECABORT Transaction discarded because of previous errors.")]
    Aborted,
    #[error("NOPROTO unsupported protocol version")]
    Protocol,
    #[error("ERR wrong number of arguments for '{0}' command")]
    Arity(&'static str),
    #[error("ERR syntax error")]
    Syntax,
    #[error("ERR value is not an integer or out of range")]
    NotAnInteger,
    #[error("ERR value is out of range, must be positive")]
    NotPositive,
    #[error("ERR value is not a valid float")]
    NotAFloat,
    #[error("ERR min or max is not a float")]
    NotAScoreRange,
    #[error("ERR resulting score is not a number (NaN)")]
    NotANumber,
    #[error("ERR hash value is not an integer")]
    HashNotAnInteger,
    #[error("ERR increment or decrement would overflow")]
    Overflow,
    #[error("ERR invalid expire time in '{0}' command")]
    ExpireTime(&'static str),
    #[error("ERR invalid cursor")]
    Cursor,
    #[error("ERR no such key")]
    NoSuchKey,
    #[error("ERR index out of range")]
    Index,
    /// An error that occurs in only one place, or an error of a script. The text begins with its
    /// code.
    #[error("{0}")]
    Other(String),
}

impl CommandError {
    /// Returns an error with the code ERR.
    pub(crate) fn general(message: impl std::fmt::Display) -> Self {
        Self::Other(format!("ERR {message}"))
    }

    /// Returns the error for a command or an option that this crate does not implement.
    pub(crate) fn unimplemented(what: &[u8]) -> Self {
        Self::Unimplemented(String::from_utf8_lossy(what).into_owned())
    }
}
