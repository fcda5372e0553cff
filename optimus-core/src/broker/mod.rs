//! The only code that talks to Redis: one method for each script, with keys and replies inside.
//!
//! This module is for the other Optimus crates and is not public API. It exposes no type of the
//! `redis` crate.

mod annotate;
mod audit;
mod claim;
mod collect;
mod completion_wait;
mod confirm;
mod connection;
mod dial;
mod dial_error;
mod dispenser;
mod dispenser_names;
pub(crate) mod endpoint;
mod error;
mod explain;
mod file_reader;
mod fingerprints;
mod fleet;
mod group;
mod group_page;
mod held_back;
mod history;
mod inspect;
mod key_content;
mod keys;
mod keyspace;
mod lanes;
mod lease;
mod limit;
mod limit_read;
mod list;
mod live_workers;
mod login;
mod member_words;
mod operate;
mod operation;
mod overdue;
mod overview;
mod overview_keys;
mod overview_look;
mod parameters;
mod permissions;
mod permitted;
mod prerequisite_words;
mod prerequisites;
mod pulse;
mod relay;
mod reply;
mod report;
mod roster;
mod run_wait;
mod schedule;
mod schedule_read;
mod script;
mod script_call;
mod script_refusal;
mod script_text;
mod scripts;
mod server_facts;
mod server_url;
mod shard_state;
mod size_limit;
mod source;
mod stats;
mod stored_submit;
mod submit;
#[cfg(feature = "tls")]
mod tls;
mod tls_probe;
mod traces;
mod waiting_since;
mod wakeup_wait;
mod worker_loads;

use std::{sync::Arc, time::Duration};

use redis::{Cmd, Pipeline, Value};
use tokio::time::Instant;

pub use self::reply::Reply;
pub use self::{
    annotate::{ANNOTATED_MAX, SaidLines},
    claim::{Claimed, Grant, Lost, Reaped, StartBy},
    collect::Collected,
    completion_wait::{End, Ends, Returned},
    dispenser::{ByAssignee, DISPENSER_PAGE, DispenserCounts, HoldTimes, RequestName},
    endpoint::Endpoint,
    error::BrokerError,
    explain::{LanePlace, LostTask, ReadyPlace},
    fingerprints::{DeadGroup, DeadGroups},
    fleet::{Attendance, ProcessSeen},
    group::{Enroll, Enrolled, GROUP_PAGE_MAX, PARTS},
    held_back::HeldBack,
    history::{HistoryPart, HistoryStored},
    inspect::{Counts, Found, Totals, WorkerSeen},
    key_content::{KeyContent, KeyKind},
    keyspace::{KeyFacts, ReadKey, ScannedKeys},
    lanes::{LaneDetails, Resized},
    lease::{Registered, Renewed},
    limit::Acquired,
    list::{Listed, Row},
    operate::{Cancelled, Deleted, Keep, Purged},
    operation::{Act, Batch as OperationBatch, Changed, Held, Saved},
    overdue::Overdue,
    overview::QueueSeen,
    overview_keys::KnownKeys,
    prerequisites::PrerequisiteDetails,
    relay::{Applied, Outgoing, Reasked, RelayTurn},
    report::{Completion, Failure, FailureOutcome, Give, Release, Reported, Shutting},
    roster::{Hold, Holding, MemberSeen, RosterSeen},
    run_wait::{NextRun, RunWait},
    schedule::{
        AGENDA_MAX, Agenda, DueSchedule, Look, NewSchedule, Reschedule, Step, StepKind, Taken,
        Ticked,
    },
    schedule_read::StoredSchedule,
    script_call::ScriptCall,
    script_refusal::Refusal,
    server_facts::ServerFacts,
    shard_state::{Holder, Positions},
    size_limit::SizeLimit,
    source::{Ended, SourceSeen, SourceStanding},
    submit::{Batch, LEDGER_SLOTS, Receipt, StoredBy, Submitted},
    wakeup_wait::{Asked, Woken},
    worker_loads::WorkerLoad,
};
use self::{
    connection::{Commands, Connection},
    keys::Keys,
    permitted::Permitted,
    scripts::Script,
};
pub use crate::operation_counted::{Counted as CountedTask, Mark};
pub use crate::submission::Trace;
use crate::{id::QueueName, log::Log, platform};

/// Returns the name, the text and the hash of each script.
#[cfg(feature = "simulation")]
pub fn script_texts() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    scripts::ALL.iter().map(|script| (script.name, script.source(), script.sha.as_str()))
}

/// The maximum number of tasks that one script call claims or reports.
pub const BATCH_MAX: usize = 128;

/// How soon a request fails on a connection that the server has closed, or that has just broken.
const BREAKS_WITHIN: Duration = Duration::from_secs(1);

/// How long one exchange may wait for a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Calls scripts over one connection. Clones share it.
#[derive(Clone)]
pub struct Broker {
    connection: Connection,
    log: Log,
    endpoint: Endpoint,
    namespace: Arc<str>,
    now: Arc<str>,
    here: Option<u64>,
    within: Duration,
    permitted: Permitted,
}

impl Broker {
    /// Makes a broker that connects at its first use; `role` names its connection in the log.
    pub fn new(endpoint: Endpoint, namespace: &str, role: &'static str) -> Self {
        let log = Log::here();
        Self {
            connection: Connection::new(endpoint.clone(), role, Commands::Immediate, log.clone()),
            log,
            endpoint,
            namespace: namespace.into(),
            now: "".into(),
            here: None,
            within: CONNECT_WITHIN,
            permitted: Permitted::default(),
        }
    }

    /// Makes a broker of the same store over a separate connection.
    pub fn separate(&self, role: &'static str) -> Self {
        self.over(role, Commands::Immediate)
    }

    /// Makes a broker of the same store over a separate connection whose commands may block.
    pub fn blocking(&self, role: &'static str) -> Self {
        self.over(role, Commands::Blocking)
    }

    fn over(&self, role: &'static str, commands: Commands) -> Self {
        let connection = Connection::new(self.endpoint.clone(), role, commands, self.log.clone());
        Self { connection, permitted: Permitted::default(), ..self.clone() }
    }

    /// Returns whether both have the same store and namespace, according to their URLs.
    pub fn is_of_store(&self, other: &Self) -> bool {
        self.namespace == other.namespace && self.endpoint.is_same(&other.endpoint)
    }

    /// Returns the log for events of the broker's connections.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Gives up on a connection after this time instead of 5 s.
    pub fn within(&self, within: Duration) -> Self {
        Self { within, ..self.clone() }
    }

    /// Calls scripts with this time instead of Redis' own clock, for tests.
    pub fn at(&self, now_ms: u64) -> Self {
        Self { now: now_ms.to_string().into(), here: Some(now_ms), ..self.clone() }
    }

    /// Uses this time as the clock of the machine, for tests of wrong clocks.
    pub fn here(&self, here_ms: u64) -> Self {
        Self { here: Some(here_ms), ..self.clone() }
    }

    /// Drops the connection, so that the next call makes a new one.
    pub fn reconnect(&self) {
        self.connection.reset();
    }

    /// Returns how many connections of the broker were dropped so far. The next connection may
    /// reach another server, which lacks recent writes.
    pub fn breaks(&self) -> u64 {
        self.connection.breaks()
    }

    /// Returns whether the connection was lost and no other one is there yet.
    pub fn is_down(&self) -> bool {
        self.connection.is_down()
    }

    /// Returns how many connections the broker has made so far.
    pub fn connects(&self) -> u64 {
        self.connection.connects()
    }

    /// Returns the store that the broker connects to.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns the namespace of the broker's keys.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the clock of this machine, or the time that a test has set.
    fn here_ms(&self) -> u64 {
        self.here.unwrap_or_else(platform::now_ms)
    }

    fn keys(&self, queue: &QueueName) -> Keys {
        Keys::new(&self.namespace, queue)
    }

    /// Makes the call of a script, with the time as its first argument if the script's header
    /// requires it.
    fn call(&self, script: &'static Script, queue: &QueueName, owner: &str) -> ScriptCall {
        ScriptCall::new(script, &self.keys(queue), owner).text(&self.now)
    }

    /// Runs one call.
    async fn run(&self, call: ScriptCall) -> Result<Reply, BrokerError> {
        self.run_all(vec![call]).await.pop().expect("an answer for each call")
    }

    /// Runs one call that is safe to repeat, and repeats it once if its answer is lost.
    async fn run_surely(&self, call: ScriptCall) -> Result<Reply, BrokerError> {
        match self.run(call.clone()).await {
            Err(BrokerError::Unknown(why)) => match self.run(call).await {
                // The first call may have been done nevertheless.
                Err(BrokerError::NotDone(_)) => Err(BrokerError::Unknown(why)),
                answer => answer,
            },
            answer => answer,
        }
    }

    /// Runs one call that changes nothing; see [`read`](Self::read).
    async fn run_read(&self, call: ScriptCall) -> Result<Reply, BrokerError> {
        let sent = Instant::now();
        match self.run(call.clone()).await {
            Err(BrokerError::Unknown(_)) if sent.elapsed() < BREAKS_WITHIN => self.run(call).await,
            answer => answer,
        }
    }

    /// Sends commands that change nothing, in one write. If the connection breaks at once, sends
    /// them again over a new one: the server may have closed the connection while it was idle.
    async fn read(&self, commands: Vec<Cmd>) -> Vec<Result<Value, BrokerError>> {
        let sent = Instant::now();
        let answers = self.send(commands.clone()).await;
        let is_lost = |answer| matches!(answer, &Err(BrokerError::Unknown(_)));
        if answers.iter().any(is_lost) && sent.elapsed() < BREAKS_WITHIN {
            return self.send(commands).await;
        }
        answers
    }

    /// Sends several calls in one write; each has its own answer, in order.
    pub async fn run_all(&self, calls: Vec<ScriptCall>) -> Vec<Result<Reply, BrokerError>> {
        let commands = || calls.iter().map(ScriptCall::by_hash).collect();
        let mut answers = self.send_permitted(&calls, commands).await;
        for (answer, call) in answers.iter_mut().zip(&calls) {
            if is_unknown_script(answer) {
                let again = std::slice::from_ref(call);
                let mut answers = self.send_permitted(again, || vec![call.by_text()]).await;
                *answer = answers.pop().expect("an answer for each call");
            }
        }
        self.name_each_denied(&mut answers, &calls).await;
        answers
            .into_iter()
            .zip(&calls)
            .map(|(answer, call)| Reply::new(call.script.name, answer?))
            .collect()
    }

    /// Sends plain commands in one write. Without a command there is no exchange.
    async fn send(&self, commands: Vec<Cmd>) -> Vec<Result<Value, BrokerError>> {
        self.send_over(None, commands).await.1
    }

    /// Sends plain commands in one write, over the connection of this number if one is given.
    /// Returns its number, and no answer if there is another connection now.
    async fn send_over(
        &self,
        only: Option<u64>,
        commands: Vec<Cmd>,
    ) -> (u64, Vec<Result<Value, BrokerError>>) {
        if commands.is_empty() {
            // The client library refuses an empty pipeline, and this error would drop the
            // connection.
            return (0, Vec::new());
        }
        let count = commands.len();
        let mut pipeline = Pipeline::with_capacity(count);
        for command in commands {
            pipeline.add_command(command);
        }
        match self.connection.request((&pipeline, count), self.within, only).await {
            Ok((number, values)) => {
                let mut answers: Vec<_> = values.into_iter().map(refuse_errors).collect();
                // After a failover, this connection may lead to a replica, or may not be logged in.
                if answers.iter().any(|answer| is_demoted(answer) || is_locked_out(answer)) {
                    self.connection.reset();
                }
                if answers.iter().any(is_locked_out) {
                    answers = answers
                        .into_iter()
                        .map(|a| a.map_err(|p| self.connection.objection(p)))
                        .collect();
                } else if answers.iter().any(Result::is_ok) {
                    self.connection.was_right();
                }
                (number, answers)
            }
            Err(problem) => (0, (0..count).map(|_| Err(problem.clone())).collect()),
        }
    }
}

fn is_locked_out(answer: &Result<Value, BrokerError>) -> bool {
    matches!(answer, Err(BrokerError::Unauthorized(_)))
}

fn is_unknown_script(answer: &Result<Value, BrokerError>) -> bool {
    matches!(answer, Err(BrokerError::Rejected(why)) if why.starts_with("NOSCRIPT"))
}

fn is_demoted(answer: &Result<Value, BrokerError>) -> bool {
    matches!(answer, Err(BrokerError::NotDone(why)) if why.starts_with("READONLY"))
}

/// Converts errors of Redis, which are among the values.
fn refuse_errors(value: Value) -> Result<Value, BrokerError> {
    match value {
        Value::ServerError(error) => {
            Err(BrokerError::of_server(error.code(), error.details().unwrap_or_default()))
        }
        other => Ok(other),
    }
}
