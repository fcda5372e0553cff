//! One step of an operation: some of its tasks are counted or changed.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    operate::refused,
    operation_carrier::{After, Hold},
    prerequisite_asks::relay,
};
use crate::{
    broker::{BATCH_MAX, Broker, BrokerError, Changed, OperationBatch},
    id::{QueueName, TaskId},
    operation::OperationAct,
    operation_filter::{OperationFilter, ms_of},
    operation_progress::Place,
    pace::{PACED, Pace},
    platform::instant,
    state::TaskState,
    task_page::TaskRow,
};

/// How many pages one step reads until it finds a task.
const PAGES_MAX: usize = 16;
/// After this time a step ends, whatever it has read: what it knows is stored far within a lease.
const STEP_MAX: Duration = Duration::from_secs(2);
/// How often the ready list and those of blocked tasks are read again, because claims move tasks
/// while they are read.
const PASSES_MAX: u32 = 8;

/// Counts or changes tasks.
pub(super) struct Changes<'a> {
    pub(super) broker: &'a Broker,
    pub(super) id: &'a str,
    pub(super) pace: &'a Pace,
}

/// The tasks of a page that match.
struct Matching {
    rows: Vec<TaskRow>,
    scanned: u64,
    /// Where the page ends; `None` if the list ends.
    next: Option<String>,
    /// The last task that does not match, which stays in the list.
    last_other: Option<(usize, String)>,
    /// The place of each matching row on the page.
    at: Vec<usize>,
}

impl Changes<'_> {
    /// Counts tasks of some pages.
    pub(super) async fn count(&self, hold: &mut Hold) -> Result<After, BrokerError> {
        for _ in 0..PAGES_MAX {
            let Some(place) = self.place(hold).await? else {
                hold.progress.place = None;
                return Ok(After::Over);
            };
            let begun = Instant::now();
            let found = self.page(hold, &place).await?;
            hold.progress.scanned += found.scanned;
            hold.saved.matched += found.rows.len() as u64;
            for row in found.rows {
                hold.progress.note(row);
            }
            let next = Place { after: found.next.clone().unwrap_or_default(), ..place };
            self.go_on(hold, next, List::of(found.next.as_ref())).await?;
            self.pace.rest(begun).await;
            if hold.renewed.elapsed() > STEP_MAX {
                break;
            }
        }
        Ok(After::More)
    }

    /// Changes the tasks of one page that match.
    pub(super) async fn change(&self, hold: &mut Hold) -> Result<After, BrokerError> {
        for _ in 0..PAGES_MAX {
            let left = hold.progress.left(hold.saved.matched);
            let place = if left == 0 { None } else { self.place(hold).await? };
            let Some(place) = place else {
                hold.progress.gone += left;
                return Ok(After::Over);
            };
            let begun = Instant::now();
            let mut found = self.page(hold, &place).await?;
            found.rows.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            if found.rows.is_empty() {
                let next = Place { after: found.next.clone().unwrap_or_default(), ..place };
                self.go_on(hold, next, List::of(found.next.as_ref())).await?;
                self.pace.rest(begun).await;
                if hold.renewed.elapsed() > STEP_MAX {
                    break;
                }
                continue;
            }
            if hold.stored_queue.as_ref() != Some(&place.queue) {
                // Another carrier would not look for uncounted changes in this queue yet.
                return Ok(After::More);
            }
            self.change_page(hold, place, found).await?;
            return Ok(After::More);
        }
        Ok(After::More)
    }

    async fn change_page(
        &self,
        hold: &mut Hold,
        place: Place,
        found: Matching,
    ) -> Result<(), BrokerError> {
        let Matching { rows, next, last_other, at, .. } = found;
        let act = hold.about.act;
        let batch = OperationBatch {
            operation: self.id,
            fence: hold.fence,
            number: hold.progress.batch + 1,
            state: place.state,
            until_ms: hold.saved.added_ms,
        };
        let mut stays = last_other;
        let (mut done, mut gone, mut nth) = (0, 0, 0);
        for rows in rows.chunks(PACED) {
            let begun = Instant::now();
            let ids: Vec<TaskId> = rows.iter().map(|row| row.id.clone()).collect();
            let (all, is_posted) =
                self.broker.operate(act.stored(), &place.queue, batch, &ids).await?;
            for (row, changed) in rows.iter().zip(all) {
                match changed {
                    Changed::Done => done += 1,
                    Changed::Asked => hold.progress.asked += 1,
                    Changed::Gone => gone += 1,
                    Changed::Refused(why) => {
                        let why = refused(&row.id, "requeue", why).to_string();
                        hold.progress.refuse(row.id.clone(), why);
                        if stays.as_ref().is_none_or(|(before, _)| *before < at[nth]) {
                            stays = Some((at[nth], cursor_of(row)));
                        }
                    }
                }
                nth += 1;
            }
            hold.progress.begun_ms.get_or_insert(hold.saved.now_ms);
            if is_posted {
                relay(self.broker.clone(), place.queue.clone()).await;
            }
            self.pace.rest(begun).await;
        }
        let done = self.settle(hold, &place.queue, (done, gone)).await?;
        let has_changed = place.has_changed || done > 0;
        // Requeued tasks leave the list, so it goes on after the last task that stays. Several may
        // have ended in the same ms, and only a task that is there shows a place among them.
        let list = List::of(next.as_ref());
        let after = match act {
            OperationAct::Requeue => stays.map_or(place.after.clone(), |(_, cursor)| cursor),
            _ => next.unwrap_or_default(),
        };
        self.go_on(hold, Place { after, has_changed, ..place }, list).await
    }

    /// Counts a batch, of whose tasks so many were changed and so many were not in the state, by
    /// the answers. Returns how many were changed.
    async fn settle(
        &self,
        hold: &mut Hold,
        queue: &QueueName,
        (mut done, mut gone): (u64, u64),
    ) -> Result<u64, BrokerError> {
        let number = hold.progress.batch + 1;
        if gone > 0 {
            // If a call was sent twice, the second one has found the tasks changed by the first.
            let known = self.broker.operation_adopt(queue, self.id, hold.fence, number).await?;
            let untold = known.saturating_sub(done).min(gone);
            (done, gone) = (done + untold, gone - untold);
        }
        hold.progress.batch = number;
        hold.progress.done += done;
        // A later list may have those that move on: they have begun, or their time has come. What
        // is left at the end is gone.
        hold.progress.gone += if moves_on(hold.about.act) { 0 } else { gone };
        Ok(done)
    }

    /// Returns where to go on; `None` at the end.
    async fn place(&self, hold: &mut Hold) -> Result<Option<Place>, BrokerError> {
        if hold.progress.place.is_none() {
            let first = self.queue_after(hold, None).await?;
            hold.progress.place = first.and_then(|queue| start(hold, queue));
        }
        Ok(hold.progress.place.clone().filter(|place| place.after != END))
    }

    /// Notes where to go on: in the list, at its start again, or in the next list.
    async fn go_on(&self, hold: &mut Hold, place: Place, list: List) -> Result<(), BrokerError> {
        if let List::GoesOn = list {
            hold.progress.place = Some(place);
            return Ok(());
        }
        let moves = matches!(place.state, TaskState::Ready | TaskState::Blocked);
        if moves && place.has_changed && place.passes < PASSES_MAX {
            let passes = place.passes + 1;
            let again = Place { after: String::new(), passes, has_changed: false, ..place };
            hold.progress.place = Some(again);
            return Ok(());
        }
        let states = &hold.about.filter.states;
        let nth = states.iter().position(|state| *state == place.state);
        if let Some(state) = nth.and_then(|nth| states.get(nth + 1)) {
            hold.progress.place = Some(Place { state: *state, ..empty(place.queue) });
            return Ok(());
        }
        let queue = self.queue_after(hold, Some(&place.queue)).await?;
        hold.progress.place = match queue.and_then(|queue| start(hold, queue)) {
            // A place at the end keeps the queue in which changes may not be counted yet.
            None => Some(Place { after: END.to_owned(), ..place }),
            next => next,
        };
        Ok(())
    }

    /// Returns the queue after this one, in the order of their names.
    async fn queue_after(
        &self,
        hold: &mut Hold,
        last: Option<&QueueName>,
    ) -> Result<Option<QueueName>, BrokerError> {
        if hold.queues.is_none() {
            let named = &hold.about.filter.queues;
            let mut queues =
                if named.is_empty() { self.broker.queues().await? } else { named.clone() };
            queues.sort();
            hold.queues = Some(queues);
        }
        let queues = hold.queues.iter().flatten();
        Ok(queues.into_iter().find(|queue| last.is_none_or(|last| *queue > last)).cloned())
    }

    /// Reads a page of tasks, those that have ended with the oldest first.
    async fn page(&self, hold: &Hold, place: &Place) -> Result<Matching, BrokerError> {
        let Place { queue, state, after, .. } = place;
        let listed = self.broker.list_oldest(queue, *state, BATCH_MAX, after).await?;
        let cut_off_ms = hold.saved.added_ms;
        let scanned = listed.rows.len() as u64;
        let mut next = Some(listed.next).filter(|next| !next.is_empty());
        let (mut rows, mut at, mut last_other) = (Vec::new(), Vec::new(), None);
        for (nth, row) in listed.rows.into_iter().enumerate() {
            let row = TaskRow::of(*state, row);
            let was_there = OperationFilter::was_there(&row, cut_off_ms);
            let is_due = hold.about.act == OperationAct::RunNow
                && row.at.is_none_or(|at| ms_of(at) <= cut_off_ms);
            if was_there && !is_due && hold.about.filter.takes(&row, instant(cut_off_ms)) {
                rows.push(row);
                at.push(nth);
                continue;
            }
            if !was_there && state.is_terminal() {
                // So have all that follow.
                next = None;
            }
            last_other = Some((nth, cursor_of(&row)));
        }
        Ok(Matching { rows, scanned, next, last_other, at })
    }
}

/// Whether a list has more tasks.
enum List {
    GoesOn,
    Ends,
}

impl List {
    fn of(next: Option<&String>) -> Self {
        if next.is_some() { Self::GoesOn } else { Self::Ends }
    }
}

/// Returns whether tasks of an operation move on to other lists that it reads later.
fn moves_on(act: OperationAct) -> bool {
    matches!(act, OperationAct::Cancel | OperationAct::Delete)
}

/// The place behind all tasks.
const END: &str = "end";

fn start(hold: &Hold, queue: QueueName) -> Option<Place> {
    let state = *hold.about.filter.states.first()?;
    Some(Place { state, ..empty(queue) })
}

fn empty(queue: QueueName) -> Place {
    let (state, after) = (TaskState::Dead, String::new());
    Place { queue, state, after, passes: 0, has_changed: false }
}

/// Returns the cursor after a task that has ended.
fn cursor_of(row: &TaskRow) -> String {
    format!("{} {}", row.at.map_or(0, ms_of), row.id.stored())
}
