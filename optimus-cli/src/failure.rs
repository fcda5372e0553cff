//! Why a command has not done what it was asked for, and its exit code: [`Failure`], [`Exit`].

use std::{fmt, io, process::ExitCode};

use optimus_core::{DispenserError, Error, InvalidName};

/// The exit codes, which scripts rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All was done.
    Done = 0,
    /// It failed for another reason than those below.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// What it names does not exist.
    NotFound = 3,
    /// The state of what it names does not allow it.
    Refused = 4,
    /// A part of it was done.
    Partly = 5,
    /// Redis can't be reached.
    Unreachable = 6,
    /// Redis refuses the user, the password, or a permission.
    Unauthorized = 7,
    /// `doctor` has found something.
    Warned = 8,
    /// It was not confirmed, so nothing was done.
    Aborted = 9,
}

/// The text of the exit codes, for the help and the man page.
pub(crate) const EXITS: &str = "Exit codes:\n  0  done\n  1  failed\n  2  the command line is \
    wrong\n  3  not found\n  4  refused: the state does not allow it, or --expect differs\n  5  \
    partly done\n  6  Redis can't be reached\n  7  Redis refuses the user or the password\n  8  \
    doctor has found something\n  9  not confirmed, so nothing was done";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command has failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// What happened and what to do; `None` if the reader of the output has gone.
    pub(crate) message: Option<String>,
}

impl Failure {
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self::of(Exit::Failed, message)
    }

    pub(crate) fn of(exit: Exit, message: impl fmt::Display) -> Self {
        Self { exit, message: Some(message.to_string()) }
    }

    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::of(Exit::Usage, message)
    }

    pub(crate) fn not_found(message: impl fmt::Display) -> Self {
        Self::of(Exit::NotFound, message)
    }
}

/// Returns the exit code of a library's error.
pub(crate) fn exit_of(problem: &Error) -> Exit {
    let is_refused = problem.is_wrong_state()
        || problem.is_duplicate()
        || problem.is_cycle()
        || problem.is_full();
    match problem {
        _ if problem.is_invalid() || problem.is_unsupported() => Exit::Usage,
        _ if problem.is_forgotten() => Exit::NotFound,
        _ if is_refused => Exit::Refused,
        _ if problem.is_unavailable() || problem.is_tls() => Exit::Unreachable,
        _ if problem.is_unauthorized() => Exit::Unauthorized,
        _ => Exit::Failed,
    }
}

impl From<Error> for Failure {
    fn from(problem: Error) -> Self {
        let text = problem.to_string();
        if is_foreign(&text) {
            return Self::of(Exit::Unauthorized, format!("{text}: {FOREIGN}"));
        }
        Self::of(exit_of(&problem), text)
    }
}

/// What to do if the user of Redis may not use the keys of the namespace.
const FOREIGN: &str = "the Redis user may not use the keys of this namespace. Add their patterns \
    to its ACL (of the namespace optimus: ~{optimus:*}:* ~optimus:queues), or set \
    OPTIMUS_NAMESPACE / --namespace to the namespace of this user";

/// Returns whether Redis says that the user may not use the keys. Its words differ by its version,
/// and in a script.
fn is_foreign(text: &str) -> bool {
    ["permissions to access", "can't access at least one of the keys"]
        .iter()
        .any(|words| text.contains(words))
}

impl From<DispenserError> for Failure {
    fn from(problem: DispenserError) -> Self {
        match problem {
            DispenserError::Store(problem) => problem.into(),
            problem => Self::usage(problem),
        }
    }
}

impl From<InvalidName> for Failure {
    fn from(problem: InvalidName) -> Self {
        Self::usage(problem)
    }
}

/// A reader that has gone, as in `optimus task list mail | head`, is no failure.
impl From<io::Error> for Failure {
    fn from(problem: io::Error) -> Self {
        if problem.kind() == io::ErrorKind::BrokenPipe {
            return Self { exit: Exit::Done, message: None };
        }
        Self::new(format!("the output can't be written: {problem}"))
    }
}
