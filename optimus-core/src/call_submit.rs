//! Turns a call into what a client sends: [`Submit`].

use std::any::TypeId;

use crate::{
    Error, arguments,
    call::Call,
    gather::Gather,
    headers,
    id::{QueueName, TaskId},
    lane::Lane,
    limit::TaskLimit,
    parameter::Arguments,
    submission::{Fields, Submission},
    task::Task,
};

impl<T: Task, In> Call<T, In> {
    /// Checks the options and encodes the arguments. This is the last step that knows the type.
    pub(crate) fn prepare(&self) -> Result<Submission, Error> {
        let submission = self.prepare_step()?;
        self.options().after.check(T::NAME, submission.after.as_ref())?;
        Ok(submission)
    }

    /// Prepares a step of a flow, which has a prerequisite in addition to those of the call. If it
    /// takes a result, the payload ends where the result follows.
    pub(crate) fn prepare_step(&self) -> Result<Submission, Error> {
        let definition = T::options();
        let (set, options) = (self.options(), self.over(&definition));
        options.validate(T::NAME)?;
        let biz_id = self.filled("biz_id", set.biz_id.as_ref(), T::biz_id)?;
        let lane = self.filled("lane", set.lane.as_ref(), T::lane)?;
        set.check(T::NAME, &definition, &options, biz_id.as_deref(), lane.as_deref())?;
        let by = self.filled("by", set.by.as_ref(), T::by)?;
        let gather = Gather::of(T::NAME, by, lane.as_deref(), &options)?;
        let after = self.wait(&options, biz_id.as_deref())?;
        let unkept = definition.result_ttl.is_zero() && !options.result_ttl.is_zero();
        let returns_nothing = TypeId::of::<T::Output>() == TypeId::of::<()>();
        if unkept && returns_nothing {
            return Err(Error::invalid(format!(
                "task {:?}: it has no result that result_ttl could keep, since its definition says \
                 result_ttl = 0; set a time there",
                T::NAME
            )));
        }
        headers::check(&self.headers, T::NAME)?;
        let queue = set.queue.as_deref().unwrap_or(options.queue);
        let queue = QueueName::new(queue)
            .map_err(|problem| Error::invalid(format!("task {:?}: {problem}", T::NAME)))?;
        let id = match &set.id {
            Some(id) if set.queue.is_some() && *id.queue() != queue => {
                return Err(Error::invalid(format!(
                    "task {:?}: the id {id} is of another queue than {queue}; remove .queue(…)",
                    T::NAME
                )));
            }
            Some(id) => id.clone(),
            None => TaskId::new(queue),
        };
        let payload = match &self.arguments {
            Arguments::All(task) => {
                arguments::encode(task).map_err(|problem| format!("arguments as JSON: {problem}"))
            }
            Arguments::Part(part) => part.json(),
        };
        let payload =
            payload.map_err(|problem| Error::invalid(format!("task {:?}: {problem}", T::NAME)))?;
        let name = set.limit.as_deref().or(options.limit);
        let limits = TaskLimit::of(T::NAME, lane.as_deref(), name, &options);
        Ok(Submission::of(Fields {
            id,
            may_exist: set.id.is_some(),
            task: T::NAME.into(),
            returns_nothing,
            options,
            biz_id,
            lane: lane.map(|key| Lane::of(key, &options)),
            gather,
            member: None,
            trace: None,
            after,
            follows_step: false,
            limits,
            due: set.due,
            headers: self.headers.clone(),
            payload,
        }))
    }

    /// Returns the value that the call sets, or else the one that the definition makes of the
    /// arguments, as far as they are known.
    fn filled(
        &self,
        option: &str,
        given: Option<&String>,
        template: fn(&T) -> Option<String>,
    ) -> Result<Option<String>, Error> {
        match &self.arguments {
            _ if given.is_some() => Ok(given.cloned()),
            Arguments::All(task) => Ok(template(task)),
            Arguments::Part(part) => part.fill::<T>(option),
        }
    }
}

/// A call whose task type is erased: see [`Call::erase`]. Each submit of a clone is a separate
/// task, unless the call has an [id](Call::id). Its result is JSON, `null` for a task of `()`.
#[derive(Debug, Clone)]
#[must_use = "a call does nothing until it is submitted"]
pub struct ErasedCall(pub(crate) Submission);

impl ErasedCall {
    /// Erases the type of a call, or returns an erased call; for crates that keep calls.
    ///
    /// # Errors
    /// [`Error::is_invalid`] for options or arguments that can't be stored.
    #[doc(hidden)]
    pub fn of(call: impl Submit) -> Result<Self, Error> {
        call.into_submission().map(Self)
    }
}

/// Types that a client can submit: [`Call`] and [`ErasedCall`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a call",
    label = "not a call with all its arguments",
    note = "`client.submit(…)` takes a call, such as `send(to)`; `client.submit_flow(…)` takes a \
            flow, which `chain![…]` and `.then(…)` make; `client.submit_group(…)` takes a group"
)]
pub trait Submit {
    /// The type of the task's result.
    type Output;
    /// Checks and encodes the call.
    ///
    /// # Errors
    /// [`Error::is_invalid`] for options or arguments that can't be stored.
    fn into_submission(self) -> Result<Submission, Error>;
}

#[diagnostic::do_not_recommend]
impl<T: Task> Submit for Call<T> {
    type Output = T::Output;
    fn into_submission(self) -> Result<Submission, Error> {
        self.prepare()
    }
}

#[diagnostic::do_not_recommend]
impl Submit for ErasedCall {
    type Output = serde_json::Value;
    fn into_submission(self) -> Result<Submission, Error> {
        let Self(mut submission) = self;
        if !submission.may_exist {
            // Clones of the call have the same id, which may be much older than the submit.
            submission.id = TaskId::new(submission.id.queue().clone());
        }
        Ok(submission)
    }
}
