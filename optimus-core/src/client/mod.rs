//! Submits tasks and controls them: [`Client`].

mod batch_digest;
mod builder;
mod cancel_call;
mod cancel_lane;
mod cancel_members;
mod cancelling_member;
mod completion_listener;
mod confirmer;
mod deferral;
mod delivery;
mod dispenser;
mod dispenser_names;
mod flow_call;
mod flow_handle;
mod forget_queue;
mod gate_handle;
mod group_handle;
mod handler_client;
mod history;
mod lane_handle;
mod later_steps;
mod ledger;
mod many_results;
mod operate;
mod operation_carrier;
mod operation_changes;
mod operation_requeue;
mod operations;
mod other_kind;
mod part_ids;
mod permit;
mod prerequisite_asks;
mod process_handle;
mod promise;
mod readahead;
mod rebuild;
mod remove_group;
mod run_now;
mod schedules;
mod shards_handle;
mod siblings;
mod source_handle;
mod store_tasks;
mod stored_flow;
mod stuck_member;
mod submit_all;
mod submit_batches;
mod submit_flow;
mod submit_found;
mod submit_layers;
mod submit_log;
mod submit_members;
mod submitter;
mod task_handle;
mod unfinished_flow;

use std::{
    fmt,
    sync::{Arc, RwLock},
};

pub use self::process_handle::{ProcessAnswer, ProcessHandle, Wish};
pub use self::{
    builder::{ClientBuilder, NAMESPACE_DEFAULT},
    cancel_call::CancelCall,
    deferral::Deferral,
    dispenser::Dispenser,
    flow_handle::{FlowHandle, StepHandle},
    gate_handle::GateHandle,
    group_handle::GroupHandle,
    handler_client::OwnClient,
    lane_handle::LaneHandle,
    many_results::Results,
    operation_carrier::Carrier,
    operations::Operations,
    permit::Permit,
    rebuild::Rebuild,
    schedules::Schedules,
    shards_handle::ShardsHandle,
    source_handle::SourceHandle,
    stored_flow::StoredFlow,
    submit_found::FoundEnd,
    task_handle::TaskHandle,
};
use self::{
    completion_listener::CompletionListeners, confirmer::Confirmer,
    dispenser_names::ToldDispensers, readahead::Readahead, siblings::Grouping, submit_all::Bulk,
    submit_batches::Answer, submit_layers::Passage, submitter::Submitter, task_handle::Origin,
};
use crate::{
    Error,
    broker::{Broker, Receipt, SizeLimit},
    call_submit::Submit,
    environment,
    id::TaskId,
    inspect::Inspector,
    layers::Layers,
    platform,
    submission::Submission,
};

/// Submits tasks and controls them. Clones share one connection, and concurrent submits share
/// calls.
///
/// A client works on the Tokio runtime on which it was connected.
#[derive(Clone)]
pub struct Client(Arc<Inner>, Layers);

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let store = self.0.broker.endpoint().describe();
        f.debug_struct("Client").field("store", &store).finish_non_exhaustive()
    }
}

struct Inner {
    broker: Broker,
    submitter: Submitter,
    completion_listeners: CompletionListeners,
    readahead: Readahead,
    payload_limit: SizeLimit,
    told_dispensers: ToldDispensers,
}

static INSTALLED: RwLock<Option<Client>> = RwLock::new(None);

/// The error of a [`Client::submit_all`] that did not submit all tasks.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} of {} tasks {}: {first}",
    failed(answers),
    answers.len(),
    failed_how(answers)
)]
pub struct SubmitAllError<T> {
    /// The answer of each task, in the order of the calls.
    pub answers: Vec<Result<TaskHandle<T>, Error>>,
    /// The error of the first task that was not accepted, or has no confirmed answer
    /// ([`Error::is_unknown_outcome`]).
    pub first: Error,
}

fn failed<T>(answers: &[Result<T, Error>]) -> usize {
    answers.iter().filter(|answer| answer.is_err()).count()
}

/// Says what became of the tasks that failed. A task whose outcome is unknown may be accepted.
fn failed_how<T>(answers: &[Result<T, Error>]) -> &'static str {
    let failed = answers.iter().filter_map(|answer| answer.as_ref().err());
    let (unknown, refused): (Vec<_>, Vec<_>) = failed.partition(|e| e.is_unknown_outcome());
    match (unknown.len(), refused.len()) {
        (0, 1) => "was not accepted",
        (0, _) => "were not accepted, the first because",
        (1, 0) => "has no confirmed answer",
        (_, 0) => "have no confirmed answer, the first because",
        _ => "were not accepted or have no confirmed answer, the first because",
    }
}

impl<T> From<SubmitAllError<T>> for Error {
    fn from(problem: SubmitAllError<T>) -> Self {
        problem.first
    }
}

impl Client {
    /// Connects to `redis://…`, `unix://…` or the in-process `memory://name`.
    ///
    /// # Errors
    /// [`Error::is_invalid`] for a URL that can't be read, [`Error::is_unauthorized`] for wrong
    /// credentials, [`Error::is_unavailable`] if no server answers there.
    pub async fn connect(url: &str) -> Result<Self, Error> {
        Self::builder(url).connect().await
    }

    /// Returns a builder for settings other than the defaults.
    pub fn builder(url: &str) -> ClientBuilder {
        ClientBuilder::new(url)
    }

    /// Returns a builder with the settings of the environment, as workers use them: `OPTIMUS_URL`
    /// (else `REDIS_URL`) and `OPTIMUS_NAMESPACE`. For each other variable whose name begins with
    /// `OPTIMUS_` and which workers do not read either, `connect` logs a warning.
    ///
    /// ```no_run
    /// # use optimus_core::{Client, Error};
    /// # async fn install() -> Result<(), Error> {
    /// Client::from_env()?.connect().await?.install();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::is_invalid`] if no URL is set.
    pub fn from_env() -> Result<ClientBuilder, Error> {
        environment::check_text(|name| std::env::var_os(name))?;
        ClientBuilder::from_env(|name| std::env::var(name).ok(), environment::names())
    }

    /// Makes `.perform_async()` use this client, and replaces an earlier installed client.
    ///
    /// A process has one installed client. In tests with several stores or runtimes use
    /// [`client.submit(call)`](Self::submit) or [`scope`](Self::scope) instead. In a handler,
    /// `.perform_async()` submits to the store of its worker: through this client if it is
    /// connected to the same URL and namespace, else through a client of the worker with the
    /// default settings.
    pub fn install(self) -> Self {
        *INSTALLED.write().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(self.clone());
        self
    }

    /// Returns the installed client, which `.perform_async()` uses.
    ///
    /// # Errors
    /// [`Error::is_invalid`] if none was installed.
    pub fn installed() -> Result<Self, Error> {
        let installed = INSTALLED.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        installed.clone().ok_or_else(|| {
            Error::invalid(
                "no client is installed; call Client::connect(url).await?.install() at the start \
                 of the program, or submit through client.submit(call); in a future that a \
                 handler has spawned, through Context::client",
            )
        })
    }

    /// Returns the client that `.perform_async()` uses: in a scope the client of the scope, in a
    /// handler a client of the worker's store, otherwise the installed client.
    pub(crate) fn current() -> Result<Self, Error> {
        if let Some(own) = OwnClient::current() {
            return Ok(own.client());
        }
        let installed = Self::installed()?;
        if installed.is_open() { Ok(installed) } else { Err(Error::installed_closed()) }
    }

    /// Returns this client with these layers instead of its own.
    fn with_layers(self, layers: &Layers) -> Self {
        Self(self.0, layers.clone())
    }

    /// Returns whether the client's runtime is still running.
    fn is_open(&self) -> bool {
        self.0.submitter.is_open()
    }

    /// Submits one call. An acknowledged task is stored, and will reach a terminal state.
    ///
    /// If Redis can't be reached, the submit is retried until the submit timeout. A retry never
    /// adds a second task, since every call is numbered in a ledger.
    ///
    /// # Errors
    /// [`Error::is_invalid`], [`Error::is_too_large`]; [`Error::is_refused`] if a layer
    /// refused the call; [`Error::is_full`] if Redis is at maxmemory; [`Error::is_unavailable`] if
    /// nothing was done; [`Error::is_unknown_outcome`] if the call was sent, but Redis did not
    /// answer, or did not confirm it as [`ClientBuilder::durability`] requires.
    pub async fn submit<C: Submit>(&self, call: C) -> Result<TaskHandle<C::Output>, Error> {
        let mut submission = call.into_submission()?;
        self.passage().pass(&mut submission).await?;
        let submission = self.check(submission)?;
        let id = submission.id.clone();
        let mut answers = self.0.submitter.send(vec![submission]).await.answers().await;
        let answer = answers.pop().expect("an answer for each task")?;
        Ok(self.receive(id, answer))
    }

    /// Submits any number of calls, a thousand per round trip.
    ///
    /// # Errors
    /// [`SubmitAllError`] has the answer of each task, if not all were accepted.
    pub async fn submit_all<C: Submit>(
        &self,
        calls: impl IntoIterator<Item = C>,
    ) -> Result<Vec<TaskHandle<C::Output>>, SubmitAllError<C::Output>> {
        let (mut bulk, mut passage) = (Bulk::new(&self.0.submitter), self.passage());
        let salt = platform::salt();
        for call in calls {
            let mut made = platform::with_salt(salt, || call.into_submission());
            if let Ok(submission) = &mut made
                && let Err(problem) = passage.pass(submission).await
            {
                made = Err(problem);
            }
            match made.and_then(|submission| self.check(submission)) {
                Ok(submission) => bulk.add(submission).await,
                Err(problem) => bulk.refuse(problem),
            }
        }
        let mut grouping = Grouping::default();
        let mut receive = |(id, answer): (TaskId, Answer)| {
            let (call, has_given_id) = (answer.call, answer.has_given_id);
            let handle = self.receive(id, answer);
            if handle.is_duplicate() || has_given_id {
                return handle;
            }
            let place = grouping.add(handle.id(), call);
            handle.among(place)
        };
        let answers: Vec<Result<TaskHandle<C::Output>, Error>> =
            bulk.answers().await.into_iter().map(|answer| answer.map(&mut receive)).collect();
        drop(grouping);
        match answers.iter().find_map(|answer| answer.as_ref().err()) {
            Some(first) => Err(SubmitAllError { first: first.clone(), answers }),
            None => Ok(answers.into_iter().flatten().collect()),
        }
    }

    /// Returns a handle for a task that was submitted elsewhere or earlier. If the task returns
    /// nothing, this handle knows its success while it is among the last 1,000 successes of the
    /// queue. The handle that the submit returned knows the success as long as this client lives.
    pub fn handle<T>(&self, id: TaskId) -> TaskHandle<T> {
        TaskHandle::new(self.clone(), id, Origin::Elsewhere)
    }

    /// Reads tasks, queues and workers without changing them.
    pub fn inspector(&self) -> Inspector {
        Inspector::new(self.0.broker.clone())
    }

    /// Returns the client's access to Redis; for the other Optimus crates.
    #[doc(hidden)]
    pub fn broker(&self) -> &Broker {
        &self.0.broker
    }

    fn passage(&self) -> Passage<'_> {
        Passage::of(&self.1, self.0.submitter.timeout())
    }

    fn check(&self, submission: Submission) -> Result<Submission, Error> {
        self.check_one(&submission)?;
        Ok(submission)
    }

    fn check_one(&self, submission: &Submission) -> Result<(), Error> {
        submission.check(self.0.payload_limit, platform::now_ms())
    }

    fn receive<T>(&self, id: TaskId, answer: Answer) -> TaskHandle<T> {
        submit_log::log_submit(&id, &answer.task, &answer.receipt);
        let handle = match answer.receipt {
            Receipt::Created if answer.has_given_id => {
                TaskHandle::new(self.clone(), id, Origin::Given(answer.call))
            }
            // A task that would wait for itself has an error instead of an answer.
            Receipt::Created | Receipt::WaitsForItself(_) => {
                TaskHandle::new(self.clone(), id, Origin::Call(answer.call))
            }
            Receipt::Duplicate(owner) => TaskHandle::new(self.clone(), owner, Origin::Owner),
        };
        if answer.returns_nothing { handle.without_result() } else { handle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_whose_outcome_is_unknown_are_not_said_to_be_refused() {
        let said = |problems: &[Error]| {
            let first = problems[0].clone();
            let answers: Vec<Result<TaskHandle<()>, _>> =
                problems.iter().cloned().map(Err).collect();
            SubmitAllError { answers, first }.to_string()
        };
        let id = TaskId::new(crate::id::QueueName::new("q").unwrap());
        let (unknown, full) = (Error::unknown_outcome(vec![id], "it broke".into()), Error::full());
        for (problems, expected) in [
            (vec![&full], "1 of 1 tasks was not accepted: "),
            (vec![&full, &full], "2 of 2 tasks were not accepted, the first because: "),
            (vec![&unknown], "1 of 1 tasks has no confirmed answer: "),
            (
                vec![&unknown, &unknown],
                "2 of 2 tasks have no confirmed answer, the first because: ",
            ),
            (
                vec![&unknown, &full],
                "2 of 2 tasks were not accepted or have no confirmed answer, the first because: ",
            ),
        ] {
            let problems: Vec<Error> = problems.into_iter().cloned().collect();
            let text = said(&problems);
            assert!(text.starts_with(expected), "{text}");
        }
    }
}
