//! Flows that wait for the commit of a transaction: their steps are stored as calls, and a relay
//! submits them afterwards. [`StoredFlow`] has the steps.

use super::{
    Client, FlowHandle, OwnClient, StepHandle,
    flow_handle::Steps,
    part_ids::name_steps,
    submit_flow::{Link, keep_outcomes, link},
};
use crate::{
    Error,
    after::PrerequisiteFailure,
    flow::{Flow, Stage},
    id::TaskId,
    submission::Submission,
};

/// The checked steps of a flow of tasks, in order. This type is for crates that know a database.
#[derive(Debug)]
pub struct StoredFlow {
    steps: Vec<Submission>,
    policies: Vec<PrerequisiteFailure>,
}

impl StoredFlow {
    /// Returns the steps in the order in which they are stored: the last one first, so that the
    /// steps of one queue are there before the first one runs.
    pub fn steps(&self) -> impl Iterator<Item = &Submission> {
        self.steps.iter().rev()
    }

    /// Returns what a handle needs to know of the flow.
    #[must_use]
    pub fn without_arguments(&self) -> Self {
        let steps = self.steps.iter().map(Submission::without_arguments).collect();
        Self { steps, policies: self.policies.clone() }
    }

    /// Returns the ids of the steps, in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = &TaskId> {
        self.steps.iter().map(Submission::id)
    }
}

impl Client {
    /// Submits a flow for the code that is running, or keeps it until its transaction is committed.
    pub(crate) async fn perform_flow<T>(stages: Vec<Stage<'_>>) -> Result<FlowHandle<T>, Error> {
        let own = OwnClient::current();
        let Some(deferred) = own.as_ref().and_then(|own| own.deferred()) else {
            return Self::current()?.submit_stages(stages).await;
        };
        let client = deferred.client();
        let flow = client.admit_steps(read(stages)?).await?;
        let handle = client.promised_flow(&flow);
        flow.steps.into_iter().rev().for_each(|step| deferred.add(step));
        Ok(handle)
    }

    /// Passes the steps of a flow through the layers of the client of the code that is running, and
    /// checks them. Without a client, no layer is called.
    ///
    /// # Errors
    /// [`Error::is_invalid`] for a flow with a group, or with a step with a biz id before the last
    /// one. The errors of [`admit_here`](Self::admit_here).
    #[doc(hidden)]
    pub async fn admit_flow_here<Out>(flow: Flow<'_, Out>) -> Result<StoredFlow, Error> {
        let flow = read(flow.stages)?;
        if let Ok(client) = Self::current() {
            return client.admit_steps(flow).await;
        }
        flow.steps.iter().try_for_each(Self::check_here)?;
        Ok(flow)
    }

    async fn admit_steps(&self, flow: StoredFlow) -> Result<StoredFlow, Error> {
        let StoredFlow { steps, policies } = flow;
        let mut admitted = Vec::with_capacity(steps.len());
        for mut step in steps {
            self.passage().pass(&mut step).await?;
            admitted.push(self.check(step)?);
        }
        Ok(StoredFlow { steps: admitted, policies })
    }

    /// Returns a handle for a flow that is not in Redis yet.
    #[doc(hidden)]
    pub fn promised_flow<T>(&self, flow: &StoredFlow) -> FlowHandle<T> {
        let steps = flow.steps.iter().map(|step| StepHandle::Task(self.promised(step)));
        let steps = Steps { steps: steps.collect(), policies: flow.policies.clone() };
        FlowHandle::new(self.clone(), steps)
    }
}

/// Returns the steps of a flow that can be stored one by one.
fn read(mut stages: Vec<Stage<'_>>) -> Result<StoredFlow, Error> {
    name_steps(&mut stages);
    let mut links = link(stages, None)?;
    keep_outcomes(&mut links, std::time::Duration::ZERO);
    let policies = links.iter().map(Link::policy).collect();
    let last = links.len().saturating_sub(1);
    let mut steps = Vec::with_capacity(links.len());
    for (place, link) in links.into_iter().enumerate() {
        let Link::Task(step) = link else {
            let text = "a flow with a group can't wait for the commit of a transaction; submit a \
                        task in the transaction whose handler submits the flow, or submit it after \
                        the commit";
            return Err(Error::invalid(text));
        };
        if place < last && step.biz_id.is_some() {
            return Err(Error::invalid(format!(
                "task {:?}: a step with a biz id can't wait for the commit of a transaction, \
                 unless it is the last one: if another task held the biz id then, the steps after \
                 it would wait forever; submit a task in the transaction whose handler submits the \
                 flow",
                step.task
            )));
        }
        steps.push(step);
    }
    Ok(StoredFlow { steps, policies })
}
