//! Why a connection could not be made: [`DialError`], and what a caller can do about it.

use std::{io, time::Duration};

use redis::RedisError;

use super::BrokerError;

/// The reason why a connection could not be made.
#[derive(Debug)]
pub(super) enum DialError {
    /// The server did not answer, or it answered with this error.
    Redis(RedisError),
    /// One side uses TLS and the other does not, or one side does not trust the other. The text
    /// states what to do.
    Tls(String),
    /// The program's files or settings can't be used.
    Misconfigured(String),
    /// The program returned no credentials.
    NoCredentials(String),
    /// Redis refused credentials that may be old. The text states why there were no newer ones.
    OldCredentials(String),
}

impl DialError {
    /// The server did not complete a step in time.
    pub(super) fn late(what: &str, within: Duration) -> Self {
        let why = format!("{what} within {} s", within.as_secs());
        io::Error::new(io::ErrorKind::TimedOut, why).into()
    }

    /// Converts the error into the kind that shows what a caller can do.
    pub(super) fn into_broker_error(self, place: &str) -> BrokerError {
        match self {
            Self::Redis(problem) => refusal_of(&problem, place),
            Self::Tls(why) => BrokerError::Tls(format!("{place}: {why}")),
            Self::Misconfigured(why) => BrokerError::Misconfigured(format!("{place}: {why}")),
            Self::NoCredentials(why) => {
                BrokerError::NotDone(format!("no credentials for {place}: {why}"))
            }
            Self::OldCredentials(why) => BrokerError::NotDone(format!(
                "{place} refuses the earlier credentials, and there are no newer ones: {why}"
            )),
        }
    }

    /// Returns whether the answer, if any, can't be from a Redis.
    pub(super) fn is_no_answer(&self) -> bool {
        let Self::Redis(problem) = self else { return false };
        matches!(problem.kind(), redis::ErrorKind::Io | redis::ErrorKind::Parse)
    }

    /// Returns whether Redis refused the credentials.
    pub(super) fn is_unauthorized(&self) -> bool {
        matches!(self, Self::Redis(problem) if is_unauthorized(problem))
    }
}

impl From<RedisError> for DialError {
    fn from(problem: RedisError) -> Self {
        Self::Redis(problem)
    }
}

impl From<io::Error> for DialError {
    fn from(problem: io::Error) -> Self {
        Self::Redis(problem.into())
    }
}

fn is_unauthorized(problem: &RedisError) -> bool {
    problem.kind() == redis::ErrorKind::AuthenticationFailed
        || matches!(problem.code(), Some("NOAUTH" | "WRONGPASS"))
}

fn refusal_of(problem: &RedisError, place: &str) -> BrokerError {
    if problem.kind() == redis::ErrorKind::Parse {
        return BrokerError::NotDone(format!(
            "the server at {place} does not answer as a Redis does; check the host and the port"
        ));
    }
    let problem_text = problem.to_string();
    let why = format!("{problem_text} at {place}{}", advice(&problem_text));
    // A busy server reports this text when the database is selected, and the code of the error is
    // lost.
    let passes = ["Redis is busy", "Redis is loading", "max number of clients"];
    let no_database = why.contains("refused to switch database")
        && !passes.iter().any(|passing| why.contains(passing));
    if is_unauthorized(problem) || (no_database && why.contains("Authentication required")) {
        return BrokerError::Unauthorized(why);
    }
    if no_database && why.contains("no permissions") {
        return BrokerError::Misconfigured(format!(
            "the Redis user may not select the database that the URL names ({why}); add +select to \
             its ACL, or leave the database out of the URL"
        ));
    }
    if no_database {
        return BrokerError::Misconfigured(format!(
            "the database that the URL names can't be selected ({why}); name one below `databases` \
             of redis.conf, which is 16 unless set, and 0 on a cluster"
        ));
    }
    BrokerError::NotDone(why)
}

/// Returns the advice for the operator, if trying again does not help.
fn advice(why: &str) -> &'static str {
    if why.contains("Too many open files") {
        "; raise this process' limit of open files (ulimit -n)"
    } else if why.contains("max number of clients") {
        "; raise maxclients of Redis, or connect fewer processes"
    } else if why.contains("roken pipe") || why.contains("onnection reset") {
        // The server may have sent the reason and closed the connection before it was read.
        "; if this continues, check whether Redis has reached its maxclients"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_about_a_limit_names_the_limit_to_raise() {
        let full = "Failed to refresh: ERR max number of clients reached";
        assert!(advice(full).contains("maxclients"));
        assert!(advice("Too many open files (os error 24)").contains("ulimit -n"));
        assert!(advice("Broken pipe (os error 32)").contains("maxclients"));
        assert_eq!(advice("Connection refused (os error 111)"), "");
    }

    #[test]
    fn a_busy_server_is_transient_and_a_missing_database_is_misconfigured() {
        let of = |text: &str| {
            let error = (redis::ServerErrorKind::ResponseError.into(), SWITCH, text.to_owned());
            refusal_of(&error.into(), "redis://here")
        };
        for passing in [
            "Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
            "Redis is loading the dataset in memory",
            "max number of clients reached",
        ] {
            assert!(of(passing).is_transient(), "{passing}");
        }
        assert!(matches!(of("DB index is out of range"), BrokerError::Misconfigured(_)));
    }

    #[test]
    fn a_user_who_may_not_select_a_database_is_told_the_permission() {
        let text = "this user has no permissions to run the 'select' command";
        let error = (redis::ServerErrorKind::ResponseError.into(), SWITCH, text.to_owned());
        let problem = refusal_of(&error.into(), "redis://here");
        assert!(matches!(problem, BrokerError::Misconfigured(why) if why.contains("+select")));
    }

    const SWITCH: &str = "Redis server refused to switch database";
}
