//! The prerequisites of a call.

use std::time::Duration;

use crate::{
    Error,
    after::{After, PrerequisiteFailure},
    call::Call,
    options::TaskOptions,
    parameter::Arguments,
    prerequisite_key::IntoPrerequisite,
    task::Task,
};

impl<T: Task, In> Call<T, In> {
    /// Lets the task wait until another one has succeeded, whichever of the two is submitted
    /// first. Call it once for each prerequisite; a task has at most 32.
    ///
    /// A [key](crate::key) names the other task by its biz id. It may be of another queue, and need
    /// not exist yet. A handle or an id names a task that was submitted.
    ///
    /// The task is [Blocked](crate::TaskState::Blocked) until then. A delay continues during that
    /// time. The task joins its [lane](Self::lane) afterwards. A prerequisite that ends as Dead or
    /// Cancelled does not start the task, unless
    /// [`on_prerequisite_failure`](Self::on_prerequisite_failure) says so.
    pub fn after(mut self, prerequisite: impl IntoPrerequisite) -> Self {
        self.prerequisites.push(prerequisite.into_prerequisite());
        self
    }

    /// Sets what the task does when one of its [prerequisites](Self::after) ends as Dead or
    /// Cancelled. By default it waits until an operator has requeued that one and it has succeeded.
    pub fn on_prerequisite_failure(mut self, on_failure: PrerequisiteFailure) -> Self {
        self.set().after.on_failure = Some(on_failure);
        self
    }

    /// Sets the time from the submit after which the task gives up and is Dead, if its
    /// [prerequisites](Self::after) have not all succeeded. Without it the task waits without a
    /// limit.
    pub fn give_up_after(mut self, give_up_after: Duration) -> Self {
        self.set().after.give_up_after = Some(give_up_after);
        self
    }

    /// Sets how long the outcome of this task is remembered for tasks that wait for it. A
    /// [key](crate::key) can only name a task whose definition has this option.
    pub fn outcome_ttl(mut self, ttl: Duration) -> Self {
        self.set().after.outcome_ttl = Some(ttl);
        self
    }

    /// Returns what the task waits for: what its definition and its call say.
    pub(crate) fn wait(
        &self,
        options: &TaskOptions,
        biz_id: Option<&str>,
    ) -> Result<Option<After>, Error> {
        let named = match (&self.arguments, biz_id) {
            (_, None) => Vec::new(),
            (Arguments::All(task), Some(biz_id)) => task.after(biz_id),
            (Arguments::Part(_), Some(biz_id)) => T::after_biz_id(biz_id),
        };
        if named.is_empty() && self.prerequisites.is_empty() {
            return Ok(None);
        }
        let named = named.into_iter().map(IntoPrerequisite::into_prerequisite);
        let all = named.chain(self.prerequisites.iter().cloned()).collect::<Result<Vec<_>, _>>();
        let all =
            all.map_err(|problem| Error::invalid(format!("task {:?}: {problem}", T::NAME)))?;
        Ok(options.after.wait(all))
    }
}
