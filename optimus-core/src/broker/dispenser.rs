//! The scripts of a dispenser, one method each: `dispenser_add` to `dispenser_peek`.

use std::time::Duration;

use super::{Broker, BrokerError, Reply, ScriptCall, scripts};
use crate::{
    dispenser::{Added, AssignedRow, AssigneeRow, Held, HeldItem, Item, ItemPlace, OpenRow},
    id::QueueName,
    platform::instant,
};

/// No dispenser has so many items. Redis takes no much larger number for a place.
const ITEMS_MAX: usize = 1 << 31;

/// How long assignees and items are held.
#[derive(Debug, Clone, Copy)]
pub struct HoldTimes {
    /// How long an assignee may be silent.
    pub hold: Duration,
    /// How long an assignee may keep an item.
    pub hold_max: Duration,
}

/// The caller of a verb: the dispenser's slot, the assignee, and how long it is held.
#[derive(Debug, Clone, Copy)]
pub struct ByAssignee<'a> {
    /// The slot of the dispenser.
    pub slot: &'a QueueName,
    /// The name of the assignee.
    pub assignee: &'a str,
    /// The times of the dispenser.
    pub times: HoldTimes,
    /// The name under which the answer is kept for a repeat.
    pub once: RequestName<'a>,
}

/// The name of a request under which its answer is kept for a repeat. The default keeps none.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestName<'a> {
    caller: Option<&'a str>,
    name: &'a str,
}

impl<'a> RequestName<'a> {
    /// Makes the name of a request of this caller, who is not the assignee. Otherwise the names of
    /// each assignee are its own.
    pub fn of(caller: Option<&'a str>, name: &'a str) -> Self {
        Self { caller, name }
    }

    /// Returns the name with that of the caller, or of the assignee. A length separates the two,
    /// which may have any bytes; and no length begins with an `@`.
    fn of_caller(self, assignee: &str) -> String {
        match (self.name, self.caller) {
            ("", _) => String::new(),
            (name, Some(caller)) => format!("@{}:{caller}:{name}", caller.len()),
            (name, None) => format!("{}:{assignee}:{name}", assignee.len()),
        }
    }
}

impl<'a> From<&'a str> for RequestName<'a> {
    fn from(name: &'a str) -> Self {
        Self { caller: None, name }
    }
}

impl ByAssignee<'_> {
    fn request(&self) -> String {
        self.once.of_caller(self.assignee)
    }

    /// Returns the digest of a request. One of another caller names the assignee.
    fn digest(&self, verb: &str, words: &[String]) -> String {
        match self.once.caller {
            Some(_) => digest(&format!("{verb} {}", self.assignee), words),
            None => digest(verb, words),
        }
    }
}

/// The counts of a dispenser, as `dispenser_peek` returns them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DispenserCounts {
    /// Items in the pool.
    pub open: u64,
    /// Items with assignees.
    pub assigned: u64,
    /// Assignees that have called within their hold time.
    pub assignees: u64,
    /// The rank of the first open item, and Redis' time, in ms.
    pub first: Option<(i64, i64)>,
    /// Whether a rebuild is open.
    pub is_rebuilding: bool,
}

/// The maximum number of items that one call names.
pub const DISPENSER_PAGE: usize = 500;

/// A rank is in these parts of a ms, as in `lua/include/dispenser_add.lua`.
const PLACES_A_MS: i64 = 1_024;

/// How often a peek is repeated because items went back to the pool meanwhile. Each repeat returns
/// up to 512 items and 16 buckets, so this is enough for two million items.
const PEEKS_MAX: usize = 4_096;

impl Broker {
    /// Adds items to the pool, at most 500.
    pub async fn dispenser_add(
        &self,
        slot: &QueueName,
        once: impl Into<RequestName<'_>>,
        items: &[Item],
    ) -> Result<Added, BrokerError> {
        let words = item_words(items);
        let call = self.call(&scripts::DISPENSER_ADD, slot, "");
        let call = call.arg(once.into().of_caller("")).arg(digest("add", &words));
        added(self.run_surely(with(call, &words)).await?)
    }

    /// Lets an assignee hold up to `count` items, at most 500; 0 gives all back.
    pub async fn dispenser_assign(
        &self,
        by: ByAssignee<'_>,
        count: usize,
    ) -> Result<Held, BrokerError> {
        let call = self.call(&scripts::DISPENSER_ASSIGN, by.slot, by.assignee);
        let call = call.arg(by.assignee).arg(count).arg(by.times.hold.as_millis());
        let call = call.arg(by.times.hold_max.as_millis()).arg(by.request());
        held(self.run_surely(call.arg(by.digest("assign", &[count.to_string()]))).await?)
    }

    /// Renews an assignee, and returns what it holds.
    pub async fn dispenser_check(&self, by: ByAssignee<'_>) -> Result<Held, BrokerError> {
        let call = self.call(&scripts::DISPENSER_CHECK, by.slot, by.assignee);
        let call = call.arg(by.assignee).arg(by.times.hold.as_millis());
        held(self.run_surely(call).await?)
    }

    /// Ends items that the assignee holds, at most 500. Returns where each of them is.
    pub async fn dispenser_done(
        &self,
        by: ByAssignee<'_>,
        items: &[String],
    ) -> Result<Vec<ItemPlace>, BrokerError> {
        self.settle(&scripts::DISPENSER_DONE, by, items).await
    }

    /// Gives items back to the pool, at most 500. Returns where each of them is.
    pub async fn dispenser_return(
        &self,
        by: ByAssignee<'_>,
        items: &[String],
    ) -> Result<Vec<ItemPlace>, BrokerError> {
        self.settle(&scripts::DISPENSER_RETURN, by, items).await
    }

    async fn settle(
        &self,
        script: &'static super::Script,
        by: ByAssignee<'_>,
        items: &[String],
    ) -> Result<Vec<ItemPlace>, BrokerError> {
        let call = self.call(script, by.slot, by.assignee).arg(by.assignee);
        let call = call.arg(by.times.hold.as_millis()).arg(by.request());
        let call = call.arg(by.digest(script.name, items));
        let letters = self.run_surely(with(call, items)).await?.text()?;
        let places: Option<Vec<ItemPlace>> = letters.chars().map(ItemPlace::from_letter).collect();
        places.filter(|places| places.len() == items.len()).ok_or_else(|| {
            BrokerError::UnexpectedReply(format!("{} answered {letters:?}", script.name))
        })
    }

    /// Opens a rebuild, and ends one that is open. Returns its name: that of an earlier one if this
    /// is a repeat.
    pub async fn dispenser_rebuild_begin(
        &self,
        slot: &QueueName,
        once: impl Into<RequestName<'_>>,
        rebuild: &str,
    ) -> Result<String, BrokerError> {
        let call = self.call(&scripts::DISPENSER_REBUILD, slot, "").arg("begin").arg(rebuild);
        let call = call.arg(once.into().of_caller("")).arg(digest("begin", &[]));
        self.run_surely(call).await?.text()
    }

    /// Lists items in a rebuild, at most 500, and adds those that are new.
    pub async fn dispenser_rebuild_page(
        &self,
        slot: &QueueName,
        once: impl Into<RequestName<'_>>,
        rebuild: &str,
        items: &[Item],
    ) -> Result<Added, BrokerError> {
        let words = item_words(items);
        let call = self.call(&scripts::DISPENSER_REBUILD, slot, "").arg("page").arg(rebuild);
        let call = call.arg(once.into().of_caller(""));
        let call = call.arg(digest(&format!("page {rebuild}"), &words));
        added(self.run_surely(with(call, &words)).await?)
    }

    /// Removes what a rebuild has not listed from up to 500 items. Returns how many were removed,
    /// and the place after which it continues, unless this was the end.
    pub async fn dispenser_rebuild_end(
        &self,
        slot: &QueueName,
        once: impl Into<RequestName<'_>>,
        rebuild: &str,
        place: &str,
    ) -> Result<(u64, Option<String>), BrokerError> {
        let call = self.call(&scripts::DISPENSER_REBUILD, slot, "").arg("end").arg(rebuild);
        let call = call.arg(once.into().of_caller(""));
        let call = call.arg(digest(&format!("end {rebuild}"), &[place.to_owned()]));
        let mut reply = self.run_surely(call.arg(place)).await?;
        Ok((reply.number()?, Some(reply.text()?).filter(|place| !place.is_empty())))
    }

    /// Counts items and assignees. Before that, items whose time is over go back to the pool.
    pub async fn dispenser_counts(
        &self,
        slot: &QueueName,
        times: HoldTimes,
    ) -> Result<DispenserCounts, BrokerError> {
        let mut reply = self.peek(slot, times, ("counts", 0, 0)).await?;
        let [open, assigned, assignees] = [reply.number()?, reply.number()?, reply.number()?];
        let (rank, now) = (reply.text()?, reply.number()?);
        let first = rank.parse().ok().map(|rank| (rank, now));
        Ok(DispenserCounts { open, assigned, assignees, first, is_rebuilding: reply.flag()? })
    }

    /// Reads up to `limit` items of the pool in their order, after the first `skip`.
    pub async fn dispenser_open(
        &self,
        slot: &QueueName,
        times: HoldTimes,
        (skip, limit): (usize, usize),
    ) -> Result<Vec<OpenRow>, BrokerError> {
        let words = self.peek(slot, times, ("open", skip, limit)).await?.rest()?;
        Ok(words.chunks_exact(3).map(open_row).collect())
    }

    /// Reads up to `limit` items with assignees, after the first `skip`; the first to be over
    /// first.
    pub async fn dispenser_assigned(
        &self,
        slot: &QueueName,
        times: HoldTimes,
        (skip, limit): (usize, usize),
    ) -> Result<Vec<AssignedRow>, BrokerError> {
        let words = self.peek(slot, times, ("assigned", skip, limit)).await?.rest()?;
        let row = |row: &[String]| AssignedRow {
            id: row[0].clone(),
            assignee: row[1].clone(),
            until: instant(row[2].parse().unwrap_or(0)),
        };
        Ok(words.chunks_exact(3).map(row).collect())
    }

    /// Reads up to `limit` assignees, after the first `skip`; the first to be over first.
    pub async fn dispenser_assignees(
        &self,
        slot: &QueueName,
        times: HoldTimes,
        (skip, limit): (usize, usize),
    ) -> Result<Vec<AssigneeRow>, BrokerError> {
        let words = self.peek(slot, times, ("assignees", skip, limit)).await?.rest()?;
        let row = |row: &[String]| AssigneeRow {
            name: row[0].clone(),
            until: instant(row[1].parse().unwrap_or(0)),
            items: row[2].parse().unwrap_or(0),
        };
        Ok(words.chunks_exact(3).map(row).collect())
    }

    /// Sends one peek: `counts`, or a page of `open`, `assigned` or `assignees`. Returns `None` if
    /// items went back to the pool instead, so that the call must be repeated.
    pub async fn dispenser_peek(
        &self,
        slot: &QueueName,
        times: HoldTimes,
        (what, skip, limit): (&str, usize, usize),
    ) -> Result<Option<Reply>, BrokerError> {
        let call = self.call(&scripts::DISPENSER_PEEK, slot, "").arg(times.hold.as_millis());
        let call = call.arg(what).arg(skip.min(ITEMS_MAX)).arg(limit);
        let mut reply = self.run_surely(call).await?;
        Ok(if reply.flag()? { None } else { Some(reply) })
    }

    /// Repeats a peek until it finds nothing more whose time is over.
    async fn peek(
        &self,
        slot: &QueueName,
        times: HoldTimes,
        page: (&str, usize, usize),
    ) -> Result<Reply, BrokerError> {
        for _ in 0..PEEKS_MAX {
            if let Some(reply) = self.dispenser_peek(slot, times, page).await? {
                return Ok(reply);
            }
        }
        Err(BrokerError::NotDone(format!(
            "after {PEEKS_MAX} calls, items of the dispenser still return to the pool"
        )))
    }
}

/// Returns the three words of each item.
fn item_words(items: &[Item]) -> Vec<String> {
    let words = |item: &Item| {
        let since = item.since.map(|since| since.timestamp_millis().max(0).to_string());
        [since.unwrap_or_default(), item.priority.to_string(), item.id.clone()]
    };
    items.iter().flat_map(words).collect()
}

fn with(mut call: ScriptCall, words: &[String]) -> ScriptCall {
    call.reserve(words.len(), words.iter().map(String::len).sum());
    for word in words {
        call.push_bytes(word.as_bytes());
    }
    call
}

fn added(mut reply: Reply) -> Result<Added, BrokerError> {
    let [added, open] = [reply.number()?, reply.number()?];
    Ok(Added { added, open, assigned: reply.number()?, done: reply.number()? })
}

fn held(mut reply: Reply) -> Result<Held, BrokerError> {
    let hold = Duration::from_millis(reply.number()?);
    let mut items = Vec::new();
    while !reply.is_empty() {
        let (count, until) = (reply.number()?, instant(deadline(&reply.text()?)));
        items.extend(reply.next_texts(count)?.into_iter().map(|id| HeldItem { id, until }));
    }
    Ok(Held { items, hold })
}

/// Returns the deadline of what `holders` says: `<ms>:<assignee>`.
fn deadline(holder: &str) -> u64 {
    holder.split_once(':').and_then(|(ms, _)| ms.parse().ok()).unwrap_or(0)
}

fn open_row(row: &[String]) -> OpenRow {
    let mut note = row[2].splitn(3, ' ');
    let returns = note.next().and_then(|times| times.parse().ok()).unwrap_or(0);
    let last_assignee = note.nth(1).map(str::to_owned);
    let rank_ms = row[1].parse::<i64>().unwrap_or(0).div_euclid(PLACES_A_MS);
    OpenRow { id: row[0].clone(), rank_ms, returns, last_assignee }
}

/// Returns a digest of a request, by FNV-1a with 64 bits. The standard hashers may change with the
/// compiler, and the digest of another process must be the same.
fn digest(verb: &str, words: &[String]) -> String {
    const START: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let mut hash = START;
    for word in [verb].into_iter().chain(words.iter().map(String::as_str)) {
        // No text has this byte.
        for byte in word.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(PRIME);
        }
    }
    format!("{hash:016x}")
}
