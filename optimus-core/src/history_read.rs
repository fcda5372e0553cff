//! Reads the history of a queue: [`Inspector::history`].

use crate::{
    Error,
    broker::HistoryPart,
    history_options::{DAY_MS, HistoryDetails},
    history_page::{HistoryCursor, HistoryFilter, HistoryPage, HistoryRow, Place},
    id::QueueName,
    inspect::Inspector,
    state::TaskState,
    task_page::PAGE_MAX,
};

/// How many tasks a page looks at, and how many calls it makes.
const SCANNED_MAX: u64 = 20_000;
const CALLS_MAX: usize = 32;
/// How many entries a call reads: an entry of successes has about 130 lines, one of deaths usually
/// one.
const SUCCESS_ENTRIES: u64 = 8;
const DEAD_ENTRIES: u64 = 256;

impl Inspector {
    /// Reads the tasks that succeeded or died on a day: at most `limit` (and [`PAGE_MAX`]),
    /// starting at `after`, which the page before has returned.
    ///
    /// A queue keeps a [history](crate::Client::keep_history) only if it was told so. The last
    /// 1,000 successes of each queue are read in any case. Deaths come before successes; both are
    /// nearly in the order of their ends. A page looks at about 20,000 tasks at most, so that with
    /// a filter it may have few rows, or none, and a `next`. A task that ends twice, because it was
    /// requeued, has two rows. A row may be on two pages if many tasks end between them.
    ///
    /// ```
    /// # async fn doc(client: &optimus_core::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # use optimus_core as optimus;
    /// use optimus::{HistoryFilter, TaskState};
    ///
    /// let day = "2026-10-03".parse()?;
    /// let failed = HistoryFilter::day(day).task("send_mail").state(TaskState::Dead);
    /// let mut after = None;
    /// loop {
    ///     let page = client.inspector().history("mail", &failed, after.as_ref(), 100).await?;
    ///     for row in page.rows {
    ///         println!("{} on {:?} after {:?}: {:?}", row.id, row.worker, row.took, row.error);
    ///     }
    ///     after = page.next;
    ///     if after.is_none() {
    ///         break;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::is_unavailable`]; [`Error::is_invalid`] if `after` is of another queue, day or
    /// state, if `limit` is 0, or for another state than success and dead.
    pub async fn history(
        &self,
        queue: impl AsRef<str>,
        filter: &HistoryFilter,
        after: Option<&HistoryCursor>,
        limit: usize,
    ) -> Result<HistoryPage, Error> {
        let (queue, states) = (&QueueName::new(queue)?, filter.states()?);
        let mut place = after
            .map_or_else(|| Ok(Place::first(states[0])), |after| after.place_in(queue, filter))?;
        if limit == 0 {
            return Err(Error::invalid("the limit of a page is 0; ask for 1 row or more"));
        }
        let mut page = HistoryPage::default();
        for _ in 0..CALLS_MAX {
            let part = self.history_part(queue, filter, &place).await?;
            let taken = Reader { queue, filter, limit: limit.min(PAGE_MAX) };
            match taken.take(&mut page, place, &part) {
                Next::Stop(there) => {
                    page.next = Some(HistoryCursor::of(queue, filter, there));
                    return Ok(page);
                }
                Next::GoOn(there) => place = there,
                Next::End(state) => match states.iter().skip_while(|s| **s != state).nth(1) {
                    Some(next) => place = Place::first(*next),
                    None => return Ok(page),
                },
            }
        }
        page.next = Some(HistoryCursor::of(queue, filter, place));
        Ok(page)
    }

    /// Reads what the history of a queue keeps, and which days it has.
    ///
    /// # Errors
    /// [`Error::is_unavailable`].
    pub async fn history_details(&self, queue: impl AsRef<str>) -> Result<HistoryDetails, Error> {
        let queue = &QueueName::new(queue)?;
        Ok(HistoryDetails::of(self.broker.history_stored(queue).await?))
    }

    async fn history_part(
        &self,
        queue: &QueueName,
        filter: &HistoryFilter,
        place: &Place,
    ) -> Result<HistoryPart, Error> {
        let midnight = filter.day.and_hms_opt(0, 0, 0).unwrap_or_default().and_utc();
        let day = u64::try_from(midnight.timestamp_millis()).unwrap_or(0) / DAY_MS;
        let is_dead = place.state == TaskState::Dead;
        let most = if is_dead { DEAD_ENTRIES } else { SUCCESS_ENTRIES };
        Ok(self.broker.history(queue, (place.state, day), place.entry, most).await?)
    }
}

/// How a read goes on.
enum Next {
    /// The page is full.
    Stop(Place),
    GoOn(Place),
    /// All tasks in this state were read.
    End(TaskState),
}

struct Reader<'a> {
    queue: &'a QueueName,
    filter: &'a HistoryFilter,
    limit: usize,
}

impl Reader<'_> {
    /// Adds the rows of a part to the page.
    fn take(&self, page: &mut HistoryPage, place: Place, part: &HistoryPart) -> Next {
        let state = place.state;
        let end = part.first + part.entries.len() as u64;
        let stored = (part.first..).zip(&part.entries);
        let lines: Vec<(u64, &str)> = stored
            .flat_map(|(entry, text)| text.lines().map(move |line| (entry, line)))
            .chain(part.recent.iter().map(|line| (end, line.as_str())))
            .collect();
        // A line that has left the part meanwhile shows no place in it.
        let read = place.after.and_then(|after| {
            lines.iter().rposition(|(_, line)| mark_of(line).is_some_and(|mark| mark == after))
        });
        for (entry, line) in lines.into_iter().skip(read.map_or(0, |read| read + 1)) {
            let Some(row) = HistoryRow::read(self.queue, state, line) else { continue };
            // The last successes are of any day. One in the list of a day may have ended on the
            // next one, if the clock was set back since then: no other list has it.
            if entry == end && row.ended.date_naive() != self.filter.day {
                continue;
            }
            page.scanned += 1;
            if self.filter.task.as_ref().is_none_or(|task| *task == row.task) {
                page.rows.push(row);
            }
            if page.rows.len() >= self.limit || page.scanned >= SCANNED_MAX {
                return Next::Stop(Place { state, entry, after: mark_of(line) });
            }
        }
        if part.following > 0 {
            return Next::GoOn(Place { state, entry: end, after: None });
        }
        Next::End(state)
    }
}

/// Returns the first two words of a line: the id and the ms of its end.
fn mark_of(line: &str) -> Option<(String, u64)> {
    let mut words = line.split(' ');
    Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{id::TaskId, platform::instant};

    #[test]
    fn a_day_has_all_lines_of_its_list_and_those_of_the_last_successes_that_ended_on_it() {
        let queue = QueueName::new("mail").unwrap();
        let line = |ms: u64| format!("{} {ms} send 1 5 w", TaskId::new(queue.clone()).stored());
        let today = 1_700_000_000_000;
        let tomorrow = today + DAY_MS;
        let part = HistoryPart {
            first: 3,
            // The clock was set back after the second one had ended.
            entries: vec![format!("{}\n{}", line(today), line(tomorrow))],
            following: 0,
            recent: vec![line(tomorrow), line(today), line(today - DAY_MS)],
        };
        let filter = HistoryFilter::day(instant(today).date_naive());
        let reader = Reader { queue: &queue, filter: &filter, limit: 9 };
        let mut page = HistoryPage::default();
        let next = reader.take(&mut page, Place::first(TaskState::Success), &part);
        assert!(matches!(next, Next::End(TaskState::Success)));
        let ended = page.rows.iter().map(|row| row.ended.timestamp_millis().unsigned_abs());
        assert_eq!(ended.collect::<Vec<_>>(), [today, tomorrow, today]);
    }
}
