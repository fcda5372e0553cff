//! Who carries an operation on, step by step: [`Carrier`].

use std::{collections::HashSet, fmt, time::Duration};

use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::operations::unreadable;
use crate::{
    Error,
    broker::{Broker, BrokerError, Held, Refusal, Saved},
    id::QueueName,
    operation::{Operation, OperationAct, OperationState},
    operation_counted::Chunk,
    operation_error::OperationError,
    operation_progress::{About, FORM, Progress, read_progress},
    pace::Pace,
};

/// How long a carrier may be silent before another one goes on.
const LEASE: Duration = Duration::from_secs(10);
/// The lease of a carrier that leaves an operation which is over, and whose tasks have not all
/// asked. If it gave the lease back, nobody would go on.
const LEFT: Duration = Duration::from_millis(1);
/// How soon a caller looks again while another process carries the operation on.
const LOOK_AFTER: Duration = Duration::from_millis(250);

/// Why an operation that an earlier release has added is not carried on.
const EARLIER: &str = "an earlier release has added it, and did not keep which tasks it counts; \
                       begin it again";

/// Carries an operation on, step by step. Whatever happens to it between two steps, or in one, does
/// no harm: all that it knows is stored, and another carrier goes on from there.
pub struct Carrier {
    broker: Broker,
    slot: QueueName,
    id: String,
    held: Option<Hold>,
    pace: Pace,
    lease: Duration,
    /// How long the lease of another carrier still goes on, as it was when this one has asked.
    other: Option<Duration>,
}

impl fmt::Debug for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Carrier").field("operation", &self.id).finish_non_exhaustive()
    }
}

/// What a carrier knows while it holds the lease.
#[derive(Debug)]
pub(super) struct Hold {
    pub(super) fence: u64,
    pub(super) about: About,
    /// As it was stored last.
    pub(super) saved: Saved,
    /// The next to be stored.
    pub(super) progress: Progress,
    /// The queue that is stored, in which another carrier would look for changes.
    pub(super) stored_queue: Option<QueueName>,
    /// The queues, in order, once they are needed.
    pub(super) queues: Option<Vec<QueueName>>,
    /// Which tasks of the queue this carrier has counted: lists may have a task twice.
    pub(super) seen: HashSet<Uuid>,
    /// Which tasks of the list it has read.
    pub(super) listed: HashSet<Uuid>,
    /// Counted tasks that are not stored yet.
    pub(super) found: Vec<Chunk>,
    /// The counted tasks that are being changed, and their number.
    pub(super) chunk: Option<(u64, Chunk)>,
    /// Whether the next chunk is reached, and this is not stored yet.
    pub(super) has_reached: Option<u64>,
    pub(super) renewed: Instant,
}

impl Hold {
    /// Returns whether tasks that are requeued may still have to ask for what they wait for.
    fn owes_asks(&self) -> bool {
        let is_requeue = self.about.act == OperationAct::Requeue;
        is_requeue && self.progress.asked_chunk < self.progress.last_begun()
    }
}

/// What follows a step.
pub(super) enum After {
    /// Another step.
    More,
    /// Nothing in this state.
    Over,
}

/// Why a step was not done.
enum Stop {
    /// Another process carries the operation on, or it is not to be carried on.
    Elsewhere,
    Problem(BrokerError),
}

impl From<BrokerError> for Stop {
    fn from(problem: BrokerError) -> Self {
        match problem.refusal() {
            Some(Refusal::Stale | Refusal::WrongState) => Self::Elsewhere,
            _ => Self::Problem(problem),
        }
    }
}

impl Carrier {
    pub(super) fn new(broker: Broker, id: &str) -> Self {
        let (slot, id) = (Broker::operations_slot(), id.to_owned());
        Self { broker, slot, id, held: None, pace: Pace::default(), lease: LEASE, other: None }
    }

    /// Holds the operation for this long without a call, instead of 10 s.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// Counts or changes some tasks, rests, and returns how far the operation is. If another
    /// process carries it on, waits a moment instead.
    ///
    /// # Errors
    /// [`OperationError::Unknown`] if the operation is gone; [`OperationError::Store`].
    pub async fn step(&mut self) -> Result<Operation, OperationError> {
        match self.try_step().await {
            Ok(()) => {}
            Err(Stop::Elsewhere) => self.held = None,
            Err(Stop::Problem(problem)) => {
                self.held = None;
                return Err(OperationError::of(&self.id, "carried on", problem));
            }
        }
        if let Some(hold) = &self.held {
            return self.read(&hold.saved);
        }
        let saved = self.broker.operation(&self.slot, &self.id).await.map_err(Error::from)?;
        let saved = saved.ok_or_else(|| OperationError::Unknown { id: self.id.clone() })?;
        let operation = self.read(&saved)?;
        if matches!(operation.state, OperationState::Counting | OperationState::Running) {
            sleep(LOOK_AFTER).await;
        }
        Ok(operation)
    }

    /// Returns whether this process carries it on after the last step.
    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Returns how long the lease of another process still goes on, if the last step has found one.
    /// A process that lives renews it.
    pub fn other_lease(&self) -> Option<Duration> {
        self.other
    }

    /// Gives the lease back, so that another process can go on at once.
    pub async fn leave(mut self) {
        if let Some(mut hold) = self.held.take() {
            let is_over = OperationState::read(&hold.saved.state).is_over();
            let lease = if is_over && hold.owes_asks() { LEFT } else { Duration::ZERO };
            // If this fails, the lease ends by itself.
            drop(self.save(&mut hold, None, lease).await);
        }
    }

    fn read(&self, saved: &Saved) -> Result<Operation, OperationError> {
        Operation::read(&self.id, saved).map_err(|_| unreadable(&self.id).into())
    }

    async fn try_step(&mut self) -> Result<(), Stop> {
        let mut hold = match self.held.take() {
            Some(hold) => hold,
            None => self.take().await?,
        };
        if hold.renewed.elapsed() > self.lease / 2 {
            self.save(&mut hold, None, self.lease).await?;
        }
        let (state, begun) = (OperationState::read(&hold.saved.state), Instant::now());
        let done = match state {
            OperationState::Counting | OperationState::Running if hold.about.form != FORM => {
                Err(BrokerError::UnexpectedReply(EARLIER.to_owned()))
            }
            OperationState::Counting => self.changes().count(&mut hold).await,
            OperationState::Running => self.changes().change(&mut hold).await,
            _ => return self.end(hold).await,
        };
        let next = match (state, done) {
            (_, Ok(After::More)) => None,
            (OperationState::Counting, Ok(After::Over)) => Some(OperationState::Counted),
            (_, Ok(After::Over)) => Some(OperationState::Done),
            (_, Err(BrokerError::Rejected(why) | BrokerError::UnexpectedReply(why))) => {
                hold.progress.failure = Some(why);
                Some(OperationState::Failed)
            }
            (_, Err(problem)) => return Err(problem.into()),
        };
        let owes_asks = next == Some(OperationState::Failed) && hold.owes_asks();
        let is_last = next.is_some() && !owes_asks;
        let lease = if is_last { Duration::ZERO } else { self.lease };
        self.save(&mut hold, next, lease).await?;
        if next.is_none() && state == OperationState::Running {
            // What was changed is counted first.
            self.pace.rest(begun).await;
        }
        let is_over = is_last && hold.saved.state != OperationState::Cancelled.as_str();
        self.held = (!is_over).then_some(hold);
        Ok(())
    }

    /// Ends an operation that was cancelled or has failed: those of its tasks that are back ask for
    /// what they wait for. Otherwise they would do so after an hour.
    async fn end(&mut self, mut hold: Hold) -> Result<(), Stop> {
        let begun = Instant::now();
        let asked =
            if hold.owes_asks() { self.changes().ask(&mut hold).await } else { Ok(After::Over) };
        let after = match asked {
            // A repeat does not help.
            Err(BrokerError::Rejected(_) | BrokerError::UnexpectedReply(_)) => After::Over,
            after => after?,
        };
        match after {
            After::More => {
                self.save(&mut hold, None, self.lease).await?;
                self.pace.rest(begun).await;
                self.held = Some(hold);
                Ok(())
            }
            After::Over => {
                self.save(&mut hold, None, Duration::ZERO).await?;
                Err(Stop::Elsewhere)
            }
        }
    }

    fn changes(&self) -> super::operation_changes::Changes<'_> {
        let Self { broker, slot, id, pace, .. } = self;
        super::operation_changes::Changes { broker, slot, id, pace }
    }

    /// Takes the lease, and counts what an earlier carrier has changed and not counted.
    async fn take(&mut self) -> Result<Hold, Stop> {
        let taken = self.broker.operation_take(&self.slot, &self.id, self.lease).await;
        self.other = None;
        let (fence, saved) = match taken {
            Err(BrokerError::Refused(Refusal::Early, left)) => {
                self.other = left.parse().ok().map(Duration::from_millis);
                return Err(Stop::Elsewhere);
            }
            taken => taken?,
        };
        let problem = |_| BrokerError::NotDone(unreadable(&self.id).to_string());
        let about: About = serde_json::from_str(&saved.about).map_err(problem)?;
        let mut progress = read_progress(&saved).map_err(problem)?;
        let is_counting = saved.state == OperationState::Counting.as_str();
        let place = progress.place.clone().filter(|_| !is_counting);
        if let Some(place) = &place {
            let number = progress.batch + 1;
            let done = self.broker.operation_adopt(&place.queue, &self.id, fence, number).await?;
            progress.done += done;
            progress.batch = number;
        }
        let renewed = Instant::now();
        let stored_queue = progress.place.as_ref().map(|place| place.queue.clone());
        let (queues, found, chunk, has_reached) = (None, Vec::new(), None, None);
        let mut hold = Hold {
            fence,
            about,
            saved,
            progress,
            stored_queue,
            queues,
            seen: HashSet::new(),
            listed: HashSet::new(),
            found,
            chunk,
            has_reached,
            renewed,
        };
        if place.is_some() {
            self.save(&mut hold, None, self.lease).await?;
        }
        Ok(hold)
    }

    /// Stores how far the operation has come, and its next state if it changes.
    async fn save(
        &mut self,
        hold: &mut Hold,
        next: Option<OperationState>,
        lease: Duration,
    ) -> Result<(), BrokerError> {
        let numbers = hold.progress.chunks + 1..;
        let counted: Vec<_> = numbers.zip(hold.found.drain(..).map(|c| c.encode())).collect();
        hold.progress.chunks += counted.len() as u64;
        let progress = serde_json::to_string(&hold.progress)
            .map_err(|problem| BrokerError::UnexpectedReply(problem.to_string()))?;
        let from = hold.saved.state.clone();
        let stored = Held {
            fence: hold.fence,
            lease,
            from: &from,
            to: next.map_or(&from, |next| next.as_str()),
            matched: Some(hold.saved.matched),
            progress: &progress,
            reached: hold.has_reached,
            counted: &counted,
        };
        let begun = Instant::now();
        hold.saved = self.broker.operation_carry(&self.slot, &self.id, stored).await?;
        hold.progress.note_clock(hold.saved.now_ms);
        hold.has_reached = None;
        if hold.saved.state != from {
            // Some of its tasks may have been left out, because they were changed.
            hold.chunk = None;
        }
        self.pace.note(begun.elapsed());
        hold.stored_queue = hold.progress.place.as_ref().map(|place| place.queue.clone());
        hold.renewed = begun;
        Ok(())
    }
}
