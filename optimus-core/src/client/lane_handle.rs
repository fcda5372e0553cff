//! What an operator does with a lane: [`LaneHandle`].

use std::{fmt, num::NonZeroU16};

use super::{Client, GateHandle};
use crate::{
    Error, LaneCancelled,
    broker::{BrokerError, Refusal},
    gate::Gate,
    id::QueueName,
    lane::problem_of,
    operator_answers::{GateAnswer, WidthAnswer},
};

/// A lane of a queue, which can be paused, cancelled, and changed while workers run; from
/// [`Client::lane`].
#[derive(Clone)]
pub struct LaneHandle {
    client: Client,
    queue: String,
    key: String,
}

impl fmt::Debug for LaneHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queue, key, .. } = self;
        f.debug_struct("LaneHandle").field("queue", queue).field("key", key).finish_non_exhaustive()
    }
}

impl Client {
    /// Returns a handle for the lane with this key.
    ///
    /// ```no_run
    /// # async fn doc(client: &optimus_core::Client) -> Result<(), optimus_core::Error> {
    /// let shop = client.lane("sync", "shop-7");
    /// shop.set_width(8).await?; // eight tasks of this shop at once, whatever they bring along
    /// shop.reset_width().await?; // as their `lane_width` says again
    /// shop.pause("ann", "their API is down").await?;
    /// shop.cancel().await?; // all its tasks
    /// shop.resume().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn lane(&self, queue: impl AsRef<str>, key: impl Into<String>) -> LaneHandle {
        let (client, queue) = (self.clone(), queue.as_ref().to_owned());
        LaneHandle { client, queue, key: key.into() }
    }
}

impl LaneHandle {
    /// Sets how many tasks of the lane may run at once, instead of the width that its tasks bring
    /// along. The queue keeps it until it is [reset](Self::reset_width), also while the lane has no
    /// task. Returns the width that was set before, and whether the lane has tasks now.
    ///
    /// A larger width offers more of the waiting tasks at once. A smaller one takes nothing back:
    /// the next task starts when fewer than `width` have a permit.
    ///
    /// # Errors
    /// [`Error::is_invalid`] for the width 0, and for a key or a queue that can't exist;
    /// [`Error::is_unavailable`]; [`Error::is_unknown_outcome`] if the request was sent twice and
    /// not answered, which is safe to repeat. These are the errors of all methods here.
    pub async fn set_width(&self, width: u16) -> Result<WidthAnswer, Error> {
        let Some(width) = NonZeroU16::new(width) else {
            return Err(Error::invalid(format!(
                "the width of lane {:?} is 0; use at least 1, or pause the lane with \
                 client.lane(queue, key).pause(…)",
                self.key
            )));
        };
        self.resize(Some(width)).await
    }

    /// Removes the width that was set, so that the widths of the tasks apply again.
    ///
    /// # Errors
    /// As for [`set_width`](Self::set_width).
    pub async fn reset_width(&self) -> Result<WidthAnswer, Error> {
        self.resize(None).await
    }

    /// Reads the width that was set; `None` if the widths of the tasks apply.
    ///
    /// # Errors
    /// As for [`set_width`](Self::set_width).
    pub async fn width(&self) -> Result<Option<u16>, Error> {
        let queue = self.checked()?;
        let set = self.client.0.broker.width_set(&queue, &self.key).await?;
        Ok(set.map(NonZeroU16::get))
    }

    /// Stops the starts of its tasks at once; see [`GateHandle::pause`].
    ///
    /// # Errors
    /// As for [`set_width`](Self::set_width).
    pub async fn pause(&self, by: &str, why: &str) -> Result<GateAnswer, Error> {
        self.gate().pause(by, why).await
    }

    /// Ends a pause; see [`GateHandle::resume`].
    ///
    /// # Errors
    /// As for [`set_width`](Self::set_width).
    pub async fn resume(&self) -> Result<GateAnswer, Error> {
        self.gate().resume().await
    }

    /// Cancels all its tasks; see [`Client::cancel_lane`].
    ///
    /// # Errors
    /// The errors of [`Client::cancel_lane`].
    pub async fn cancel(&self) -> Result<LaneCancelled, Error> {
        self.client.cancel_lane(&self.queue, &self.key).await
    }

    /// Returns the gate of the lane, which reads and sets its rate and its limit.
    pub fn gate(&self) -> GateHandle {
        self.client.gate(&self.queue, Gate::Lane(self.key.clone()))
    }

    async fn resize(&self, width: Option<NonZeroU16>) -> Result<WidthAnswer, Error> {
        let (queue, broker) = (self.checked()?, &self.client.0.broker);
        let has_tasks = broker.gate_has_tasks(&queue, &Gate::Lane(self.key.clone())).await?;
        let resize = async || {
            let done = broker.resize(&queue, &self.key, width).await;
            done.map_err(|problem| self.failed(problem))
        };
        let first = resize().await?;
        let mut more = first.more;
        // Each call offers some tasks, and at most as many have a permit as the lane is wide.
        while more {
            more = resize().await?.more;
        }
        Ok(WidthAnswer { before: first.before.map(NonZeroU16::get), has_tasks })
    }

    fn checked(&self) -> Result<QueueName, Error> {
        match problem_of(&self.key) {
            Some(problem) => Err(Error::invalid(problem)),
            None => Ok(QueueName::new(&self.queue)?),
        }
    }

    fn failed(&self, problem: BrokerError) -> Error {
        match problem {
            BrokerError::Refused(Refusal::Newer, needs) => Error::outdated(&needs),
            BrokerError::Unknown(why) => {
                let what = format!("resize of lane {:?} of queue {}", self.key, self.queue);
                Error::unknown_operation(what, Vec::new(), why)
            }
            problem => problem.into(),
        }
    }
}
