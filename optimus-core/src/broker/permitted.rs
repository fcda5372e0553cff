//! Refuses calls whose scripts the server would stop half-way: [`Permitted`].
//!
//! Redis checks the permissions of a user at each command of a script. A user that lacks one makes
//! a script end between two writes, and a task may then be in no list. So the permissions are asked
//! for before the first call over each connection: another connection may lead to another server,
//! and servers do not replicate their users.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redis::{Cmd, Value};

use super::{Broker, BrokerError, ScriptCall};

/// How many new connections one exchange may find.
const CONNECTIONS_MAX: usize = 4;

/// What the user of a connection lacks: the commands, and how an ACL writes them.
#[derive(Debug, Default)]
pub(super) struct Missing {
    pub(super) commands: Vec<&'static str>,
    pub(super) permissions: Vec<String>,
}

impl Missing {
    /// Returns whether this call writes, and the user may not run all that it may run.
    fn stops(&self, call: &ScriptCall) -> bool {
        !self.commands.is_empty()
            && call.script.writes()
            && call.script.commands().any(|command| self.commands.contains(&command))
    }

    pub(super) fn error(&self, why: &str) -> BrokerError {
        BrokerError::Denied(format!(
            "the Redis user lacks permissions; add to its ACL: {} (SECURITY.md has the whole line; \
             {why})",
            self.permissions.join(" ")
        ))
    }
}

/// What the user of the last connection lacks, with the number of the connection. Brokers of one
/// connection share it.
#[derive(Clone, Default)]
pub(super) struct Permitted(Arc<Mutex<Known>>);

type Known = Option<(u64, Arc<Missing>)>;

impl Permitted {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, connection: u64) -> Option<Arc<Missing>> {
        let known = self.known();
        known.as_ref().filter(|(known, _)| *known == connection).map(|(_, missing)| missing.clone())
    }

    fn note(&self, connection: u64, missing: &Arc<Missing>) {
        *self.known() = Some((connection, missing.clone()));
    }

    /// Forgets what is known: somebody has changed the user.
    pub(super) fn forget(&self) {
        *self.known() = None;
    }
}

/// What the connections of a broker let it send.
struct Permit {
    /// The connection over which these calls may be sent; none if they only read, so that any will
    /// do.
    only: Option<u64>,
    /// What the user lacks for some of the calls.
    missing: Option<Arc<Missing>>,
}

impl Permit {
    /// Returns for each call why it is not sent, if the user lacks a permission for it. Empty if
    /// all are sent.
    fn refusals(&self, calls: &[ScriptCall]) -> Vec<Option<BrokerError>> {
        let Some(missing) = &self.missing else { return Vec::new() };
        let refused = |call| missing.stops(call).then(|| missing.error("nothing was changed"));
        calls.iter().map(refused).collect()
    }
}

impl Broker {
    /// Sends the commands of these calls, but not those of calls for which the user lacks a
    /// permission: a worker that may not claim still reports what has ended. The last commands may
    /// be about all calls. Then either all commands are sent or none.
    pub(super) async fn send_permitted(
        &self,
        calls: &[ScriptCall],
        commands: impl Fn() -> Vec<Cmd>,
    ) -> Vec<Result<Value, BrokerError>> {
        if !self.endpoint.has_user() {
            return self.send(commands()).await;
        }
        let refused = |problem: BrokerError| {
            commands().iter().map(|_| Err(problem.clone())).collect::<Vec<_>>()
        };
        for _ in 0..CONNECTIONS_MAX {
            let permit = match self.permitted(calls).await {
                Ok(permit) => permit,
                Err(problem) => return refused(problem),
            };
            let mut commands = commands();
            let refusals = permit.refusals(calls);
            if let Some(problem) = refusals.iter().flatten().next() {
                if commands.len() > calls.len() {
                    return refused(problem.clone());
                }
                let mut allowed = refusals.iter().map(Option::is_none);
                commands.retain(|_| allowed.next().unwrap_or(true));
            }
            let is_empty = commands.is_empty();
            let (_, answers) = self.send_over(permit.only, commands).await;
            if is_empty || !answers.is_empty() || permit.only.is_none() {
                return if refusals.is_empty() { answers } else { each_answer(refusals, answers) };
            }
        }
        refused(BrokerError::NotDone("the connection to Redis breaks again and again".into()))
    }

    /// Returns what may be sent of these calls.
    async fn permitted(&self, calls: &[ScriptCall]) -> Result<Permit, BrokerError> {
        let present = self.connection.connects();
        let is_stopped = |missing: &Missing| calls.iter().any(|call| missing.stops(call));
        if self.permitted.of(present).is_some_and(|known| !is_stopped(&known)) {
            return Ok(Permit { only: Some(present), missing: None });
        }
        let Some(writer) = calls.iter().find(|call| call.script.writes()) else {
            return Ok(Permit { only: None, missing: None });
        };
        // What was missing may have been added.
        let (connection, missing) = self.missing(&writer.probe_key()).await?;
        let missing = Arc::new(missing);
        self.permitted.note(connection, &missing);
        Ok(Permit { only: Some(connection), missing: Some(missing) })
    }
}

/// Puts the answers to the calls that were sent between the refusals of the others.
fn each_answer(
    refusals: Vec<Option<BrokerError>>,
    answers: Vec<Result<Value, BrokerError>>,
) -> Vec<Result<Value, BrokerError>> {
    let mut answers = answers.into_iter();
    let unsent = || Err(BrokerError::NotDone("the call was not sent".into()));
    let of_calls: Vec<_> = refusals
        .into_iter()
        .map(|refusal| refusal.map_or_else(|| answers.next().unwrap_or_else(unsent), Err))
        .collect();
    of_calls.into_iter().chain(answers).collect()
}
