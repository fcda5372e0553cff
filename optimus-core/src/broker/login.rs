//! The credentials of connections, and their sources: [`Login`].

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use redis::{RedisError, aio::MultiplexedConnection};
use tokio::{
    runtime::Handle,
    time::{Instant, sleep, timeout},
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    dial_error::DialError,
    file_reader::{Answer, Reader},
    server_url::{LoginFiles, Place},
};
use crate::{
    credentials::{AskCredentials, Credentials},
    guarded_drop::discard,
    log::Log,
};

/// How long a connection waits for an answer before it tries the last valid credentials.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// How long a connection waits if there is an earlier answer. With a short lease, a worker must not
/// wait longer.
const WITH_LAST_WITHIN: Duration = Duration::from_secs(1);
/// How long an answer may take before the program's function is called again.
const ABANDONED_AFTER: Duration = Duration::from_secs(30);
/// When a connection renews its login, if the credentials have no lifetime. We know of no provider
/// with a shorter limit for a connection; most allow twelve hours.
const RENEWED_AFTER: Duration = Duration::from_secs(60 * 60);
/// When a connection renews its login after a failure.
const RENEWED_AGAIN: Duration = Duration::from_secs(30);
/// The shortest interval, to avoid a busy loop.
const RENEWED_MIN: Duration = Duration::from_millis(100);
/// The user of Redis if only a password is given.
const USER_DEFAULT: &str = "default";

/// How the connections to a server get their credentials.
pub(super) struct Login {
    source: Source,
    state: Mutex<State>,
}

enum Source {
    /// The URL has all credentials.
    Url,
    Files(Arc<Files>, Reader<Credentials>),
    Program(Program),
}

struct Files {
    paths: LoginFiles,
    user: String,
    password: String,
}

/// The program's function. It runs on the runtime on which the client or worker was built, and
/// stops with that runtime.
struct Program {
    ask: Option<AskCredentials>,
    home: Option<Handle>,
}

#[derive(Default)]
struct State {
    /// The last answer.
    last: Option<Credentials>,
    /// The call of the function that is under way. Connections that are made at the same time share
    /// it. If one of them is given up, the next waits for the same answer.
    asked: Option<(Instant, Answer<Credentials>)>,
}

/// Credentials for a connection, and why they may be old.
pub(super) struct Known {
    /// The credentials; with `None` those of the URL are used.
    pub(super) credentials: Option<Credentials>,
    /// Why no newer credentials are available, if these are old.
    pub(super) old: Option<String>,
}

impl Login {
    pub(super) fn new(place: &Place, ask: Option<AskCredentials>) -> Self {
        let LoginFiles { user, password } = &place.files;
        let source = if ask.is_some() {
            Source::Program(Program { ask, home: Handle::try_current().ok() })
        } else if user.is_some() || password.is_some() {
            let files = Files {
                paths: place.files.clone(),
                user: place.settings.username().unwrap_or(USER_DEFAULT).to_owned(),
                password: place.settings.password().unwrap_or_default().to_owned(),
            };
            Source::Files(Arc::new(files), Reader::default())
        } else {
            Source::Url
        };
        Self { source, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for the credentials. Falls back to the last ones, which may still be valid.
    pub(super) async fn ask(&self) -> Result<Known, DialError> {
        let Some((since, answer)) = self.asked() else {
            return Ok(Known { credentials: None, old: None });
        };
        // The time counts from the start of the call, so that several connections together do not
        // wait longer.
        let within = if self.state().last.is_some() { WITH_LAST_WITHIN } else { ANSWER_WITHIN };
        let left = within.saturating_sub(since.elapsed());
        let answered = timeout(left, answer.clone()).await;
        let mut state = self.state();
        if answered.is_ok() && state.asked.as_ref().is_some_and(|(_, asked)| asked.ptr_eq(&answer))
        {
            state.asked = None;
        }
        let late = |_| Err(format!("{} within {} s", self.source.no_answer(), within.as_secs()));
        match answered.unwrap_or_else(late) {
            Ok(credentials) => {
                state.last = Some(credentials.clone());
                Ok(Known { credentials: Some(credentials), old: None })
            }
            Err(why) if state.last.is_some() => {
                Ok(Known { credentials: state.last.clone(), old: Some(why) })
            }
            Err(why) => Err(match self.source {
                Source::Files(..) => DialError::Misconfigured(why),
                _ => DialError::NoCredentials(why),
            }),
        }
    }

    fn asked(&self) -> Option<(Instant, Answer<Credentials>)> {
        let mut state = self.state();
        if let Some((since, answer)) = &state.asked
            && since.elapsed() < ABANDONED_AFTER
            && self.source.may_answer_late()
        {
            return Some((*since, answer.clone()));
        }
        let answer = self.source.ask()?;
        let since = Instant::now();
        state.asked = Some((since, answer.clone()));
        Some((since, answer))
    }

    /// Renews the login of this connection before its credentials expire, as long as it lives, and
    /// sets `retired` if they are those of another user from then on: that one may lack permissions
    /// that the calls of this connection need. Credentials of files and URLs do not expire.
    pub(super) fn renewing(
        self: &Arc<Self>,
        connection: MultiplexedConnection,
        credentials: Credentials,
        retired: &Arc<AtomicBool>,
        log: &Log,
    ) -> Option<AbortOnDropHandle<()>> {
        if !matches!(self.source, Source::Program(_)) {
            return None;
        }
        let (login, retired, log) = (self.clone(), retired.clone(), log.clone());
        Some(AbortOnDropHandle::new(tokio::spawn(async move {
            let Refused::OtherUser = renew(login, connection, credentials, log).await else {
                return;
            };
            retired.store(true, Ordering::Release);
        })))
    }
}

impl Source {
    /// Requests credentials on a separate task or thread. `None` if the URL has them.
    fn ask(&self) -> Option<Answer<Credentials>> {
        match self {
            Self::Url => None,
            Self::Files(files, reader) => {
                let files = files.clone();
                Some(reader.read(move || files.read()))
            }
            Self::Program(program) => Some(program.ask().shared()),
        }
    }

    /// Returns whether the next connection may use the answer to an earlier request. The content of
    /// files may have changed since an earlier read.
    fn may_answer_late(&self) -> bool {
        match self {
            Self::Files(_, reader) => reader.is_reading(),
            Self::Url | Self::Program(_) => true,
        }
    }

    /// Returns the error text for an answer that does not come in time.
    fn no_answer(&self) -> &'static str {
        match self {
            Self::Files(..) => {
                "the files that user_file and password_file of the URL name could not be read"
            }
            Self::Url | Self::Program(_) => "no answer",
        }
    }
}

impl Files {
    fn read(&self) -> Result<Credentials, String> {
        let read = |path: &Option<PathBuf>, name, other: &str| match path {
            Some(path) => read_line(path, name),
            None => Ok(other.to_owned()),
        };
        let user = read(&self.paths.user, "user_file", &self.user)?;
        Ok(Credentials::new(user, read(&self.paths.password, "password_file", &self.password)?))
    }
}

/// Returns the content of a file, without its line end.
fn read_line(path: &Path, name: &str) -> Result<String, String> {
    let named = || format!("{}, which {name} of the URL names", path.display());
    let text = fs::read_to_string(path).map_err(|p| format!("{} can't be read: {p}", named()))?;
    match text.trim_end_matches(['\r', '\n']) {
        "" => Err(format!("{} is empty", named())),
        line => Ok(line.to_owned()),
    }
}

impl Program {
    fn ask(&self) -> BoxFuture<'static, Result<Credentials, String>> {
        let (Some(ask), Some(home)) = (&self.ask, &self.home) else {
            let why = "no runtime to ask for them; build and run it within one";
            return async { Err(why.to_owned()) }.boxed();
        };
        let asking = AbortOnDropHandle::new(home.spawn(ask.clone().ask()));
        let ended = |_| Err("the runtime of the program ends".to_owned());
        async move { asking.await.unwrap_or_else(ended) }.boxed()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The values that the function has captured are user code, too.
        let ask = self.ask.take();
        match &self.home {
            Some(home) => drop(home.spawn(async move { discard(ask) })),
            None => discard(ask),
        }
    }
}

async fn renew(
    login: Arc<Login>,
    mut connection: MultiplexedConnection,
    credentials: Credentials,
    log: Log,
) -> Refused {
    let mut wait = lasts(&credentials);
    loop {
        sleep(wait).await;
        wait = match log_in_again(&login, &mut connection, &credentials.user).await {
            Ok(credentials) => lasts(&credentials),
            // The next connection logs in when it is made.
            Err(over @ (Refused::Gone | Refused::OtherUser)) => return over,
            Err(Refused::Still(why)) => {
                let wait = wait.min(RENEWED_AGAIN);
                crate::log_event!(log, WARN, why, "a connection could not renew its login");
                wait
            }
        };
    }
}

enum Refused {
    Gone,
    /// The credentials are those of another user.
    OtherUser,
    Still(String),
}

async fn log_in_again(
    login: &Login,
    connection: &mut MultiplexedConnection,
    user: &str,
) -> Result<Credentials, Refused> {
    let known = login.ask().await;
    let known =
        known.map_err(|problem| Refused::Still(problem.into_broker_error("Redis").to_string()))?;
    if let Some(why) = known.old {
        return Err(Refused::Still(why));
    }
    let Some(credentials) = known.credentials else { return Err(Refused::Gone) };
    if credentials.user != user {
        return Err(Refused::OtherUser);
    }
    let mut auth = redis::cmd("AUTH");
    auth.arg(&credentials.user).arg(&credentials.password);
    let answer: Result<(), RedisError> = auth.query_async(connection).await;
    match answer {
        Ok(()) => Ok(credentials),
        Err(problem) if problem.is_connection_dropped() || problem.is_io_error() => {
            Err(Refused::Gone)
        }
        Err(problem) => Err(Refused::Still(problem.to_string())),
    }
}

/// Returns when to log in again.
fn lasts(credentials: &Credentials) -> Duration {
    let all = credentials.valid_for.map_or(RENEWED_AFTER, |valid| valid.mul_f64(0.75));
    // The jitter prevents connections that were made together from asking together.
    all.mul_f64(0.9 + fastrand::f64() / 10.0).max(RENEWED_MIN)
}

#[cfg(test)]
#[path = "login_tests.rs"]
mod tests;
