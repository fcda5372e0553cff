//! Stores, reads and controls schedules: [`Schedules`].

use std::fmt;

use super::Client;
use crate::{
    Error,
    broker::{BrokerError, Refusal, Reschedule, StoredSchedule, Ticked},
    id::{QueueName, TaskId},
    platform,
    schedule::Schedule,
    schedule_details::{ScheduleCursor, ScheduleDetails, SchedulePage, ScheduleTick},
    settle_schedule::settle_schedule,
    store_schedule::{READS_MAX, StoredAs, store_schedule},
    task_page::PAGE_MAX,
};

/// Stores, reads and controls schedules, those of code and those that are made at run time; from
/// [`Client::schedules`].
///
/// Each method finds a schedule by its name, in any queue of the namespace.
#[derive(Clone)]
pub struct Schedules(Client);

impl fmt::Debug for Schedules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schedules").field(&self.0).finish()
    }
}

impl Client {
    /// Returns the schedules of the client's namespace.
    ///
    /// ```no_run
    /// # async fn doc(client: &optimus_core::Client) -> Result<(), optimus_core::Error> {
    /// let schedules = client.schedules();
    /// if let Some(digest) = schedules.get("digest-42").await? {
    ///     println!("{}: {}, next {:?}", digest.name, digest.pace, digest.next_instants(3));
    /// }
    /// schedules.pause("digest-42", "ann").await?;
    /// schedules.remove("digest-41").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn schedules(&self) -> Schedules {
        Schedules(self.clone())
    }
}

impl Schedules {
    /// Stores a schedule, in the queue of its call. If one of this name exists, it is replaced, and
    /// a pause of it stays. If the instants are the same as before, it is due as before; otherwise
    /// it is due at the first instant after now. So the same `put` may be repeated, such as at each
    /// start of a program.
    ///
    /// The workers of the queue learn of the schedule at once if one of them is idle, otherwise
    /// with their next heartbeat, within a third of a lease. Its tasks pass no layer's
    /// [`submit`](crate::Layer::submit).
    ///
    /// # Errors
    /// [`Error::is_invalid`] for a schedule or a call that can't be stored, and if a program's code
    /// has a schedule of this name; [`Error::is_unavailable`]; [`Error::is_unknown_outcome`], which
    /// is safe to repeat.
    pub async fn put(&self, schedule: Schedule) -> Result<(), Error> {
        let schedule = schedule.check()?;
        let inner = &self.0.0;
        schedule.submission.check(inner.payload_limit, platform::now_ms())?;
        let (name, queue) = (&*schedule.name, schedule.submission.id().queue().clone());
        // Before, so that others see it; and again, because an unused queue may be retired.
        inner.broker.announce(&queue).await?;
        let stored_as = store_schedule(&inner.broker, &schedule).await?;
        if stored_as == StoredAs::IsOfCode {
            return Err(is_of_code(name));
        }
        Ok(inner.broker.announce(&queue).await?)
    }

    /// Reads a schedule; `None` if there is none of this name.
    ///
    /// # Errors
    /// [`Error::is_unavailable`]. So do all methods here that read.
    pub async fn get(&self, name: &str) -> Result<Option<ScheduleDetails>, Error> {
        check_name(name)?;
        let found = self.0.0.broker.find_schedules(name, None).await?;
        Ok(found.iter().find_map(StoredSchedule::details))
    }

    /// Reads the schedules of a queue, at most `limit` (and [`PAGE_MAX`]), starting at `after`,
    /// which the page before has returned. A schedule that ticks meanwhile may be on two pages.
    ///
    /// # Errors
    /// As for [`get`](Self::get); [`Error::is_invalid`] if `limit` is 0.
    pub async fn list(
        &self,
        queue: impl AsRef<str>,
        after: Option<&ScheduleCursor>,
        limit: usize,
    ) -> Result<SchedulePage, Error> {
        let queue = QueueName::new(queue)?;
        if limit == 0 {
            return Err(Error::invalid("the limit of a page is 0; ask for 1 schedule or more"));
        }
        let (rows, next) =
            self.0.0.broker.schedule_page(&queue, limit.min(PAGE_MAX), after).await?;
        let rows = rows.iter().filter_map(StoredSchedule::details).collect();
        Ok(SchedulePage { rows, next })
    }

    /// Reads the last 100 instants of a schedule, the latest first.
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    pub async fn history(&self, name: &str) -> Result<Vec<ScheduleTick>, Error> {
        let mut ticks = Vec::new();
        for queue in self.queues_of(name).await? {
            ticks.extend(self.0.0.broker.schedule_ticks(&queue, name).await?);
        }
        Ok(ticks)
    }

    /// Pauses a schedule: it has no instants until it is [resumed](Self::resume), whatever a deploy
    /// changes. `by` says who pauses it. Returns whether there is such a schedule.
    ///
    /// # Errors
    /// [`Error::is_invalid`] if `by` is empty or has a line break; [`Error::is_unavailable`];
    /// [`Error::is_unknown_outcome`], which is safe to repeat. So do all methods here that change.
    pub async fn pause(&self, name: &str, by: &str) -> Result<bool, Error> {
        self.pause_because(name, by, "").await
    }

    /// Pauses a schedule as [`pause`](Self::pause) does, and says why, for people who look later.
    ///
    /// # Errors
    /// As for [`pause`](Self::pause).
    pub async fn pause_because(&self, name: &str, by: &str, why: &str) -> Result<bool, Error> {
        if by.trim().is_empty() {
            return Err(Error::invalid("say who pauses the schedule, such as \"ann\""));
        }
        if by.contains(['\n', '\r']) {
            return Err(Error::invalid(format!("{by:?}: a name has no line break")));
        }
        let by = if why.is_empty() { by.to_owned() } else { format!("{by}\n{why}") };
        let pause = |found: &StoredSchedule| (!found.is_paused()).then_some(Reschedule::Pause(&by));
        self.change_all(name, pause).await
    }

    /// Ends a pause. The schedule is due at the first instant after now; the instants of the pause
    /// are not missed ones. Returns whether there is such a schedule.
    ///
    /// # Errors
    /// As for [`pause`](Self::pause).
    pub async fn resume(&self, name: &str) -> Result<bool, Error> {
        let resume = |found: &StoredSchedule| {
            let timing = found.timing().ok().filter(|_| found.is_paused())?;
            let after = found.now_ms.max(found.last_ms().unwrap_or(0));
            Some(Reschedule::Resume(timing.next_ms(after)))
        };
        self.change_all(name, resume).await
    }

    /// Removes a schedule with its history. The tasks that it has submitted stay. A schedule that
    /// the code of a running worker has returns within a minute: [pause](Self::pause) it instead.
    /// Returns whether there was such a schedule.
    ///
    /// # Errors
    /// As for [`pause`](Self::pause).
    pub async fn remove(&self, name: &str) -> Result<bool, Error> {
        self.change_all(name, |_| Some(Reschedule::Remove)).await
    }

    /// Submits a task of the schedule now, also if it is paused or an earlier task has not ended.
    /// The instants of the schedule stay as they are. Returns the id of the task, for
    /// [`Client::handle`]; `None` if there is no such schedule. If another task has the biz id,
    /// nothing is added, and the id is that of the other task.
    ///
    /// # Errors
    /// As for [`pause`](Self::pause), but a repeat after [`Error::is_unknown_outcome`] may submit a
    /// second task.
    pub async fn run_now(&self, name: &str) -> Result<Option<TaskId>, Error> {
        let broker = &self.0.0.broker;
        check_name(name)?;
        for _ in 0..READS_MAX {
            let found = broker.find_schedules(name, None).await?;
            let Some(found) = found.first() else { return Ok(None) };
            let queue = found.queue();
            if found.is_moving() {
                settle_schedule(broker, name, queue).await?;
                continue;
            }
            let id = TaskId::new(queue.clone());
            match broker.tick_now(&found.due(), found.now_ms, id.clone()).await {
                Ok(Ticked::Duplicate(owner)) => return Ok(Some(owner)),
                Ok(_) => return Ok(Some(id)),
                Err(problem) if problem.refusal() == Some(Refusal::Stale) => {}
                Err(BrokerError::Refused(Refusal::Newer, needs)) => {
                    return Err(Error::outdated(&needs));
                }
                Err(problem) => return Err(problem.into()),
            }
        }
        Err(changes_again(name))
    }

    async fn queues_of(&self, name: &str) -> Result<Vec<QueueName>, Error> {
        check_name(name)?;
        Ok(self.0.0.broker.queues_with_schedule(name).await?)
    }

    async fn change_all<'a>(
        &self,
        name: &str,
        act: impl Fn(&StoredSchedule) -> Option<Reschedule<'a>>,
    ) -> Result<bool, Error> {
        let mut changed: Vec<QueueName> = Vec::new();
        // The schedule may move meanwhile.
        for _ in 0..READS_MAX {
            let queues = self.queues_of(name).await?;
            if queues.iter().all(|queue| changed.contains(queue)) {
                break;
            }
            for queue in queues {
                self.change(&queue, name, &act).await?;
                changed.push(queue);
            }
        }
        Ok(!changed.is_empty())
    }

    /// Changes a schedule, unless it is as it shall be.
    async fn change<'a>(
        &self,
        queue: &QueueName,
        name: &str,
        act: impl Fn(&StoredSchedule) -> Option<Reschedule<'a>>,
    ) -> Result<(), Error> {
        let broker = &self.0.0.broker;
        for _ in 0..READS_MAX {
            let Some(found) = broker.find_schedule(queue, name).await? else { return Ok(()) };
            if found.is_moving() {
                // What it has now is not yet in the queue that keeps it.
                settle_schedule(broker, name, queue).await?;
                continue;
            }
            let Some(act) = act(&found) else { return Ok(()) };
            match broker.reschedule(queue, (name, found.edition()), act).await {
                Err(problem) if problem.refusal() == Some(Refusal::Stale) => {}
                answer => return Ok(answer?),
            }
        }
        Err(changes_again(name))
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    crate::id::validate_name(name)
        .map_err(|problem| Error::invalid(format!("the schedule {name:?}: {problem}")))
}

fn is_of_code(name: &str) -> Error {
    Error::invalid(format!(
        "a program's code has a schedule {name:?}, with #[optimus::cron]; change it there, or use \
         another name"
    ))
}

fn changes_again(name: &str) -> Error {
    BrokerError::NotDone(format!("the schedule {name:?} changes again and again")).into()
}
