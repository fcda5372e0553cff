//! The schedules of the worker's own code, and how they are stored: [`CodeSchedules`].

use std::collections::BTreeSet;

use optimus_core::{
    CheckedSchedule, QueueName, StoredAs,
    broker::{Broker, BrokerError, DueSchedule, Refusal, Reschedule},
    is_later_release, log_event, store_schedule,
};

use crate::{served_queue::Served, shared::Shared};

/// The schedules of the code, by the queues that the worker serves.
pub(crate) struct CodeSchedules {
    /// The names, by the position of the queue.
    names: Vec<Vec<String>>,
    /// Those that can't be stored, because another schedule has the name.
    refused: BTreeSet<String>,
    /// What was logged, so that it is logged once.
    logged: BTreeSet<String>,
}

impl CodeSchedules {
    pub(crate) fn new(shared: &Shared) -> Self {
        let mut names: Vec<Vec<String>> = shared.queues.iter().map(|_| Vec::new()).collect();
        for schedule in shared.registry.schedules() {
            if let Some(place) = shared.queues.place(schedule.submission.id().queue()) {
                names[place].push(schedule.name.clone());
            }
        }
        Self { names, refused: BTreeSet::new(), logged: BTreeSet::new() }
    }

    /// Returns the names of the schedules in the queue at this position.
    pub(crate) fn names(&self, place: usize) -> &[String] {
        &self.names[place]
    }

    /// Stores these schedules of the code, for the queue at this position. No longer ticks those
    /// that can't be stored.
    pub(crate) async fn store(
        &mut self,
        shared: &Shared,
        broker: &Broker,
        (place, names): (usize, &[String]),
    ) -> Result<(), BrokerError> {
        let of_names = |schedule: &&CheckedSchedule| names.contains(&schedule.name);
        for schedule in shared.registry.schedules().iter().filter(of_names) {
            let is_taken = self.leave_other_queues(shared, broker, schedule).await?;
            let stored_as = if is_taken {
                StoredAs::IsMadeAtRunTime
            } else {
                store_schedule(broker, schedule).await?
            };
            self.note(shared, schedule, stored_as);
        }
        let refused = &self.refused;
        self.names[place].retain(|name| !refused.contains(name));
        Ok(())
    }

    /// Removes the schedule from queues in which an earlier release has stored it. Returns whether
    /// a schedule of this name was made at run time there.
    async fn leave_other_queues(
        &self,
        shared: &Shared,
        broker: &Broker,
        schedule: &CheckedSchedule,
    ) -> Result<bool, BrokerError> {
        let (name, own) = (&*schedule.name, schedule.release.as_deref().unwrap_or_default());
        for queue in broker.queues_with_schedule(name).await? {
            if queue == *schedule.submission.id().queue() {
                continue;
            }
            let Some(found) = broker.find_schedule(&queue, name).await? else { continue };
            let Some(release) = found.release() else { return Ok(true) };
            if is_later_release(&release, own) {
                continue;
            }
            let remove = (name, found.edition());
            match broker.reschedule(&queue, remove, Reschedule::Remove).await {
                Err(problem) if problem.refusal() != Some(Refusal::Stale) => return Err(problem),
                _ => log_moved(shared, name, queue),
            }
        }
        Ok(false)
    }

    fn note(&mut self, shared: &Shared, schedule: &CheckedSchedule, stored_as: StoredAs) {
        let (log, name) = (&shared.log, schedule.name.clone());
        let release = schedule.release.clone().unwrap_or_default();
        match stored_as {
            StoredAs::Stored => {
                log_event!(log, INFO, schedule = name, release, "stored a schedule of the code");
            }
            StoredAs::Unchanged => {}
            StoredAs::Replaced => {
                let text = "another content of this schedule was stored under the same release; \
                            the worker that starts last decides: give each release its own version";
                log_event!(log, WARN, schedule = name, release, "{text}");
            }
            StoredAs::KeptNewer(stored) => {
                let text = "a later release has stored this schedule, which stays; after a return \
                            to an earlier release, remove it with Schedules::remove";
                log_event!(log, WARN, schedule = name, release, stored, "{text}");
            }
            StoredAs::IsMadeAtRunTime | StoredAs::IsOfCode => {
                let text = "a schedule of this name was made at run time, so the one of the code \
                            is not stored; remove it, or rename one of them";
                log_event!(log, ERROR, schedule = name, "{text}");
                self.refused.insert(schedule.name.clone());
            }
        }
    }

    /// Logs that the worker can't read a schedule.
    pub(crate) fn log_unreadable(
        &mut self,
        shared: &Shared,
        queue: &Served,
        (schedule, why): (&DueSchedule, &String),
    ) {
        let name = schedule.name.clone();
        if self.logged.insert(format!("{}/{name}: {why}", queue.name)) {
            let (queue, error) = (queue.name.clone(), why.clone());
            let text = "this worker can't read a schedule, and leaves it to others: upgrade it";
            log_event!(shared.log, ERROR, %queue, schedule = name, error, "{text}");
        }
    }

    /// Logs that a look at the schedules of a queue has failed; a permanent failure only once.
    pub(crate) fn log_failure(&mut self, shared: &Shared, queue: &Served, problem: &BrokerError) {
        let (name, problem) = (queue.name.clone(), problem.clone());
        let text = "could not serve the schedules of a queue";
        if problem.is_transient() {
            log_event!(shared.log, DEBUG, queue = %name, error = %problem, "{text}");
        } else if self.logged.insert(format!("{name}: {problem}")) {
            log_event!(shared.log, ERROR, queue = %name, error = %problem, "{text}");
        }
    }
}

fn log_moved(shared: &Shared, name: &str, queue: QueueName) {
    let (log, schedule) = (&shared.log, name.to_owned());
    let text = "removed a schedule from this queue: its task is in another one now";
    log_event!(log, INFO, %queue, schedule, "{text}");
}
