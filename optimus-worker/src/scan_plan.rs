//! What a slice of a source reads next: [`Plan`]. This code does no I/O, and its times are since
//! the begin of the plan.

use std::time::Duration;

use optimus_core::SourceOptions;

/// How often a table is archived that has nothing to archive.
const ARCHIVE_EVERY: Duration = Duration::from_secs(3600);

/// An empty table is due before its longest wait is over, by this part of it. So its page is read
/// in that time, although pages of other tables come first and take their time.
const EARLIER: u32 = 8;

/// The part of a table that one slice of a source reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    /// The number of the table.
    pub(crate) table: usize,
    /// Which part of the table.
    pub(crate) slice: u16,
}

/// How one page has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PageEnd {
    /// It had no rows: the pass is over.
    Empty,
    /// It ended with this key.
    Rows(String),
    /// It failed, and is read again after this time.
    Failed(Duration),
    /// It was not read, and is read again after this time.
    Put(Duration),
}

/// The kind of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The rows of a tier.
    Tier(usize),
    /// Old rows to archive.
    Archive,
}

/// A table that is read for one tier, or archived.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) cell: Cell,
    pub(crate) kind: Kind,
    /// The key of the last row of the pass, as JSON; `None` at its beginning.
    pub(crate) after: Option<String>,
    /// How many pages have failed, one after the other.
    pub(crate) failures: u32,
    next_at: Duration,
    began_at: Duration,
    /// Whether a pass follows the one that is under way at once.
    again: bool,
    /// How many passes have found nothing, one after the other.
    empties: u32,
}

/// Everything that a slice reads, and when. One page is read at a time. Of the items that are due,
/// the one that has waited longest is the next, so tables take turns; a tier counts as if it were
/// due later by the time between two passes over rows without failures, for each tier before it.
#[derive(Debug)]
pub(crate) struct Plan {
    items: Vec<Item>,
    options: SourceOptions,
}

/// A pass that is under way, as it is stored: its table, its part of the table, the fewest failures
/// of its tier, and the key of its last row.
type Cursor = (String, u16, u32, String);

/// Returns the cells of a slice. If there are more slices than tables, each table has several
/// slices; else a slice has several tables.
pub(crate) fn cells(tables: usize, slice: u16, slices: u16) -> (Vec<Cell>, u16) {
    let (tables, all) = (tables.max(1), usize::from(slices.max(1)));
    let parts = all.div_ceil(tables);
    let places = (usize::from(slice)..tables * parts).step_by(all);
    let cell = |place: usize| Cell {
        table: place / parts,
        slice: u16::try_from(place % parts).unwrap_or(u16::MAX),
    };
    (places.map(cell).collect(), u16::try_from(parts).unwrap_or(u16::MAX))
}

impl Plan {
    pub(crate) fn new(cells: &[Cell], options: SourceOptions) -> Self {
        let tiers = (0..options.tiers.len()).map(Kind::Tier);
        let archive = options.archive_after.map(|_| Kind::Archive);
        let kinds: Vec<Kind> = tiers.chain(archive).collect();
        let item = |(kind, cell): (&Kind, &Cell)| Item {
            cell: *cell,
            kind: *kind,
            after: None,
            failures: 0,
            next_at: Duration::ZERO,
            began_at: Duration::ZERO,
            again: false,
            empties: 0,
        };
        let pairs = kinds.iter().flat_map(|kind| cells.iter().map(move |cell| (kind, cell)));
        Self { items: pairs.map(item).collect(), options }
    }

    pub(crate) fn item(&self, at: usize) -> &Item {
        &self.items[at]
    }

    /// Returns the place of the item to read now.
    pub(crate) fn next(&self, now: Duration) -> Option<usize> {
        let due = self.items.iter().enumerate().filter(|(_, item)| item.next_at <= now);
        due.min_by_key(|(_, item)| item.next_at.saturating_add(self.handicap(item.kind)))
            .map(|(at, _)| at)
    }

    /// Returns how long nothing is due.
    pub(crate) fn rest(&self, now: Duration) -> Option<Duration> {
        self.items.iter().map(|item| item.next_at.saturating_sub(now)).min()
    }

    /// Notes that a page is read now.
    pub(crate) fn begin(&mut self, at: usize, now: Duration) {
        let item = &mut self.items[at];
        if item.after.is_none() {
            item.began_at = now;
        }
    }

    /// Lets the pass over a table begin again.
    pub(crate) fn begin_again(&mut self, at: usize, now: Duration) {
        let item = &mut self.items[at];
        (item.after, item.again, item.began_at) = (None, false, now);
    }

    /// Notes the end of a page.
    pub(crate) fn ended(&mut self, at: usize, now: Duration, end: PageEnd) {
        let every = self.every(self.items[at].kind);
        let idle = self.options.idle.max(every);
        let item = &mut self.items[at];
        item.next_at = match end {
            PageEnd::Rows(last) => {
                item.after = Some(last);
                item.failures = 0;
                now
            }
            PageEnd::Empty => {
                item.failures = 0;
                item.empties = if item.after.take().is_some() { 0 } else { item.empties + 1 };
                let doubled = 2_u32.saturating_pow(item.empties.saturating_sub(1));
                let longest = idle.saturating_sub(idle / EARLIER).max(every);
                let rest = every.saturating_mul(doubled).min(longest);
                let due = item.began_at.saturating_add(rest);
                if std::mem::take(&mut item.again) { now } else { now.max(due) }
            }
            PageEnd::Failed(wait) => {
                item.failures = item.failures.saturating_add(1);
                now + wait
            }
            PageEnd::Put(wait) => now + wait,
        };
    }

    /// Notes how many rows were archived.
    pub(crate) fn archived(&mut self, at: usize, now: Duration, moved: u64, limit: u32) {
        let item = &mut self.items[at];
        item.failures = 0;
        item.next_at = if moved >= u64::from(limit) { now } else { now + ARCHIVE_EVERY };
    }

    /// Makes all tiers due, because an operator has asked for it. A pass that is under way goes on,
    /// and another one follows it.
    pub(crate) fn all_due(&mut self, now: Duration) {
        for item in self.items.iter_mut().filter(|item| item.kind != Kind::Archive) {
            item.next_at = item.next_at.min(now);
            item.again = item.after.is_some();
            item.empties = 0;
        }
    }

    /// Returns the passes that are under way, as JSON of up to `most` bytes.
    pub(crate) fn cursors(&self, tables: &[String], parts: u16, most: usize) -> String {
        let (mut stored, mut bytes) = (Vec::new(), 0);
        for item in &self.items {
            let Some((cursor, size)) = self.cursor(item, tables) else { continue };
            // A cursor that is too long leaves room for the others.
            if bytes + size > most {
                continue;
            }
            bytes += size;
            stored.push(cursor);
        }
        serde_json::to_string(&(parts, stored)).expect("texts and numbers")
    }

    /// Goes on with the passes that were under way.
    pub(crate) fn restore(&mut self, stored: &str, tables: &[String], parts: u16) {
        let read = serde_json::from_str::<(u16, Vec<Cursor>)>(stored);
        let Ok((of_parts, cursors)) = read else { return };
        if of_parts != parts {
            return;
        }
        let options = self.options;
        for item in &mut self.items {
            let place = place(item, tables, options);
            let found = cursors
                .iter()
                .find(|(table, slice, least, _)| place == Some((table.as_str(), *slice, *least)));
            item.after = found.map(|(.., key)| key.clone());
        }
    }

    fn cursor(&self, item: &Item, tables: &[String]) -> Option<(Cursor, usize)> {
        let key = item.after.clone()?;
        let (table, slice, least) = place(item, tables, self.options)?;
        // Each quote of a text takes two bytes.
        let size = 2 * (table.len() + key.len()) + 32;
        Some(((table.to_owned(), slice, least, key), size))
    }

    fn every(&self, kind: Kind) -> Duration {
        match kind {
            Kind::Tier(at) => self.options.tiers[at].every,
            Kind::Archive => ARCHIVE_EVERY,
        }
    }

    fn handicap(&self, kind: Kind) -> Duration {
        let later = match kind {
            Kind::Tier(at) => at,
            Kind::Archive => self.options.tiers.len(),
        };
        self.options.tiers[0].every.saturating_mul(u32::try_from(later).unwrap_or(u32::MAX))
    }
}

/// Returns by what a pass is known: its table, its part of the table, and its tier.
fn place<'a>(
    item: &Item,
    tables: &'a [String],
    options: SourceOptions,
) -> Option<(&'a str, u16, u32)> {
    let Kind::Tier(tier) = item.kind else { return None };
    let table = tables.get(item.cell.table).map_or("", String::as_str);
    Some((table, item.cell.slice, options.tiers[tier].least))
}

#[cfg(test)]
#[path = "scan_plan_tests.rs"]
mod tests;
