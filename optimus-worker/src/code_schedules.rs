//! The schedules of the worker's own code, and how they are stored: [`CodeSchedules`].

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use optimus_core::{
    CheckedSchedule, Moment, QueueName, StoredAs,
    broker::{Broker, BrokerError, DueSchedule},
    log_event, store_schedule_at,
};
use tokio::time::Instant;

use crate::{logged_once::LoggedOnce, served_queue::Served, shared::Shared};

/// How long a schedule that the worker can't read, or that is in another queue, is left alone.
pub(crate) const ASK_AGAIN_AFTER: Duration = Duration::from_secs(15);
/// The most schedules that are left out because the worker can't read them. If there are more, the
/// others are looked at by chance.
const UNREAD_MAX: usize = 512;

/// The schedules of the code, by the queues that the worker serves.
pub(crate) struct CodeSchedules {
    /// The names, by the position of the queue.
    names: Vec<Vec<String>>,
    /// Those that can't be stored, because another schedule has the name.
    refused: BTreeSet<String>,
    /// Those that another program has in another queue, and when to look there again.
    elsewhere: BTreeMap<String, Instant>,
    /// Those of a queue, by its position, that this worker can't read, and when to try again.
    unread: BTreeMap<(usize, String), Instant>,
    /// When the worker has first stored its schedules, in ms of Redis' clock.
    started_ms: Option<u64>,
    logged: LoggedOnce<String>,
}

/// Whether the worker stores its schedules for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IsStart {
    Yes,
    No,
}

impl CodeSchedules {
    pub(crate) fn new(shared: &Shared) -> Self {
        let mut names: Vec<Vec<String>> = shared.queues.iter().map(|_| Vec::new()).collect();
        for schedule in shared.registry.schedules() {
            if let Some(place) = shared.queues.place(schedule.submission.id().queue()) {
                names[place].push(schedule.name.clone());
            }
        }
        let (refused, logged) = (BTreeSet::new(), LoggedOnce::default());
        let (elsewhere, unread) = (BTreeMap::new(), BTreeMap::new());
        Self { names, refused, elsewhere, unread, started_ms: None, logged }
    }

    /// Returns the names of the schedules in the queue at this position.
    pub(crate) fn names(&self, place: usize) -> &[String] {
        &self.names[place]
    }

    /// Returns what a look is about: the schedules of the code, and those that this worker can't
    /// read, which it leaves out until it tries them again.
    pub(crate) fn look(&mut self, place: usize) -> (Vec<String>, Vec<String>) {
        let now = Instant::now();
        self.unread.retain(|_, until| *until > now);
        let of_place = self.unread.keys().filter(|(at, _)| *at == place);
        let unread: Vec<String> = of_place.map(|(_, name)| name.clone()).collect();
        let is_read = |name: &&String| !unread.contains(*name);
        (self.names[place].iter().filter(is_read).cloned().collect(), unread)
    }

    /// Returns those of the missing schedules that shall be stored. One that another program has
    /// in another queue is asked for again after a while.
    pub(crate) fn wanted(&mut self, missing: Vec<String>) -> Vec<String> {
        let now = Instant::now();
        self.elsewhere.retain(|_, until| *until > now);
        missing.into_iter().filter(|name| !self.elsewhere.contains_key(name)).collect()
    }

    /// Stores these schedules of the code, for the queue at this position: at the start of the
    /// worker, and those that are not in the queue later. No longer ticks those that can't be
    /// stored.
    pub(crate) async fn store(
        &mut self,
        shared: &Shared,
        broker: &Broker,
        (place, names, is_start): (usize, &[String], IsStart),
    ) -> Result<(), BrokerError> {
        let started_ms = match self.started_ms {
            Some(started_ms) => started_ms,
            None => broker.now_ms().await?,
        };
        self.started_ms = Some(started_ms);
        let moment = match is_start {
            IsStart::Yes => Moment::Start(started_ms),
            IsStart::No => Moment::Later(started_ms),
        };
        let of_names = |schedule: &&CheckedSchedule| names.contains(&schedule.name);
        let schedules: Vec<_> = shared.registry.schedules().iter().filter(of_names).collect();
        if !schedules.is_empty() {
            // Other workers must see the queue before it has a schedule.
            broker.announce(&shared.queues[place].name).await?;
        }
        for schedule in schedules {
            let stored_as = store_schedule_at(broker, schedule, moment).await?;
            self.note(shared, schedule, stored_as);
        }
        let refused = &self.refused;
        self.names[place].retain(|name| !refused.contains(name));
        Ok(())
    }

    fn note(&mut self, shared: &Shared, schedule: &CheckedSchedule, stored_as: StoredAs) {
        let (log, name) = (&shared.log, schedule.name.clone());
        let release = schedule.release.clone().unwrap_or_default();
        match stored_as {
            StoredAs::Stored => {
                log_event!(log, INFO, schedule = name, release, "stored a schedule of the code");
            }
            StoredAs::Unchanged => {}
            StoredAs::Moved(queues) => {
                let queue = queues.iter().map(QueueName::as_str).collect::<Vec<_>>().join(", ");
                let text = "moved a schedule of the code from this queue to the one of its task";
                log_event!(log, INFO, queue, schedule = name, release, "{text}");
            }
            StoredAs::KeptElsewhere(queue) => {
                self.elsewhere.insert(name.clone(), Instant::now() + ASK_AGAIN_AFTER);
                if self.logged.is_new(format!("{name} is in {queue}").as_str()) {
                    let text = "a later program has this schedule in another queue, where it stays \
                                while a worker submits its tasks there";
                    log_event!(log, WARN, %queue, schedule = name, release, "{text}");
                }
            }
            StoredAs::Replaced => {
                let text = "another content of this schedule was stored under the same release; \
                            the worker that starts last decides: give each release its own version";
                log_event!(log, WARN, schedule = name, release, "{text}");
            }
            StoredAs::KeptNewer(stored) => {
                let text = "a later release has stored this schedule, which stays; after a return \
                            to an earlier release, once no worker of the later one runs, remove it \
                            with `optimus schedule remove` or Schedules::remove";
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

    /// Leaves out a schedule that this worker can't read, for a while. Returns whether the worker
    /// remembers that.
    pub(crate) fn leave_out(
        &mut self,
        shared: &Shared,
        (place, queue): (usize, &Served),
        (schedule, why): (&DueSchedule, &String),
    ) -> bool {
        let is_remembered = self.unread.len() < UNREAD_MAX;
        if is_remembered {
            let until = Instant::now() + ASK_AGAIN_AFTER;
            self.unread.insert((place, schedule.name.clone()), until);
        }
        let name = schedule.name.clone();
        if self.logged.is_new(format!("{}/{name}: {why}", queue.name).as_str()) {
            let (queue, error) = (queue.name.clone(), why.clone());
            let text = "this worker can't read a schedule, and leaves it to others: upgrade it";
            log_event!(shared.log, ERROR, %queue, schedule = name, error, "{text}");
        }
        is_remembered
    }

    /// Logs that a look at the schedules of a queue has failed; a permanent failure only once.
    pub(crate) fn log_failure(&mut self, shared: &Shared, queue: &Served, problem: &BrokerError) {
        let (name, problem) = (queue.name.clone(), problem.clone());
        let text = "could not serve the schedules of a queue";
        if problem.is_transient() {
            log_event!(shared.log, DEBUG, queue = %name, error = %problem, "{text}");
        } else if self.logged.is_new(format!("{name}: {problem}").as_str()) {
            log_event!(shared.log, ERROR, queue = %name, error = %problem, "{text}");
        }
    }
}
