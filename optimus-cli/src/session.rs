//! A connected command: [`Session`].

use std::{cell::RefCell, collections::BTreeSet};

use chrono::{DateTime, Utc};
use futures_util::{StreamExt, stream};
use optimus_core::{Client, Error, Inspector, QueueName, TaskId, environment};

use crate::{
    arguments::Global,
    consent::Consent,
    failure::{Exit, Failure},
    operator,
    output::Out,
    unread::Unread,
};

/// How many requests are under way at once.
pub(crate) const REQUESTS_MAX: usize = 16;

/// What a command works with.
pub(crate) struct Session<'a> {
    pub(crate) client: Client,
    pub(crate) out: &'a Out,
    /// The options that all commands share.
    global: &'a Global,
    pub(crate) consent: Consent,
    /// Who pauses or changes something.
    pub(crate) by: String,
    /// Why the operator pauses something.
    pub(crate) reason: String,
    /// The queues that were left out, because Redis refuses to read them.
    left_out: RefCell<BTreeSet<QueueName>>,
}

impl<'a> Session<'a> {
    /// Connects to the store that the options or the environment name.
    pub(crate) async fn open(global: &'a Global, out: &'a Out) -> Result<Self, Failure> {
        for name in environment::unknown(environment::names()) {
            // It is for the tests of Optimus and for `dev`.
            if name != crate::private_redis::SERVER_VAR {
                out.warn(&environment::without_effect(&name));
            }
        }
        let namespace = global.namespace.clone().or_else(|| set(environment::NAMESPACE));
        let client = connect(global, namespace.as_deref()).await?;
        let reason = global.reason.clone().unwrap_or_default();
        let by = operator::name(global.operator.as_deref());
        let (consent, left_out) = (Consent::of(global), RefCell::default());
        Ok(Self { client, out, global, consent, by, reason, left_out })
    }

    pub(crate) fn inspector(&self) -> Inspector {
        self.client.inspector()
    }

    /// Connects to another namespace of the same store.
    pub(crate) async fn elsewhere(&self, namespace: &str) -> Result<Client, Failure> {
        connect(self.global, Some(namespace)).await
    }

    /// Returns the time of Redis.
    pub(crate) async fn now(&self) -> Result<DateTime<Utc>, Failure> {
        Ok(self.inspector().now().await?)
    }

    /// Returns these queues, or all.
    pub(crate) async fn queues(&self, named: &[QueueName]) -> Result<Vec<QueueName>, Failure> {
        if named.is_empty() {
            return Ok(self.inspector().queues().await?);
        }
        Ok(named.to_vec())
    }

    /// Returns what `read` returns for each queue, in order. Warns of a queue that Redis refuses to
    /// read, and leaves it out: it must not hide the others.
    pub(crate) async fn each_queue<T, R: Future<Output = Result<T, Error>>>(
        &self,
        queues: &[QueueName],
        read: impl Fn(Inspector, QueueName) -> R,
    ) -> Result<Vec<T>, Failure> {
        let (seen, unread) = self.sorted(queues, read).await?;
        self.leave_out(&unread)?;
        Ok(seen)
    }

    /// Warns of queues that a command leaves out; an error if it has read no other one.
    pub(crate) fn leave_out(&self, unread: &Unread) -> Result<(), Failure> {
        if unread.is_all() {
            return Err(Failure::new(unread.text()));
        }
        for (queue, problem) in unread.queues() {
            if self.left_out.borrow_mut().insert(queue.clone()) {
                self.out.warn(problem);
            }
        }
        Ok(())
    }

    /// Returns what `read` returns for each queue that can be read, in order, and why the others
    /// can't.
    pub(crate) async fn each_readable<T, R: Future<Output = Result<T, Error>>>(
        &self,
        queues: &[QueueName],
        read: impl Fn(Inspector, QueueName) -> R,
    ) -> Result<(Vec<T>, Vec<String>), Failure> {
        let (seen, unread) = self.sorted(queues, read).await?;
        Ok((seen, unread.problems()))
    }

    async fn sorted<T, R: Future<Output = Result<T, Error>>>(
        &self,
        queues: &[QueueName],
        read: impl Fn(Inspector, QueueName) -> R,
    ) -> Result<(Vec<T>, Unread), Failure> {
        let reads = queues.iter().map(|queue| {
            let reading = read(self.inspector(), queue.clone());
            async move { (queue, reading.await) }
        });
        let mut answers = stream::iter(reads).buffered(REQUESTS_MAX);
        let (mut seen, mut unread) = (Vec::new(), Unread::default());
        while let Some((queue, answer)) = answers.next().await {
            seen.extend(unread.sort(queue, answer)?);
        }
        Ok((seen, unread))
    }

    /// Returns the exit code of a command that has worked, of which a queue may have been left out.
    pub(crate) fn exit(&self, exit: Exit) -> Exit {
        let is_partly = matches!(exit, Exit::Done | Exit::NotFound);
        if is_partly && !self.left_out.borrow().is_empty() { Exit::Partly } else { exit }
    }

    /// Returns the id that a text names: `queue/uuid`, or the uuid of a task of any queue.
    pub(crate) async fn task_id(&self, text: &str) -> Result<TaskId, Failure> {
        if text.contains('/') {
            return Ok(text.parse()?);
        }
        let (mut found, unread) = self.holders_of(text).await?;
        let text = text.trim();
        match found.len() {
            // It may be in one of these.
            0 if !unread.is_empty() => Err(Failure::new(format!(
                "no queue that can be read has a task {text}; {}",
                unread.text()
            ))),
            0 => Err(Failure::not_found(format!(
                "no queue has a task {text}; is it in another namespace, or no longer kept?"
            ))),
            1 => Ok(found.remove(0)),
            _ => Err(Failure::usage(format!(
                "{text} is in several queues; write one of {}",
                found.iter().map(TaskId::to_string).collect::<Vec<_>>().join(", ")
            ))),
        }
    }

    /// Returns the tasks and groups of all queues that have this uuid, and the queues that Redis
    /// refuses to read.
    pub(crate) async fn holders_of(&self, uuid: &str) -> Result<(Vec<TaskId>, Unread), Failure> {
        let queues = self.inspector().queues().await?;
        let ids: Result<Vec<TaskId>, _> =
            queues.iter().map(|queue| format!("{queue}/{}", uuid.trim()).parse()).collect();
        let Ok(ids) = ids else {
            return Err(Failure::usage(format!(
                "{uuid:?} is not the id of a task; write queue/uuid, or the uuid alone"
            )));
        };
        let looks = ids.into_iter().map(|id| async { (self.has(&id).await, id) });
        let mut answers = stream::iter(looks).buffered(REQUESTS_MAX);
        let (mut found, mut unread) = (Vec::new(), Unread::default());
        while let Some((answer, id)) = answers.next().await {
            if unread.sort(id.queue(), answer)? == Some(true) {
                found.push(id);
            }
        }
        Ok((found, unread))
    }

    /// Returns whether there is a task or a group with this id.
    async fn has(&self, id: &TaskId) -> Result<bool, Error> {
        if self.inspector().get(id).await?.is_some() {
            return Ok(true);
        }
        match self.client.group::<()>(id.clone()).progress().await {
            Ok(_) => Ok(true),
            Err(problem) if problem.is_forgotten() || problem.is_invalid() => Ok(false),
            Err(problem) => Err(problem),
        }
    }
}

fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// Connects to the store that the options or the environment name.
async fn connect(global: &Global, namespace: Option<&str>) -> Result<Client, Failure> {
    environment::check_text(|name| std::env::var_os(name))?;
    let url = match &global.url {
        Some(url) => url.trim().to_owned(),
        None => environment::url(set, &environment::unknown(environment::names()))
            .map_err(|problem| Failure::usage(format!("{problem}, or pass --url")))?,
    };
    if url.starts_with("memory:") {
        return Err(Failure::usage(
            "the store memory:// is inside one process, so no other program can look at it; \
             `optimus dev` starts a Redis for the time of a command",
        ));
    }
    let mut builder = Client::builder(&url);
    if let Some(namespace) = namespace {
        builder = builder.namespace(namespace.trim());
    }
    Ok(builder.connect().await?)
}
