//! Says what this process does, and obeys what operators ask of it: [`Attends`].

use std::{sync::Arc, time::Duration};

use optimus_core::{
    ProcessAbout, ProcessDoing, RUNNING_SHOWN, RunningTask, Wish,
    broker::{Attendance, Broker, BrokerError},
    log_event,
};
use tokio::time::Instant;

use crate::{
    attempts::Attempt,
    deadlines::HUNG_AFTER,
    role::Role,
    runtime_probe::RuntimeProbe,
    shared::Shared,
    vitals::{self, CpuUse},
};

/// How often a process attends that runs something.
const BUSY: Pace = Pace { every: Duration::from_secs(4), gone_after: Duration::from_secs(60) };
/// How often a process attends that runs nothing. Nothing changes meanwhile. A wish wakes it, and
/// each sign that Redis may have lost what it said: a lost lease, and a new connection.
const IDLE: Pace = Pace { every: Duration::from_secs(180), gone_after: Duration::from_secs(600) };
/// The wait varies by a quarter, so that processes do not attend together.
const VARIES: f64 = 0.25;
/// An idle process says that it runs something when it has run something for this time. Most tasks
/// have ended by then.
const BUSY_FOR: Duration = Duration::from_secs(1);
/// How long a worker that ends tries to leave the list.
const LEAVE_WITHIN: Duration = Duration::from_millis(500);

/// What the log says of a runtime that does not go on.
const BLOCKED: &str = "handlers block all threads of their runtime, so this worker starts no task: \
                       let them await, or make them plain `fn`s";

/// How often a process attends, and how long it is listed if it is not heard from.
#[derive(Clone, Copy)]
struct Pace {
    every: Duration,
    gone_after: Duration,
}

/// Returns whether no handler runs, and no round of a shard and no page of a source, all of which
/// may block the runtime.
fn runs_nothing(shared: &Shared) -> bool {
    shared.attempts.is_empty() && shared.posts.count() == 0
}

/// The role that attends.
pub(crate) struct Attends {
    shared: Arc<Shared>,
    broker: Broker,
    about: String,
    cpu: CpuUse,
    probe: RuntimeProbe,
    /// Whether the log says that the runtime is blocked.
    is_blocked: bool,
    /// The last wish that was obeyed, and its number.
    obeyed: (u64, String),
    /// When it attends next at the latest.
    next: Instant,
    /// Whether it has said that nothing runs, and nothing has run for long since then.
    rests: bool,
    /// Since when an idle process runs something again.
    busy_since: Option<Instant>,
    /// How many connections there had been when it attended last.
    connects: u64,
}

impl Attends {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let broker = shared.maintenance.clone();
        let about = about(&shared);
        let (cpu, probe, next) = (CpuUse::default(), RuntimeProbe::default(), Instant::now());
        let is_blocked = false;
        let (obeyed, rests, busy_since, connects) = ((0, String::new()), false, None, 0);
        Self {
            shared,
            broker,
            about,
            cpu,
            probe,
            is_blocked,
            obeyed,
            next,
            rests,
            busy_since,
            connects,
        }
    }

    /// Returns how long it may rest; `None` if it must attend now.
    fn rest(&mut self) -> Option<Duration> {
        if self.shared.wakeups.take_attends_now() {
            return None;
        }
        let now = Instant::now();
        let until_next = Some(self.next.duration_since(now)).filter(|rest| !rest.is_zero());
        let sleeper = &self.shared.wakeups.attendance;
        let is_idle = || runs_nothing(&self.shared);
        if !self.rests {
            return until_next;
        }
        // After a failover, the server may lack what was said last.
        if self.broker.connects() != self.connects {
            return None;
        }
        if is_idle() && sleeper.fall_asleep(is_idle) {
            self.busy_since = None;
            return until_next;
        }
        let busy_for = now.duration_since(*self.busy_since.get_or_insert(now));
        let until_busy = BUSY_FOR.saturating_sub(busy_for);
        until_next.map(|rest| rest.min(until_busy)).filter(|rest| !rest.is_zero())
    }

    /// Returns whether a new wish was there.
    async fn attend(&mut self) -> Result<bool, BrokerError> {
        let doing = self.doing();
        let is_idle = doing.busy == 0 && self.shared.posts.count() == 0;
        let pace = if is_idle { IDLE } else { BUSY };
        // A call that fails is soon repeated.
        self.next = Instant::now() + BUSY.wait();
        (self.rests, self.busy_since) = (false, None);
        let doing = serde_json::to_string(&doing).expect("plain fields");
        let attendance = Attendance {
            id: &self.shared.member,
            gone_after: pace.gone_after,
            description: &self.about,
            doing: &doing,
        };
        let (number, wish) = self.broker.attend(&Broker::fleet(), attendance).await?;
        self.connects = self.broker.connects();
        // After a failover that lost the last wish, an earlier one is the last, and was obeyed; a
        // later one may have the number of the lost one.
        let (last, obeyed) = &self.obeyed;
        let is_new = number > *last || (number == *last && wish != *obeyed);
        if let Some(wish) = Wish::read(&wish).filter(|_| is_new) {
            self.obey(wish);
        }
        self.obeyed = (number, wish);
        self.next = Instant::now() + pace.wait();
        self.rests = is_idle;
        Ok(is_new)
    }

    fn obey(&self, wish: Wish) {
        let Shared { slots, shutdown, config, log, .. } = &*self.shared;
        match wish {
            Wish::Quiet => slots.allow(0),
            Wish::Resume => slots.allow(config.concurrency),
            Wish::Slots(count) => slots.allow(count),
            Wish::Stop => shutdown.begin(),
        }
        let (wish, allowed) = (format!("{wish:?}").to_lowercase(), slots.allowed());
        log_event!(log, INFO, wish, slots = allowed, "an operator has asked this process");
    }

    fn doing(&mut self) -> ProcessDoing {
        let Shared { slots, attempts, .. } = &*self.shared;
        let mut doing = ProcessDoing::default();
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let now = Instant::now().into_std();
        // The calls of a run have the timeout and the handler of the first one.
        let late = |attempt: &Attempt| {
            let late = now.saturating_duration_since(attempt.limit());
            (late > HUNG_AFTER && !attempt.follows()).then_some(late)
        };
        (doing.slots, doing.busy) = (slots.allowed(), slots.busy());
        let mut running = attempts.snapshot();
        running.retain(|attempt| !attempt.is_settled());
        running.append(&mut attempts.late.all());
        running.sort_by_key(|attempt| {
            (late(attempt).is_none(), attempt.claimed_ms, attempt.lease.id.uuid())
        });
        doing.running = running
            .iter()
            .take(RUNNING_SHOWN)
            .map(|attempt| {
                let (id, facts) = (&attempt.lease.id, &attempt.facts);
                let since_ms = attempt.claimed_ms;
                let mut task = RunningTask::new(id, facts.task, facts.attempt, since_ms);
                task.progress = attempt.ctx.last_progress();
                task.late_ms = late(attempt).map(ms);
                task
            })
            .collect();
        doing.rss_bytes = vitals::rss_bytes();
        doing.cpu = self.cpu.measure(vitals::cpu_time(), Instant::now());
        doing.blocked_ms = self.blocked().map(ms);
        doing
    }

    /// Returns for how long the handlers have blocked all threads of their runtime, and logs the
    /// begin and the end of it.
    fn blocked(&mut self) -> Option<Duration> {
        let Shared { runtime, log, .. } = &*self.shared;
        let blocked = self.probe.look(runtime, Instant::now());
        if blocked.is_some() != self.is_blocked {
            self.is_blocked = blocked.is_some();
            match blocked {
                Some(time) => log_event!(log, WARN, blocked_s = time.as_secs(), "{BLOCKED}"),
                None => log_event!(log, INFO, "the runtime of the handlers goes on"),
            }
        }
        blocked
    }

    /// Leaves the list of processes.
    pub(crate) async fn leave(&self) {
        let (broker, fleet) = (self.broker.within(LEAVE_WITHIN), Broker::fleet());
        let leaving = broker.leave_fleet(&fleet, &self.shared.member);
        if !matches!(tokio::time::timeout(LEAVE_WITHIN, leaving).await, Ok(Ok(()))) {
            let text = "could not leave the list of processes; it forgets this one by itself";
            log_event!(self.shared.log, DEBUG, "{text}");
        }
    }
}

/// Returns what does not change, as JSON.
fn about(shared: &Shared) -> String {
    // The description of the worker has the same facts, and more.
    let mut about: ProcessAbout = serde_json::from_str(&shared.description).unwrap_or_default();
    env!("CARGO_PKG_VERSION").clone_into(&mut about.version);
    serde_json::to_string(&about).expect("plain fields")
}

impl Pace {
    fn wait(self) -> Duration {
        self.every.mul_f64(1.0 + VARIES * fastrand::f64())
    }
}

impl Role for Attends {
    async fn tick(&mut self) -> Duration {
        if let Some(rest) = self.rest() {
            return rest;
        }
        match self.attend().await {
            Ok(false) => {}
            // Operators see at once that it was obeyed.
            Ok(true) => self.next = Instant::now(),
            Err(problem) => {
                let text = "could not tell operators what this process does";
                log_event!(self.shared.log, DEBUG, error = %problem, "{text}");
            }
        }
        Duration::ZERO
    }
}
