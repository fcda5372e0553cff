//! Makes the pool of a dispenser what a database lists: [`Rebuild`].

use std::fmt;

use super::dispenser::{Dispenser, checked_items};
use crate::{
    broker::DISPENSER_PAGE,
    dispenser::{Added, Item},
    dispenser_error::DispenserError,
    platform,
};

/// An open rebuild of a [`Dispenser`]; from [`Dispenser::rebuild`].
///
/// Begin it, then read the open rows of your database and list them with [`add`](Self::add), in
/// pages of any size, then [`finish`](Self::finish). Meanwhile the pool is in use:
///
/// - An item that is listed and not known is added at once.
/// - Items with assignees stay with them.
/// - An item that is finished meanwhile does not come back, even if a page lists it.
/// - An item that is added meanwhile stays, even if no page lists it.
/// - At the end, the other items of the pool that no page has listed are removed.
///
/// A rebuild that is not finished removes nothing. It may take up to an hour.
///
/// ```no_run
/// # use optimus_core as optimus;
/// # use optimus::{Client, DispenserError, Item};
/// # async fn rebuild(client: &Client, pages: Vec<Vec<u64>>) -> Result<(), DispenserError> {
/// let rebuild = client.dispenser("review").rebuild().await?;
/// for page in pages {
///     rebuild.add(page.iter().map(|row| Item::new(row.to_string()))).await?;
/// }
/// println!("{} items were gone", rebuild.finish().await?);
/// # Ok(())
/// # }
/// ```
#[must_use = "a rebuild that is not finished removes nothing"]
pub struct Rebuild {
    dispenser: Dispenser,
    id: String,
}

impl fmt::Debug for Rebuild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rebuild").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Rebuild {
    pub(super) async fn begin(mut dispenser: Dispenser) -> Result<Self, DispenserError> {
        let (slot, name) = (dispenser.slot()?, dispenser.name_of(0)?);
        let id = platform::new_uuid().simple().to_string();
        let request = dispenser.request(&name);
        let begun = dispenser.broker().dispenser_rebuild_begin(&slot, request, &id).await;
        let id = begun.map_err(|problem| dispenser.failed("rebuild", problem))?;
        // The name was that of the begin. Other requests have other names.
        dispenser.once = None;
        Ok(Self { dispenser, id })
    }

    pub(super) fn of(dispenser: Dispenser, id: String) -> Self {
        Self { dispenser, id }
    }

    /// Returns the id with which [`Dispenser::rebuild_of`] continues the rebuild elsewhere.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Lists items, 500 for each call of Redis. [`Item::waiting_since`] gives new ones their place.
    ///
    /// # Errors
    /// [`DispenserError::RebuildEnded`], also for no items; otherwise as of [`Dispenser::add`].
    pub async fn add<I: Into<Item>>(
        &self,
        items: impl IntoIterator<Item = I>,
    ) -> Result<Added, DispenserError> {
        let (slot, items) = (self.dispenser.slot()?, checked_items(items)?);
        let mut sum = Added::default();
        let desk = &self.dispenser;
        // A page without items is sent, too, because only Redis knows whether the rebuild is open.
        let empty = items.is_empty().then_some(&[][..]);
        let pages = items.chunks(DISPENSER_PAGE).chain(empty);
        for (number, page) in pages.enumerate() {
            let name = desk.name_of(number)?;
            let request = desk.request(&name);
            let added = desk.broker().dispenser_rebuild_page(&slot, request, &self.id, page).await;
            sum = sum.and(added.map_err(|problem| desk.failed("rebuild", problem))?);
        }
        desk.client.tell_dispenser(&slot).await;
        Ok(sum)
    }

    /// Removes the items that were not listed, and returns how many. The work is in pages of 500,
    /// so that no call takes long. If it fails half-way, a repeat continues.
    ///
    /// # Errors
    /// [`DispenserError::RebuildEnded`]; [`DispenserError::OnceReused`]; [`DispenserError::Store`].
    pub async fn finish(&self) -> Result<u64, DispenserError> {
        let (desk, slot) = (&self.dispenser, self.dispenser.slot()?);
        let (mut removed, mut place, mut number) = (0, Some(String::new()), 0);
        // A page either moves the place forward or ends the rebuild.
        while let Some(from) = place {
            let name = desk.name_of(number)?;
            let request = desk.request(&name);
            let page = desk.broker().dispenser_rebuild_end(&slot, request, &self.id, &from).await;
            let (count, next) = page.map_err(|problem| desk.failed("rebuild", problem))?;
            removed += count;
            place = next;
            number += 1;
        }
        Ok(removed)
    }
}
