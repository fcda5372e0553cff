//! The failures of an exchange with Redis, sorted by what the caller can do.

use super::script_refusal::Refusal;

/// The reason why a call has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BrokerError {
    /// The call was not done, and may be tried again.
    #[error("{0}")]
    NotDone(String),
    /// The call was sent, and no answer came: it may have been done or not. It may be sent again
    /// unchanged.
    #[error("{0}")]
    Unknown(String),
    /// The script refused; the text has the details.
    #[error("refused: {0:?} {1}")]
    Refused(Refusal, String),
    /// Redis is at maxmemory.
    #[error("Redis is full")]
    Full,
    /// The user or password is wrong, and was never valid in this process.
    #[error("{0}")]
    Unauthorized(String),
    /// One side uses TLS and the other does not, or one side does not trust the other. TLS to this
    /// server never worked in this process.
    #[error("{0}")]
    Tls(String),
    /// The server can't be used in the way that the URL requires.
    #[error("{0}")]
    Misconfigured(String),
    /// The server's user lacks permissions; the text names them.
    #[error("{0}")]
    Denied(String),
    /// Redis refused, and will refuse again: for example, a key of another type.
    #[error("{0}")]
    Rejected(String),
    /// The answer has a form that no script returns.
    #[error("{0}")]
    UnexpectedReply(String),
}

impl BrokerError {
    /// Returns whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::NotDone(_) | Self::Unknown(_))
    }

    /// Returns whether the server refuses this client, so that somebody has to change a setting.
    pub(super) fn refuses_the_client(&self) -> bool {
        matches!(self, Self::Unauthorized(_) | Self::Tls(_) | Self::Misconfigured(_))
    }

    /// Returns the refusal, if it is one.
    pub fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Refused(refusal, _) => Some(*refusal),
            _ => None,
        }
    }

    /// Sorts an error of Redis by its code and text. Errors that pass by themselves count as not
    /// done; unknown errors do not.
    pub(super) fn of_server(code: &str, text: &str) -> Self {
        if let Some((code, text)) = inner_error(text) {
            return Self::of_server(code, text);
        }
        let message = format!("{code} {text}");
        match code {
            "LOADING" | "BUSY" | "TRYAGAIN" | "CLUSTERDOWN" | "READONLY" | "MASTERDOWN"
            | "UNBLOCKED" | "MISCONF" | "NOREPLICAS" | "MOVED" | "ASK" => Self::NotDone(message),
            "OOM" => Self::Full,
            "NOAUTH" | "WRONGPASS" => Self::Unauthorized(message),
            // Instead of NOAUTH, if a command has more than ten arguments or a long one.
            "ERR" if text.starts_with("Protocol error: unauthenticated") => {
                Self::Unauthorized(message)
            }
            _ if text.contains("max number of clients") => Self::NotDone(message),
            _ if text.contains("OOM command not allowed") => Self::Full,
            _ => Self::Rejected(message),
        }
    }
}

/// Redis 6.2 wraps the error of a command in a script: `Error running script (call to …):
/// @user_script:9: @user_script: 9: -READONLY You can't …`.
fn inner_error(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix("Error running script")?.split_once(": -")?.1.split_once(' ')
}

impl From<BrokerError> for crate::Error {
    fn from(problem: BrokerError) -> Self {
        match problem {
            BrokerError::NotDone(why) | BrokerError::Unknown(why) => {
                Self::unavailable("Redis", why)
            }
            BrokerError::Full => Self::full(),
            BrokerError::Unauthorized(why) => Self::unauthorized(why),
            BrokerError::Tls(why) => Self::tls(why),
            BrokerError::Misconfigured(why) => Self::invalid(why),
            BrokerError::Refused(Refusal::Newer, needs) => Self::outdated(&needs),
            BrokerError::Denied(why) => Self::rejected(why),
            other => Self::rejected(format!("Redis answered with an error: {other}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_inside_a_script_is_recognized_on_redis_6_too() {
        let wrapped = |inner: &str| {
            let text = format!(
                "Error running script (call to f_52): @user_script:272: @user_script: 272: {inner}"
            );
            BrokerError::of_server("ERR", &text)
        };
        let demoted = wrapped("-READONLY You can't write against a read only replica.");
        assert!(demoted.is_transient());
        assert!(demoted.to_string().starts_with("READONLY"), "{demoted}");
        let full = wrapped("-OOM command not allowed when used memory > 'maxmemory'.");
        assert!(matches!(full, BrokerError::Full));
        let wrong_type = wrapped("-WRONGTYPE Operation against a key holding the wrong kind");
        assert!(matches!(wrong_type, BrokerError::Rejected(_)));
        let broken = BrokerError::of_server("ERR", "Error running script: a nil value: x");
        assert!(matches!(broken, BrokerError::Rejected(_)));
    }

    #[test]
    fn errors_of_redis_are_sorted_by_what_a_caller_can_do() {
        let of = |code: &str, text: &str| BrokerError::of_server(code, text);
        for code in ["LOADING", "READONLY", "MISCONF", "CLUSTERDOWN", "UNBLOCKED", "MOVED"] {
            assert!(of(code, "").is_transient(), "{code}");
        }
        assert!(of("ERR", "max number of clients reached").is_transient());
        assert!(matches!(of("OOM", ""), BrokerError::Full));
        assert!(matches!(of("ERR", "OOM command not allowed"), BrokerError::Full));
        let long = "Protocol error: unauthenticated multibulk length";
        let refused = BrokerError::of_server("ERR", long);
        assert!(matches!(refused, BrokerError::Unauthorized(_)), "{refused:?}");
        for code in ["NOAUTH", "WRONGPASS"] {
            assert!(matches!(of(code, ""), BrokerError::Unauthorized(_)), "{code}");
        }
        let wrong_type = of("WRONGTYPE", "Operation against a key");
        assert!(!wrong_type.is_transient() && wrong_type.refusal().is_none());
        assert_eq!(wrong_type.to_string(), "WRONGTYPE Operation against a key");
    }

    #[test]
    fn a_public_error_shows_whether_to_wait_to_log_in_or_to_fix_something() {
        let public = |problem: BrokerError| crate::Error::from(problem);
        assert!(public(BrokerError::NotDone("away".into())).is_unavailable());
        assert!(public(BrokerError::Unknown("away".into())).is_unavailable());
        assert!(public(BrokerError::Full).is_full());
        assert!(public(BrokerError::Refused(Refusal::Newer, "2".into())).is_outdated());
        assert!(public(BrokerError::Unauthorized("no".into())).is_unauthorized());
        assert!(public(BrokerError::Tls("no".into())).is_tls());
        assert!(public(BrokerError::Misconfigured("no".into())).is_invalid());
        let rejected = public(BrokerError::Rejected("no".into()));
        assert!(rejected.is_rejected());
        assert_eq!(rejected.to_string(), "Redis answered with an error: no");
        assert_eq!(public(BrokerError::Denied("add +get".into())).to_string(), "add +get");
        assert!(public(BrokerError::UnexpectedReply("what".into())).is_rejected());
    }
}
