//! Hands out items to people and programs that are not workers: [`Dispenser`].

use std::{fmt, time::Duration};

use super::{Client, rebuild::Rebuild};
use crate::{
    Error,
    broker::{Broker, BrokerError, ByAssignee, DISPENSER_PAGE, HoldTimes, Refusal, RequestName},
    dispenser::{
        ASSIGNEE_BYTES_MAX, Added, AssignedRow, AssigneeRow, DispenserDetails, HELD_MAX, Held,
        Item, ItemPlace, OpenRow, Settled, check_id,
    },
    dispenser_error::{DispenserError, ONCE_BYTES_MAX},
    id::QueueName,
};

/// How long an assignee may be silent, unless [`Dispenser::hold`] sets another time.
const HOLD: Duration = Duration::from_secs(10 * 60);

/// How long an assignee may keep an item, unless [`Dispenser::hold_max`] sets another time.
const HOLD_MAX: Duration = Duration::from_secs(60 * 60);

/// The longest of both times.
const TIME_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A pool of items that are handed out to *assignees*: people in a review tool, or programs that
/// are not workers. From [`Client::dispenser`].
///
/// An item is in exactly one place: in the pool, with one assignee, or done. The pool is ordered by
/// how long the items wait, and a priority counts as minutes of waiting. An item goes back to its
/// place in the pool if its assignee gives it back, does not call for [`hold`](Self::hold), or has
/// kept it for [`hold_max`](Self::hold_max).
///
/// All times are those of Redis' clock. All programs that use a dispenser should use the same
/// times, because each call applies its own.
#[derive(Clone)]
pub struct Dispenser {
    pub(super) client: Client,
    name: String,
    times: HoldTimes,
    pub(super) once: Option<String>,
    caller: Option<String>,
}

impl fmt::Debug for Dispenser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispenser")
            .field("name", &self.name)
            .field("hold", &self.times.hold)
            .field("hold_max", &self.times.hold_max)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Returns the dispenser of this name, which exists once it has an item.
    ///
    /// ```
    /// # use optimus_core as optimus;
    /// use optimus::{Client, Item};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = Client::connect("memory://dispenser").await?;
    /// let review = client.dispenser("review");
    /// review.add([Item::new("photo-1"), Item::new("photo-2").priority(5)]).await?;
    /// let mine = review.assign("ann", 20).await?;
    /// assert_eq!(mine.ids().collect::<Vec<_>>(), ["photo-2", "photo-1"]);
    /// let finished = review.done("ann", ["photo-2"]).await?;
    /// finished.all()?;
    /// assert_eq!(review.peek().await?.assigned, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn dispenser(&self, name: impl Into<String>) -> Dispenser {
        let times = HoldTimes { hold: HOLD, hold_max: HOLD_MAX };
        Dispenser { client: self.clone(), name: name.into(), times, once: None, caller: None }
    }
}

impl Dispenser {
    /// Sets how long an assignee may be silent. Then all its items go back to the pool. Each
    /// [`assign`](Self::assign), [`check`](Self::check), [`done`](Self::done) and
    /// [`give_back`](Self::give_back) renews the time. The default is 10 minutes.
    pub fn hold(mut self, hold: Duration) -> Self {
        self.times.hold = hold;
        self
    }

    /// Sets how long an assignee may keep an item, whatever it calls. Then the item goes back to
    /// the pool, and others may take it: the assignee does not get it again within `hold`. The
    /// default is 1 hour.
    pub fn hold_max(mut self, hold_max: Duration) -> Self {
        self.times.hold_max = hold_max;
        self
    }

    /// Names the next request, so that a repeat under the same name within an hour gets the same
    /// answer and changes nothing: for a caller that may repeat a request long after it was sent.
    /// It applies to [`add`](Self::add), [`assign`](Self::assign), [`done`](Self::done),
    /// [`give_back`](Self::give_back), [`release`](Self::release), and the requests of a
    /// [`Rebuild`]. Each assignee has its own names.
    pub fn once(mut self, name: impl Into<String>) -> Self {
        self.once = Some(name.into());
        self
    }

    /// Does as [`once`](Self::once) for a request that is not the assignee's own: an operator who
    /// releases an assignee. Each such caller has its own names, too, apart from all assignees.
    pub fn once_by(mut self, caller: impl Into<String>, name: impl Into<String>) -> Self {
        self.caller = Some(caller.into());
        self.once(name)
    }

    /// Returns the name of the dispenser.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds items to the pool, 500 for each call of Redis; one item is `add(["photo-1"])`. An item
    /// that is known keeps its place, or moves forward if its new priority is higher. An item that
    /// was finished within the last hour does not come back.
    ///
    /// # Errors
    /// [`DispenserError::ItemLength`] and [`DispenserError::Priority`] before anything is added;
    /// [`DispenserError::OnceReused`]; [`DispenserError::Store`] if Redis can't be reached or is
    /// full. A repeat adds nothing twice.
    pub async fn add<I: Into<Item>>(
        &self,
        items: impl IntoIterator<Item = I>,
    ) -> Result<Added, DispenserError> {
        let (slot, items) = (self.slot()?, checked_items(items)?);
        let mut sum = Added::default();
        for (number, page) in items.chunks(DISPENSER_PAGE).enumerate() {
            let name = self.name_of(number)?;
            let added = self.broker().dispenser_add(&slot, self.request(&name), page).await;
            sum = sum.and(added.map_err(|problem| self.failed("add", problem))?);
        }
        self.client.tell_dispenser(&slot).await;
        Ok(sum)
    }

    /// Lets the assignee hold up to `count` items, and returns all that it holds. What it holds
    /// already comes first, so a repeat assigns nothing more. If it holds more than `count`, the
    /// last ones go back to the pool.
    ///
    /// An item that the assignee has given back or kept for [`hold_max`](Self::hold_max) is left to
    /// others for [`hold`](Self::hold).
    ///
    /// # Errors
    /// [`DispenserError::TooMany`] above 500; [`DispenserError::AssigneeLength`];
    /// [`DispenserError::OnceReused`]; [`DispenserError::Store`].
    pub async fn assign(&self, assignee: &str, count: usize) -> Result<Held, DispenserError> {
        if count > HELD_MAX {
            return Err(DispenserError::TooMany { given: count });
        }
        let (slot, once) = (self.slot()?, self.name_of(0)?);
        let by = self.by(&slot, assignee, &once)?;
        let held = self.broker().dispenser_assign(by, count).await;
        held.map_err(|problem| self.failed("assign", problem))
    }

    /// Renews the assignee, and returns what it holds. [`Held::are_exactly`] compares that with
    /// what the assignee believes to hold.
    ///
    /// # Errors
    /// [`DispenserError::AssigneeLength`]; [`DispenserError::Store`].
    pub async fn check(&self, assignee: &str) -> Result<Held, DispenserError> {
        let slot = self.slot()?;
        let held = self.broker().dispenser_check(self.by(&slot, assignee, "")?).await;
        held.map_err(|problem| self.failed("check", problem))
    }

    /// Ends items that the assignee holds. They are remembered for an hour, so that no rebuild
    /// brings them back, and a repeat gets the same answer. Items that the assignee does not hold
    /// any more are refused one by one; the others are done.
    ///
    /// # Errors
    /// [`DispenserError::ItemLength`] and [`DispenserError::AssigneeLength`] before anything is
    /// done; [`DispenserError::OnceReused`]; [`DispenserError::Store`].
    pub async fn done<I: AsRef<str>>(
        &self,
        assignee: &str,
        ids: impl IntoIterator<Item = I>,
    ) -> Result<Settled, DispenserError> {
        let (slot, ids) = (self.slot()?, checked_ids(ids)?);
        let mut settled = Settled::default();
        for (number, page) in ids.chunks(DISPENSER_PAGE).enumerate() {
            let once = self.name_of(number)?;
            let places = self.broker().dispenser_done(self.by(&slot, assignee, &once)?, page).await;
            let places = places.map_err(|problem| self.failed("done", problem))?;
            settle(&mut settled, page, places, ItemPlace::Done);
        }
        Ok(settled)
    }

    /// Gives items back to the pool, at the places that they had. Others may take them: the
    /// assignee does not get them again within [`hold`](Self::hold).
    ///
    /// # Errors
    /// As for [`done`](Self::done).
    pub async fn give_back<I: AsRef<str>>(
        &self,
        assignee: &str,
        ids: impl IntoIterator<Item = I>,
    ) -> Result<Settled, DispenserError> {
        let (slot, ids) = (self.slot()?, checked_ids(ids)?);
        let mut settled = Settled::default();
        for (number, page) in ids.chunks(DISPENSER_PAGE).enumerate() {
            let once = self.name_of(number)?;
            let by = self.by(&slot, assignee, &once)?;
            let places = self.broker().dispenser_return(by, page).await;
            let places = places.map_err(|problem| self.failed("give_back", problem))?;
            settle(&mut settled, page, places, ItemPlace::Open);
        }
        Ok(settled)
    }

    /// Gives all items of an assignee back at once, as when it logs off. It may get them again.
    ///
    /// # Errors
    /// [`DispenserError::AssigneeLength`]; [`DispenserError::Store`].
    pub async fn release(&self, assignee: &str) -> Result<(), DispenserError> {
        self.assign(assignee, 0).await.map(drop)
    }

    /// Begins to make the pool what your database lists, while the pool is in use; see [`Rebuild`].
    /// Read the database after this call. A rebuild that is open ends.
    ///
    /// # Errors
    /// [`DispenserError::Store`].
    pub async fn rebuild(&self) -> Result<Rebuild, DispenserError> {
        Rebuild::begin(self.clone()).await
    }

    /// Continues a [`Rebuild`] that another part of the program, or another program, has begun.
    pub fn rebuild_of(&self, id: impl Into<String>) -> Rebuild {
        Rebuild::of(self.clone(), id.into())
    }

    /// Counts items and assignees. Items whose time is over have returned to the pool before.
    ///
    /// # Errors
    /// [`DispenserError::Store`].
    pub async fn peek(&self) -> Result<DispenserDetails, DispenserError> {
        let counts = self.broker().dispenser_counts(&self.slot()?, self.times).await;
        let counts = counts.map_err(|problem| self.failed("peek", problem))?;
        let wait = |(rank, now): (i64, i64)| {
            Duration::from_millis(u64::try_from(now - rank).unwrap_or_default())
        };
        let is_empty = counts.open == 0 && counts.assigned == 0;
        Ok(DispenserDetails {
            is_known: !is_empty || self.is_listed().await?,
            open: counts.open,
            assigned: counts.assigned,
            assignees: counts.assignees,
            first_waits: counts.first.map(wait),
            is_rebuilding: counts.is_rebuilding,
        })
    }

    /// Reads up to `limit` items of the pool in their order, after the first `skip`.
    ///
    /// # Errors
    /// [`DispenserError::PageLength`]; [`DispenserError::Store`].
    pub async fn open_items(
        &self,
        skip: usize,
        limit: usize,
    ) -> Result<Vec<OpenRow>, DispenserError> {
        let page = checked_page(skip, limit)?;
        let rows = self.broker().dispenser_open(&self.slot()?, self.times, page).await;
        rows.map_err(|problem| self.failed("peek", problem))
    }

    /// Reads up to `limit` items with assignees, after the first `skip`. The one whose time is over
    /// first comes first.
    ///
    /// # Errors
    /// As for [`open_items`](Self::open_items).
    pub async fn assigned_items(
        &self,
        skip: usize,
        limit: usize,
    ) -> Result<Vec<AssignedRow>, DispenserError> {
        let page = checked_page(skip, limit)?;
        let rows = self.broker().dispenser_assigned(&self.slot()?, self.times, page).await;
        rows.map_err(|problem| self.failed("peek", problem))
    }

    /// Reads up to `limit` assignees, after the first `skip`. The one that is over first comes
    /// first.
    ///
    /// # Errors
    /// As for [`open_items`](Self::open_items).
    pub async fn assignees(
        &self,
        skip: usize,
        limit: usize,
    ) -> Result<Vec<AssigneeRow>, DispenserError> {
        let page = checked_page(skip, limit)?;
        let rows = self.broker().dispenser_assignees(&self.slot()?, self.times, page).await;
        rows.map_err(|problem| self.failed("peek", problem))
    }

    pub(super) fn broker(&self) -> &Broker {
        &self.client.0.broker
    }

    /// Checks the settings, and returns the slot of the dispenser.
    pub(super) fn slot(&self) -> Result<QueueName, DispenserError> {
        for (what, time) in [("hold", self.times.hold), ("hold_max", self.times.hold_max)] {
            if time < Duration::from_millis(1) || time > TIME_MAX {
                return Err(DispenserError::HoldTime { what, time });
            }
        }
        Ok(QueueName::of_dispenser(&self.name)?)
    }

    /// Returns the name of a page of the request; empty if it has none.
    pub(super) fn name_of(&self, page: usize) -> Result<String, DispenserError> {
        if let Some(bytes) = self.caller.as_ref().map(String::len)
            && !(1..=ASSIGNEE_BYTES_MAX).contains(&bytes)
        {
            return Err(DispenserError::AssigneeLength { bytes });
        }
        match self.once.as_deref() {
            Some(once) if !(1..=ONCE_BYTES_MAX).contains(&once.len()) => {
                Err(DispenserError::OnceLength { bytes: once.len() })
            }
            Some(once) => Ok(format!("{page}:{once}")),
            None => Ok(String::new()),
        }
    }

    pub(super) fn request<'a>(&'a self, name: &'a str) -> RequestName<'a> {
        RequestName::of(self.caller.as_deref(), name)
    }

    fn by<'a>(
        &'a self,
        slot: &'a QueueName,
        assignee: &'a str,
        once: &'a str,
    ) -> Result<ByAssignee<'a>, DispenserError> {
        let once = self.request(once);
        match assignee.len() {
            1..=ASSIGNEE_BYTES_MAX => Ok(ByAssignee { slot, assignee, times: self.times, once }),
            bytes => Err(DispenserError::AssigneeLength { bytes }),
        }
    }

    pub(super) fn failed(&self, verb: &str, problem: BrokerError) -> DispenserError {
        match (problem.refusal(), problem) {
            (Some(Refusal::Stale), _) => DispenserError::RebuildEnded,
            (Some(Refusal::Reused), _) => {
                DispenserError::OnceReused { name: self.once.clone().unwrap_or_default() }
            }
            (_, BrokerError::Unknown(why)) => {
                let what = format!("{verb} of the dispenser {}", self.name);
                Error::unknown_operation(what, Vec::new(), why).into()
            }
            (_, problem) => Error::from(problem).into(),
        }
    }
}

pub(super) fn checked_items<I: Into<Item>>(
    items: impl IntoIterator<Item = I>,
) -> Result<Vec<Item>, DispenserError> {
    let items: Vec<Item> = items.into_iter().map(Into::into).collect();
    items.iter().try_for_each(Item::check)?;
    Ok(items)
}

fn checked_ids<I: AsRef<str>>(
    ids: impl IntoIterator<Item = I>,
) -> Result<Vec<String>, DispenserError> {
    let ids: Vec<String> = ids.into_iter().map(|id| id.as_ref().to_owned()).collect();
    ids.iter().try_for_each(|id| check_id(id))?;
    Ok(ids)
}

fn checked_page(skip: usize, limit: usize) -> Result<(usize, usize), DispenserError> {
    match limit {
        1..=HELD_MAX => Ok((skip, limit)),
        given => Err(DispenserError::PageLength { given }),
    }
}

fn settle(settled: &mut Settled, ids: &[String], places: Vec<ItemPlace>, wanted: ItemPlace) {
    for (id, place) in ids.iter().zip(places) {
        if place == wanted {
            settled.accepted.push(id.clone());
        } else {
            settled.refused.push((id.clone(), place));
        }
    }
}
