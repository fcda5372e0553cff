//! The only door to Redis: one method for each script, keys and replies inside.
//!
//! For the other Optimus crates; nothing here is public API. No type of the `redis` crate shows.

pub(crate) mod connect;
mod error;
mod keys;
mod lease;
mod link;
mod look;
mod operate;
mod refusal;
mod reply;
mod report;
mod scripts;
mod server;
mod submit;
mod work;

use std::{sync::Arc, time::Duration};

use redis::{Cmd, Pipeline, Value};

pub use self::reply::Reply;
pub use self::{
    connect::Endpoint,
    error::BrokerError,
    lease::{Registered, Renewed},
    look::{Counts, Found, WorkerSeen},
    operate::{Cancelled, Purged},
    refusal::Refusal,
    report::{Completion, Failure, Give, Release, Verdict},
    server::ServerFacts,
    submit::{Batch, Receipt},
    work::{Claimed, Grant, Reaped},
};
use self::{keys::Keys, link::Link, scripts::Script};
use crate::id::QueueName;

/// The most tasks that one script call takes or reports.
pub const BATCH_MAX: usize = 128;

/// How long one exchange may wait for a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Calls scripts over one connection. Clones share it.
#[derive(Clone)]
pub struct Broker {
    link: Link,
    endpoint: Endpoint,
    namespace: Arc<str>,
    now: Arc<str>,
    within: Duration,
}

/// One call of a script, ready to be sent, perhaps with others in one write.
#[derive(Clone)]
pub struct ScriptCall {
    script: &'static Script,
    keys: Vec<String>,
    args: Vec<Vec<u8>>,
}

impl ScriptCall {
    /// A call whose owned keys (those that end in `:`) belong to `owner`.
    fn new(script: &'static Script, keys: &Keys, owner: &str) -> Self {
        let keys = script
            .keys
            .iter()
            .map(|key| if key.ends_with(':') { keys.owned(key, owner) } else { keys.of(key) })
            .collect();
        Self { script, keys, args: Vec::new() }
    }

    #[expect(clippy::needless_pass_by_value, reason = "callers pass numbers and ids as they are")]
    fn arg(mut self, arg: impl ToString) -> Self {
        self.args.push(arg.to_string().into_bytes());
        self
    }

    fn raw(mut self, arg: impl Into<Vec<u8>>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Declares a further key; its index as options and extras write it, from 1.
    fn extra_key(&mut self, key: String) -> usize {
        self.keys.push(key);
        self.keys.len() - self.script.keys.len()
    }

    fn command(&self, verb: &str, script: &str) -> Cmd {
        let mut cmd = redis::cmd(verb);
        cmd.arg(script).arg(self.keys.len());
        for key in &self.keys {
            cmd.arg(key);
        }
        for arg in &self.args {
            cmd.arg(arg);
        }
        cmd
    }
}

impl Broker {
    /// A broker that connects at its first use; `role` names its connection in the log.
    pub fn new(endpoint: Endpoint, namespace: &str, role: &'static str) -> Self {
        let link = Link::new(endpoint.clone(), role, false);
        let within = CONNECT_WITHIN;
        Self { link, endpoint, namespace: namespace.into(), now: "".into(), within }
    }

    /// The same store over a connection of its own.
    pub fn separate(&self, role: &'static str) -> Self {
        Self { link: Link::new(self.endpoint.clone(), role, false), ..self.clone() }
    }

    /// The same store over a connection of its own whose commands may block.
    pub fn blocking(&self, role: &'static str) -> Self {
        Self { link: Link::new(self.endpoint.clone(), role, true), ..self.clone() }
    }

    /// Gives up on a connection after this long instead of 5 s.
    pub fn within(&self, within: Duration) -> Self {
        Self { within, ..self.clone() }
    }

    /// Calls scripts at this instant instead of Redis' own, for tests.
    pub fn at(&self, now_ms: u64) -> Self {
        Self { now: now_ms.to_string().into(), ..self.clone() }
    }

    /// Drops the connection, so that the next call makes a new one.
    pub async fn reconnect(&self) {
        self.link.reset().await;
    }

    /// Where it connects to.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The namespace of its keys.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    fn keys(&self, queue: &QueueName) -> Keys {
        Keys::new(&self.namespace, queue)
    }

    /// Calls a script, with the time as its first argument where its header says so.
    fn call(&self, script: &'static Script, queue: &QueueName, owner: &str) -> ScriptCall {
        ScriptCall::new(script, &self.keys(queue), owner).arg(&self.now)
    }

    /// One call, one answer.
    async fn run(&self, call: ScriptCall) -> Result<Reply, BrokerError> {
        self.run_all(vec![call]).await.pop().expect("an answer for each call")
    }

    /// Several calls in one write, each with its own answer, in order.
    pub async fn run_all(&self, calls: Vec<ScriptCall>) -> Vec<Result<Reply, BrokerError>> {
        let commands = calls.iter().map(|call| call.command("EVALSHA", &call.script.sha)).collect();
        let mut answers = self.send(commands).await;
        for (answer, call) in answers.iter_mut().zip(&calls) {
            let no_script = matches!(answer, Err(BrokerError::Rejected(why))
                if why.starts_with("NOSCRIPT"));
            if no_script {
                // EVAL of the same call loads it as a side effect, on the right node of a cluster.
                let again = self.send(vec![call.command("EVAL", call.script.source)]).await;
                *answer = again.into_iter().next().expect("an answer for each call");
            }
        }
        answers
            .into_iter()
            .zip(&calls)
            .map(|(answer, call)| Reply::new(call.script.name, answer?))
            .collect()
    }

    /// Plain commands in one write.
    async fn send(&self, commands: Vec<Cmd>) -> Vec<Result<Value, BrokerError>> {
        let count = commands.len();
        let mut pipeline = Pipeline::with_capacity(count);
        for command in commands {
            pipeline.add_command(command);
        }
        match self.link.request(&pipeline, count, self.within).await {
            Ok(values) => {
                let answers: Vec<_> = values.into_iter().map(refuse_errors).collect();
                if answers.iter().any(is_demoted) {
                    // A failover left this connection at what is a replica now.
                    self.link.reset().await;
                }
                answers
            }
            Err(problem) => (0..count).map(|_| Err(problem.clone())).collect(),
        }
    }
}

fn is_demoted(answer: &Result<Value, BrokerError>) -> bool {
    matches!(answer, Err(BrokerError::NotDone(why)) if why.starts_with("READONLY"))
}

/// Errors that Redis answers stand among the values.
fn refuse_errors(value: Value) -> Result<Value, BrokerError> {
    match value {
        Value::ServerError(error) => {
            Err(BrokerError::of_server(error.code(), error.details().unwrap_or_default()))
        }
        other => Ok(other),
    }
}
