//! Reads and changes a limit, pauses what it limits, and takes permits outside tasks:
//! [`GateHandle`].

use std::{fmt, time::Duration};

use futures_util::{future::try_join_all, try_join};
use tokio::time::{Instant, sleep};

use super::{
    Client,
    builder::WAIT_LIMIT,
    permit::{Permit, PermitRequest},
};
use crate::{
    Error,
    broker::{BrokerError, WorkerLoad},
    gate::Gate,
    id::QueueName,
    inspect::WorkerDescription,
    limit::{Limit, LimitDetails},
    operator_answers::GateAnswer,
    state::TaskState,
    task_page::{PAGE_MAX, TaskPage},
};

/// How long [`GateHandle::acquire`] waits, unless [`GateHandle::wait_at_most`] sets another time.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// The lease of a permit. The client renews it after each third.
pub(super) const LEASE: Duration = Duration::from_secs(30);

/// The shortest and the longest wait before the next request for a permit.
const ASK_AFTER: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(500)];

/// A place in a queue where a limit or a pause applies; from [`Client::limit`] or
/// [`Client::gate`].
#[derive(Clone)]
pub struct GateHandle {
    client: Client,
    queue: String,
    gate: Gate,
    cost: u32,
    wait_max: Duration,
}

impl fmt::Debug for GateHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateHandle")
            .field("queue", &self.queue)
            .field("gate", &self.gate)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Returns a handle for the limit of this name, in the queue `default` unless
    /// [`queue`](GateHandle::queue) names another one.
    ///
    /// ```no_run
    /// # async fn doc(client: &optimus_core::Client) -> Result<(), optimus_core::Error> {
    /// # use optimus_core as optimus;
    /// use optimus::{Limit, Rate};
    ///
    /// let stripe = client.limit("stripe").queue("payments");
    /// stripe.set(Limit::new().rate(Rate::per_second(100)).max_working(8)).await?;
    /// let permit = stripe.acquire().await?;
    /// // … one call to the service …
    /// drop(permit);
    /// # Ok(())
    /// # }
    /// ```
    pub fn limit(&self, name: impl Into<String>) -> GateHandle {
        self.gate(QueueName::DEFAULT, Gate::Named(name.into()))
    }

    /// Returns a handle for what limits the queue, the tasks of a name, a lane, or the tasks that
    /// name a limit.
    pub fn gate(&self, queue: impl AsRef<str>, gate: Gate) -> GateHandle {
        let (client, queue) = (self.clone(), queue.as_ref().to_owned());
        GateHandle { client, queue, gate, cost: 1, wait_max: WAIT_MAX }
    }
}

impl GateHandle {
    /// Chooses another queue.
    pub fn queue(mut self, queue: impl AsRef<str>) -> Self {
        queue.as_ref().clone_into(&mut self.queue);
        self
    }

    /// Sets how much of the rate a permit of [`acquire`](Self::acquire) uses. The default is 1.
    pub fn cost(mut self, cost: u32) -> Self {
        self.cost = cost;
        self
    }

    /// Sets how long [`acquire`](Self::acquire) waits at most. The default is 30 s.
    pub fn wait_at_most(mut self, wait: Duration) -> Self {
        self.wait_max = wait.min(WAIT_LIMIT);
        self
    }

    /// Sets the limit, which replaces the one that tasks declare. It also applies to the tasks that
    /// wait already, and stays until it is [removed](Self::remove). Returns whether a limit was set
    /// before, and whether a task with this limit is known.
    ///
    /// # Errors
    /// [`Error::is_invalid`] for a limit or a name that can't be used; [`Error::is_unavailable`];
    /// [`Error::is_unknown_outcome`] if the request was sent twice and not answered, which is safe
    /// to repeat. These are the errors of all methods here.
    pub async fn set(&self, limit: Limit) -> Result<GateAnswer, Error> {
        let queue = self.checked()?;
        if let Some(problem) = limit.problem_if_set() {
            return Err(Error::invalid(format!("{}: {problem}", self.gate)));
        }
        let answer = self.answer(&queue).await?;
        let set = self.client.0.broker.set_limit(&queue, &self.gate, Some(&limit)).await;
        set.map_err(|problem| self.failed("set", problem))?;
        Ok(answer)
    }

    /// Removes the limit that was set, so that the limits of the tasks apply again.
    ///
    /// # Errors
    /// As for [`set`](Self::set).
    pub async fn remove(&self) -> Result<GateAnswer, Error> {
        let queue = self.checked()?;
        let answer = self.answer(&queue).await?;
        let removed = self.client.0.broker.set_limit(&queue, &self.gate, None).await;
        removed.map_err(|problem| self.failed("remove", problem))?;
        Ok(answer)
    }

    /// Reads the limit: what it allows now, how much of it is in use, and what waits for it.
    /// `None` if nothing was set, nothing waits, nothing has used it lately, and no worker of the
    /// queue has a task that declares it. What tasks declare is known while one of them waits
    /// or a worker declares it.
    ///
    /// # Errors
    /// As for [`set`](Self::set).
    pub async fn get(&self) -> Result<Option<LimitDetails>, Error> {
        let queue = self.checked()?;
        let declared = self.client.inspector().declared_limits(&queue).await?;
        let declared = declared.into_iter().find(|known| known.gate == self.gate);
        let known = declared.map(|known| known.limit);
        Ok(self.client.0.broker.limit_known(&queue, &self.gate, known).await?)
    }

    /// Reads what an answer to a change of the gate has, before the change.
    async fn answer(&self, queue: &QueueName) -> Result<GateAnswer, Error> {
        let broker = &self.client.0.broker;
        let (found, has_tasks, (workers, _)) = try_join!(
            broker.limit(queue, &self.gate),
            broker.gate_has_tasks(queue, &self.gate),
            broker.worker_loads(queue),
        )?;
        let is_used = found.as_ref().is_some_and(LimitDetails::is_used);
        let is_declared = || {
            let described = |load: &WorkerLoad| {
                serde_json::from_str::<WorkerDescription>(&load.description).unwrap_or_default()
            };
            workers.iter().map(described).any(|worker| match &self.gate {
                Gate::Queue => true,
                Gate::Task(name) => worker.tasks.contains(name),
                gate => worker.declares(queue, gate),
            })
        };
        // A hint must not refuse the act.
        let is_known = is_used
            || has_tasks
            || is_declared()
            || self.is_waited_for(queue).await.unwrap_or(true);
        Ok(GateAnswer {
            is_known,
            was_set: found.is_some_and(|found| found.is_set),
            of_lane: matches!(self.gate, Gate::Lane(_)),
        })
    }

    /// Returns whether tasks of its name are among the first that wait. No worker may run now.
    async fn is_waited_for(&self, queue: &QueueName) -> Result<bool, Error> {
        let Gate::Task(name) = &self.gate else { return Ok(false) };
        let broker = &self.client.0.broker;
        let waiting = [TaskState::Ready, TaskState::Blocked, TaskState::Delayed, TaskState::Retry];
        let lists = waiting.map(|state| async move {
            Ok::<_, Error>(TaskPage::of(
                queue,
                state,
                broker.list(queue, state, PAGE_MAX, "").await?,
            ))
        });
        let pages = try_join_all(lists).await?;
        Ok(pages.iter().flat_map(|page| &page.rows).any(|row| row.task.as_ref() == Some(name)))
    }

    /// Stops the starts of its tasks at once; running tasks continue. `by` and `why` are for people
    /// who see the pause later: [`Inspector::limits`](crate::Inspector::limits) shows them.
    ///
    /// ```no_run
    /// # async fn doc(client: &optimus_core::Client) -> Result<(), optimus_core::Error> {
    /// # use optimus_core as optimus;
    /// use optimus::Gate;
    ///
    /// let tenant = client.gate("sync", Gate::Lane("tenant-7".into()));
    /// tenant.pause("ann", "their API is down until 14:00").await?;
    /// tenant.resume().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Returns whether a task that is paused by this is known, as [`set`](Self::set) does.
    ///
    /// # Errors
    /// As for [`set`](Self::set).
    pub async fn pause(&self, by: &str, why: &str) -> Result<GateAnswer, Error> {
        let queue = self.checked()?;
        let answer = self.answer(&queue).await?;
        let paused = self.client.0.broker.pause_gate(&queue, &self.gate, by, why).await;
        let is_known = paused.map_err(|problem| self.failed("pause", problem))?;
        if !is_known {
            let listed = self.client.list_paused(&queue).await;
            listed.map_err(|problem| self.failed("pause", problem))?;
        }
        Ok(answer)
    }

    /// Ends a pause: that of an operator, and that of a task's [`Retry`](crate::Retry). Returns the
    /// same as [`pause`](Self::pause).
    ///
    /// # Errors
    /// As for [`set`](Self::set).
    pub async fn resume(&self) -> Result<GateAnswer, Error> {
        let queue = self.checked()?;
        let answer = self.answer(&queue).await?;
        let resumed = self.client.0.broker.resume_gate(&queue, &self.gate).await;
        resumed.map_err(|problem| self.failed("resume", problem))?;
        Ok(answer)
    }

    /// Waits for a permit outside tasks, such as in a web request that calls the same service as
    /// the tasks. The permit counts as a running task of the limit until it is dropped. Only a
    /// limit that was [set](Self::set) applies, since there is no task that declares one.
    ///
    /// The permit is leased: if this process dies, the permit returns after at most 30 s. If this
    /// future is dropped, a permit that it may have got is given back at once.
    ///
    /// # Errors
    /// [`Error::is_timeout`] if no permit is free within 30 s, or within
    /// [`wait_at_most`](Self::wait_at_most), also because of a pause; otherwise as for
    /// [`set`](Self::set).
    pub async fn acquire(&self) -> Result<Permit, Error> {
        let ends = Instant::now() + self.wait_max;
        let mut request = self.request()?;
        loop {
            let wait = match self.ask(&mut request).await? {
                Ok(permit) => return Ok(permit),
                Err(wait) => wait.clamp(ASK_AFTER[0], ASK_AFTER[1]),
            };
            let left = ends.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let found = self.client.0.broker.limit(&self.checked()?, &self.gate).await?;
                let shut = found.and_then(|found| found.shut);
                return Err(Error::no_permit(self.gate.to_string(), self.wait_max, shut));
            }
            sleep(wait.min(left)).await;
        }
    }

    /// Takes a permit if one is free, as [`acquire`](Self::acquire) does, and does not wait.
    ///
    /// # Errors
    /// As for [`set`](Self::set).
    pub async fn try_acquire(&self) -> Result<Option<Permit>, Error> {
        let mut request = self.request()?;
        Ok(self.ask(&mut request).await?.ok())
    }

    fn request(&self) -> Result<PermitRequest, Error> {
        let (broker, gate) = (self.client.0.broker.clone(), self.gate.clone());
        Ok(PermitRequest::new(broker, self.checked()?, gate))
    }

    async fn ask(&self, request: &mut PermitRequest) -> Result<Result<Permit, Duration>, Error> {
        request.ask(self.cost).await.map_err(|problem| self.failed("acquire", problem))
    }

    fn checked(&self) -> Result<QueueName, Error> {
        match self.gate.problem() {
            Some(problem) => Err(Error::invalid(problem)),
            None if self.cost == 0 => Err(Error::invalid("the cost of a permit is at least 1")),
            None => Ok(QueueName::new(&self.queue)?),
        }
    }

    fn failed(&self, verb: &str, problem: BrokerError) -> Error {
        match problem {
            BrokerError::Unknown(why) => {
                let what = format!("{verb} of {} in queue {}", self.gate, self.queue);
                Error::unknown_operation(what, Vec::new(), why)
            }
            problem => problem.into(),
        }
    }
}
