//! Changes of many tasks: [`Operations`].

use std::{fmt, time::Duration};

use tokio::time::Instant;

use super::{Client, operation_carrier::Carrier};
use crate::{
    Error,
    broker::{Broker, BrokerError, Refusal},
    operation::{Operation, OperationAct, OperationState},
    operation_error::OperationError,
    operation_filter::OperationFilter,
    operation_progress::{About, FORM},
    platform,
};

/// How many operations are kept.
const KEPT: usize = 100;
/// How long `count` counts before it leaves the rest to others.
const COUNT_WITHIN: Duration = Duration::from_secs(2);
/// How long `cancel` lets tasks ask before it leaves the rest to others.
const END_WITHIN: Duration = Duration::from_secs(2);
/// The longest text of a person, in bytes.
const TEXT_BYTES_MAX: usize = 1_024;

/// Changes many tasks, in steps; from [`Client::operations`].
///
/// An *operation* counts the tasks that match a filter, and keeps which they are. When somebody has
/// confirmed the number, it changes those, and no others. A task that is no longer as it was
/// counted, because it has left these states or has ended or failed once more, stays as it is, and
/// is counted as [gone](Operation::gone). The operation is stored, so any process
/// can carry it on: one that calls [`carry`](Self::carry), or a worker, within three minutes. If
/// that process is killed, another one goes on, and no task is changed twice. Its pace follows the
/// time that Redis takes to answer, so other callers hardly notice it.
///
/// ```
/// # use optimus_core as optimus;
/// use optimus::{Client, OperationAct, OperationError, OperationFilter, TaskState};
///
/// async fn retry_all(client: &Client) -> Result<u64, OperationError> {
///     let operations = client.operations();
///     let filter = OperationFilter::of(TaskState::Dead).queue("mail")?.task("welcome");
///     let mut operation = operations.count(OperationAct::Requeue, filter, "ann").await?;
///     // A long count goes on.
///     operation = operations.carry(&operation.id).await?;
///     println!("{}", operation.text());
///     operations.confirm(&operation.id, operation.matched, "the mail server is back").await?;
///     Ok(operations.carry(&operation.id).await?.done)
/// }
/// ```
#[derive(Clone)]
pub struct Operations {
    pub(super) broker: Broker,
}

impl fmt::Debug for Operations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let store = self.broker.endpoint().describe();
        f.debug_struct("Operations").field("store", &store).finish_non_exhaustive()
    }
}

impl Client {
    /// Changes many tasks, in steps.
    pub fn operations(&self) -> Operations {
        Operations::of(self.broker())
    }
}

impl Operations {
    /// For the other Optimus crates.
    #[doc(hidden)]
    pub fn of(broker: &Broker) -> Self {
        Self { broker: broker.clone() }
    }

    /// Stores an operation, and counts its tasks; nothing changes. After 2 s it returns the
    /// operation in the state [`Counting`](OperationState::Counting), and [`carry`](Self::carry) or
    /// a worker counts the rest. `who` is shown with the operation.
    ///
    /// Until the operation is over, Redis keeps 22 bytes for each task that matches. The last 100
    /// operations are kept. A new one removes the oldest that is over or was not confirmed; those
    /// that match no task leave first.
    ///
    /// # Errors
    /// [`OperationError::Store`]: [`Error::is_invalid`] if no task in a state of the filter can be
    /// changed so, or a text is longer than 1 KiB; [`Error::is_unavailable`].
    /// [`OperationError::TooMany`] if 100 are under way.
    pub async fn count(
        &self,
        act: OperationAct,
        filter: OperationFilter,
        who: impl Into<String>,
    ) -> Result<Operation, OperationError> {
        self.count_because(act, filter, who, "").await
    }

    /// Counts as [`count`](Self::count) does. `reason` is shown with the operation, unless
    /// [`confirm`](Self::confirm) is given another one.
    ///
    /// # Errors
    /// As of [`count`](Self::count).
    pub async fn count_because(
        &self,
        act: OperationAct,
        filter: OperationFilter,
        who: impl Into<String>,
        reason: impl Into<String>,
    ) -> Result<Operation, OperationError> {
        let id = self.add(act, filter, who, reason).await?;
        let (mut carrier, begun) = (self.carrier(&id), Instant::now());
        loop {
            let operation = carrier.step().await?;
            if operation.state != OperationState::Counting || begun.elapsed() > COUNT_WITHIN {
                carrier.leave().await;
                return Ok(operation);
            }
        }
    }

    /// Stores an operation whose tasks are still to be counted, and returns its id. For the other
    /// Optimus crates.
    #[doc(hidden)]
    pub async fn add(
        &self,
        act: OperationAct,
        filter: OperationFilter,
        who: impl Into<String>,
        reason: impl Into<String>,
    ) -> Result<String, OperationError> {
        let reason = short(reason.into())?;
        let (filter, who) = (filter.checked(act)?, short(who.into())?);
        let about = About { act, filter, who, form: FORM };
        let about = serde_json::to_string(&about).map_err(|why| Error::invalid(why.to_string()))?;
        let id = new_id();
        let (slot, about) = (Broker::operations_slot(), (&*about, &*reason));
        let added = self.broker.operation_add(&slot, &id, about, KEPT).await;
        added.map_err(|problem| match problem {
            BrokerError::Refused(Refusal::WrongState, _) => OperationError::TooMany,
            problem => OperationError::Store(problem.into()),
        })?;
        Ok(id)
    }

    /// Lets a counted operation change its tasks, if `expect` is the number that it has counted.
    /// [`carry`](Self::carry) or a worker does it. `reason` is shown with the operation; if it
    /// is empty, the one with which it was counted is. To repeat a call does no harm.
    ///
    /// Anybody can confirm it, also another process, within a day after it was counted
    /// ([`Operation::confirm_until`]). It changes only the tasks that it has counted.
    ///
    /// # Errors
    /// [`OperationError::Unexpected`] if it has counted another number; [`OperationError::Late`]
    /// if it was counted more than a day ago;
    /// [`OperationError::WrongState`] if it is not counted yet, or was cancelled;
    /// [`OperationError::Unknown`]; [`OperationError::Store`].
    pub async fn confirm(
        &self,
        id: &str,
        expect: u64,
        reason: impl Into<String>,
    ) -> Result<Operation, OperationError> {
        let reason = short(reason.into())?;
        let slot = Broker::operations_slot();
        let confirmed = self.broker.operation_confirm(&slot, checked(id)?, expect, &reason).await;
        confirmed.map_err(|problem| match problem {
            BrokerError::Refused(Refusal::Stale, matched) => OperationError::Unexpected {
                id: id.to_owned(),
                matched: matched.parse().unwrap_or_default(),
                expected: expect,
            },
            BrokerError::Refused(Refusal::Forgotten, _) => {
                OperationError::Late { id: id.to_owned() }
            }
            problem => OperationError::of(id, "confirmed", problem),
        })?;
        self.seen(id).await
    }

    /// Cancels an operation that is not over. Its carrier stops after at most 32 more tasks. What
    /// was changed stays changed. Tasks that it has requeued, and that wait for others, ask then
    /// whether these have ended. The carrier lets them ask, or this call if there is none; after
    /// 2 s it leaves the rest to a worker. To repeat a call does no harm.
    ///
    /// # Errors
    /// [`OperationError::WrongState`] if it is done or has failed; [`OperationError::Unknown`];
    /// [`OperationError::Store`].
    pub async fn cancel(&self, id: &str) -> Result<Operation, OperationError> {
        let cancelled =
            self.broker.operation_cancel(&Broker::operations_slot(), checked(id)?).await;
        cancelled.map_err(|problem| OperationError::of(id, "cancelled", problem))?;
        let (mut carrier, begun) = (self.carrier(id), Instant::now());
        // It is cancelled, whatever keeps this process from ending it.
        while carrier.step().await.is_ok() && carrier.is_held() && begun.elapsed() < END_WITHIN {}
        carrier.leave().await;
        self.seen(id).await
    }

    /// Reads an operation; `None` if there is none of this id.
    ///
    /// # Errors
    /// [`OperationError::Store`].
    pub async fn get(&self, id: &str) -> Result<Option<Operation>, OperationError> {
        match self.seen(id).await {
            Ok(operation) => Ok(Some(operation)),
            Err(OperationError::Unknown { .. }) => Ok(None),
            Err(problem) => Err(problem),
        }
    }

    /// Reads the latest operations, the latest first; at most 100 are kept.
    ///
    /// # Errors
    /// [`OperationError::Store`].
    pub async fn list(&self, limit: usize) -> Result<Vec<Operation>, OperationError> {
        let found = self.broker.operations(&Broker::operations_slot(), limit).await;
        let found = found.map_err(Error::from)?;
        // An operation of a later release may not be readable.
        Ok(found.iter().filter_map(|(id, saved)| Operation::read(id, saved).ok()).collect())
    }

    /// Carries an operation on until it is counted, if it counts, or until it is over. If another
    /// process carries it on, waits for that, and goes on if that process is gone. To drop the
    /// future does no harm: a worker goes on within three minutes.
    ///
    /// # Errors
    /// [`OperationError::Unknown`]; [`OperationError::Store`]. Then it can be called again.
    pub async fn carry(&self, id: &str) -> Result<Operation, OperationError> {
        let mut carrier = self.carrier(checked(id)?);
        loop {
            let operation = carrier.step().await?;
            let is_under_way =
                matches!(operation.state, OperationState::Counting | OperationState::Running);
            // What was cancelled or has failed may have requeued tasks, which ask first.
            if !is_under_way && !carrier.is_held() {
                return Ok(operation);
            }
        }
    }

    /// Carries an operation on by one step, which changes at most 32 tasks, unless another process
    /// does.
    ///
    /// # Errors
    /// As of [`carry`](Self::carry).
    pub async fn carry_once(&self, id: &str) -> Result<Operation, OperationError> {
        let mut carrier = self.carrier(checked(id)?);
        let operation = carrier.step().await;
        carrier.leave().await;
        operation
    }

    /// Returns who carries an operation on step by step; for the other Optimus crates.
    #[doc(hidden)]
    pub fn carrier(&self, id: &str) -> Carrier {
        Carrier::new(self.broker.clone(), id)
    }

    async fn seen(&self, id: &str) -> Result<Operation, OperationError> {
        let found = self.broker.operation(&Broker::operations_slot(), checked(id)?).await;
        match found.map_err(Error::from)? {
            Some(saved) => Operation::read(id, &saved).map_err(|_| unreadable(id).into()),
            None => Err(OperationError::Unknown { id: id.to_owned() }),
        }
    }
}

/// The error for an operation that a later release has stored.
pub(super) fn unreadable(id: &str) -> Error {
    Error::invalid(format!("operation {id} can't be read; a later release has made it"))
}

/// Refuses what can't be the id of an operation.
fn checked(id: &str) -> Result<&str, OperationError> {
    let is_id = (1..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_id.then_some(id).ok_or_else(|| OperationError::Unknown {
        id: id.chars().filter(|c| !c.is_control()).take(64).collect(),
    })
}

fn short(text: String) -> Result<String, Error> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(Error::invalid("a name or a reason is longer than 1 KiB"));
    }
    Ok(text)
}

/// Returns twelve random characters.
fn new_id() -> String {
    format!("{:012x}", platform::new_uuid().as_u128() & 0xffff_ffff_ffff)
}
