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

impl Broker {
    /// Sends the commands of these calls, unless the user lacks a permission for one of them.
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
            let only = match self.permitted(calls).await {
                Ok(only) => only,
                Err(problem) => return refused(problem),
            };
            let (_, answers) = self.send_over(only, commands()).await;
            if !answers.is_empty() || only.is_none() {
                return answers;
            }
        }
        refused(BrokerError::NotDone("the connection to Redis breaks again and again".into()))
    }

    /// Returns the number of the connection over which the user may make these calls; none if they
    /// only read, so that any will do.
    async fn permitted(&self, calls: &[ScriptCall]) -> Result<Option<u64>, BrokerError> {
        let present = self.connection.connects();
        let is_stopped = |missing: &Missing| calls.iter().any(|call| missing.stops(call));
        if self.permitted.of(present).is_some_and(|known| !is_stopped(&known)) {
            return Ok(Some(present));
        }
        let Some(writer) = calls.iter().find(|call| call.script.writes()) else { return Ok(None) };
        // What was missing may have been added.
        let (connection, missing) = self.missing(&writer.probe_key()).await?;
        let missing = Arc::new(missing);
        self.permitted.note(connection, &missing);
        if is_stopped(&missing) {
            return Err(missing.error("nothing was changed"));
        }
        Ok(Some(connection))
    }
}
