//! One step of an operation: some of its tasks are counted or changed.

use std::{cmp::Reverse, collections::HashSet, time::Duration};

use tokio::time::Instant;
use uuid::Uuid;

use super::{
    operate::refused,
    operation_carrier::{After, Hold},
    prerequisite_asks::relay,
};
use crate::{
    broker::{Act, BATCH_MAX, Broker, BrokerError, Changed, OperationBatch, Refusal},
    id::{QueueName, TaskId},
    operation::OperationAct,
    operation_counted::{Chunk, Counted, Mark},
    operation_filter::ms_of,
    operation_progress::Place,
    pace::{PACED, Pace},
    platform::instant,
    state::TaskState,
    task_page::TaskRow,
};

/// How many pages one step reads.
const PAGES_MAX: usize = 16;
/// How many tasks one step changes, in calls of [`PACED`]. What was changed is stored once, so that
/// small calls do not make an operation slow.
pub(super) const CHANGED_MAX: usize = 8 * PACED;
/// After this time a step ends, whatever it has read: what it knows is stored far within a lease.
const STEP_MAX: Duration = Duration::from_secs(2);
/// So many tasks more than twice those of a list are read of it, each counted once. Tasks that join
/// it meanwhile are counted, too, but a count must end.
const UNREAD_MORE: u64 = 1_024;
/// So many tasks a set remembers, in up to 40 MB. One that is counted twice is gone in the end.
const SEEN_MAX: usize = 1_000_000;
/// Why an operation fails whose counted tasks are not there.
const LOST: &str = "the store has lost which tasks it has counted; begin it again";

/// Counts or changes tasks.
pub(super) struct Changes<'a> {
    pub(super) broker: &'a Broker,
    pub(super) slot: &'a QueueName,
    pub(super) id: &'a str,
    pub(super) pace: &'a Pace,
}

/// The tasks of a page that match.
#[derive(Default)]
struct Matching {
    rows: Vec<TaskRow>,
    tasks: Vec<Counted>,
    scanned: u64,
    /// How many of the rows were on no page before. A task that was cancelled and requeued is in
    /// the ready list more than once.
    new: u64,
    /// Where the page ends; empty if the list ends.
    next: String,
}

impl Changes<'_> {
    /// Counts tasks of some pages, and keeps which they are.
    pub(super) async fn count(&self, hold: &mut Hold) -> Result<After, BrokerError> {
        if hold.about.act == OperationAct::Requeue && hold.progress.place.is_none() {
            self.carry_effects().await?;
        }
        for _ in 0..PAGES_MAX {
            let Some(place) = self.place(hold).await? else {
                hold.progress.place = None;
                return Ok(After::Over);
            };
            let begun = Instant::now();
            let found = match self.page(hold, &place).await {
                Err(BrokerError::Rejected(why)) => {
                    hold.progress.skip(&place, &why);
                    Matching::default()
                }
                found => found?,
            };
            hold.progress.scanned += found.scanned;
            hold.saved.matched += found.rows.len() as u64;
            for row in found.rows {
                hold.progress.note(row);
            }
            keep(hold, &place.queue, found.tasks);
            self.go_on(hold, place, found.next, found.new).await?;
            self.pace.rest(begun).await;
            if hold.renewed.elapsed() > STEP_MAX {
                break;
            }
        }
        Ok(After::More)
    }

    /// Changes the next tasks that were counted.
    pub(super) async fn change(&self, hold: &mut Hold) -> Result<After, BrokerError> {
        if hold.about.act == OperationAct::Requeue
            && let Some(after) = self.requeue_waiting(hold).await?
        {
            return Ok(after);
        }
        let number = hold.progress.chunk + 1;
        if number > hold.progress.chunks {
            return self.ask(hold).await;
        }
        let chunk = self.chunk(hold, number).await?.ok_or_else(lost)?;
        let Some(chunk) = once_stored(hold, number, chunk) else {
            return Ok(After::More);
        };
        let from = usize::try_from(hold.progress.within).unwrap_or(usize::MAX);
        let tasks = chunk.tasks.get(from..).unwrap_or_default();
        let (tasks, rest) = tasks.split_at(tasks.len().min(CHANGED_MAX));
        self.change_batch(hold, hold.about.act.stored(), &chunk.queue, tasks).await?;
        hold.progress.reach(tasks.len() as u64);
        if rest.is_empty() {
            (hold.progress.chunk, hold.progress.within) = (number, 0);
            // Requeued tasks are asked for later.
            hold.has_reached = (hold.about.act != OperationAct::Requeue).then_some(number);
        } else {
            hold.chunk = Some((number, chunk));
        }
        Ok(After::More)
    }

    /// Changes tasks by a batch of several calls: Redis adds up what they change.
    pub(super) async fn change_batch(
        &self,
        hold: &mut Hold,
        act: Act,
        queue: &QueueName,
        tasks: &[Counted],
    ) -> Result<(), BrokerError> {
        let (mut done, mut gone) = (0, 0);
        for tasks in tasks.chunks(PACED) {
            let changed = self.change_some(hold, act, queue, tasks).await?;
            (done, gone) = (done + changed.0, gone + changed.1);
        }
        self.settle(hold, queue, (done, gone)).await
    }

    /// Returns counted tasks: those that are kept from the step before, or the stored ones.
    pub(super) async fn chunk(
        &self,
        hold: &mut Hold,
        number: u64,
    ) -> Result<Option<Chunk>, BrokerError> {
        if let Some((kept, chunk)) = hold.chunk.take()
            && kept == number
        {
            return Ok(Some(chunk));
        }
        let stored = self.broker.operation_counted(self.slot, self.id, number).await?;
        Ok(stored.as_deref().and_then(Chunk::decode))
    }

    /// Changes tasks of a batch by one call. Returns how many it changed, and how many were not as
    /// they were counted.
    async fn change_some(
        &self,
        hold: &mut Hold,
        act: Act,
        queue: &QueueName,
        tasks: &[Counted],
    ) -> Result<(u64, u64), BrokerError> {
        let verb = hold.about.act.verb();
        let batch = OperationBatch {
            operation: self.id,
            fence: hold.fence,
            number: hold.progress.batch + 1,
            states: &hold.about.filter.states,
            until_ms: hold.saved.added_ms,
        };
        let answers = self.broker.operate(act, queue, batch, tasks).await;
        let (all, is_posted) = match answers {
            // A queue that is damaged, or needs a later release, does not keep the others.
            Err(why @ (BrokerError::Rejected(_) | BrokerError::Refused(Refusal::Newer, _))) => {
                (vec![Changed::Refused(why); tasks.len()], false)
            }
            all => all?,
        };
        let (mut done, mut gone) = (0, 0);
        for (task, changed) in tasks.iter().zip(all) {
            match changed {
                Changed::Done => done += 1,
                Changed::Asked => hold.progress.asked += 1,
                Changed::Gone => gone += 1,
                // It is refused again when all are requeued.
                Changed::Refused(_) if act == Act::RequeueWaiting => {}
                Changed::Refused(why) => {
                    let why = refused(&task.id, verb, why).to_string();
                    hold.progress.refuse(task.id.clone(), why);
                }
            }
        }
        hold.progress.begun_ms.get_or_insert(hold.saved.now_ms);
        if is_posted {
            relay(self.broker.clone(), queue.clone()).await;
        }
        Ok((done, gone))
    }

    /// Counts a batch, of whose tasks so many were changed and so many were not as they were
    /// counted, by the answers.
    async fn settle(
        &self,
        hold: &mut Hold,
        queue: &QueueName,
        (mut done, gone): (u64, u64),
    ) -> Result<(), BrokerError> {
        let number = hold.progress.batch + 1;
        if gone > 0 {
            // If a call was sent twice, the second one has found the tasks changed by the first.
            let known = self.broker.operation_adopt(queue, self.id, hold.fence, number).await?;
            done += known.saturating_sub(done).min(gone);
        }
        hold.progress.batch = number;
        hold.progress.done += done;
        Ok(())
    }

    /// Returns where to go on; `None` at the end.
    async fn place(&self, hold: &mut Hold) -> Result<Option<Place>, BrokerError> {
        if hold.progress.place.is_none() {
            let (first, state) = (self.queue_after(hold, None).await?, first_state(hold));
            hold.progress.place = first.map(|queue| start(state, queue));
        }
        Ok(hold.progress.place.clone().filter(|place| place.after != END))
    }

    /// Notes where to go on after a page that ends at `next`: in the list, or in the next one.
    async fn go_on(
        &self,
        hold: &mut Hold,
        place: Place,
        next: String,
        new: u64,
    ) -> Result<(), BrokerError> {
        let unread = match place.unread {
            _ if next.is_empty() => 0,
            Some(unread) => unread.saturating_sub(new),
            None => 2 * self.size(&place).await? + UNREAD_MORE,
        };
        if unread > 0 {
            hold.progress.place = Some(Place { after: next, unread: Some(unread), ..place });
            return Ok(());
        }
        hold.listed = HashSet::new();
        let states = &hold.about.filter.states;
        let nth = states.iter().position(|state| *state == place.state);
        if let Some(state) = nth.and_then(|nth| states.get(nth + 1)) {
            hold.progress.place = Some(start(*state, place.queue));
            return Ok(());
        }
        hold.seen = HashSet::new();
        let (queue, state) = (self.queue_after(hold, Some(&place.queue)).await?, first_state(hold));
        hold.progress.place = Some(match queue {
            None => Place { after: END.to_owned(), ..place },
            Some(queue) => start(state, queue),
        });
        Ok(())
    }

    /// Returns how many tasks the list of a place has.
    async fn size(&self, place: &Place) -> Result<u64, BrokerError> {
        let counts = match self.broker.counts(&place.queue).await {
            // Another list of the queue is damaged.
            Err(BrokerError::Rejected(_)) => return Ok(u64::from(u32::MAX)),
            counts => counts?,
        };
        Ok(counts.of(place.state))
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

    /// Reads a page of tasks, those that have ended with the oldest first, but those that are to be
    /// requeued after they were cancelled with the latest first: an operation cancels the first
    /// tasks of lanes last, and the first one that comes back gets the lane.
    async fn page(&self, hold: &mut Hold, place: &Place) -> Result<Matching, BrokerError> {
        let Place { queue, state, after, .. } = place;
        let is_undo = hold.about.act == OperationAct::Requeue && *state == TaskState::Cancelled;
        let listed = if is_undo {
            let mut latest = self.broker.list(queue, *state, BATCH_MAX, after).await?;
            // Of one ms, the one that was submitted first comes first.
            latest.rows.sort_by_key(|row| (Reverse(row.at_ms), row.id.uuid()));
            latest
        } else {
            self.broker.list_oldest(queue, *state, BATCH_MAX, after).await?
        };
        let added_ms = hold.saved.added_ms;
        let (scanned, next) = (listed.rows.len() as u64, listed.next);
        let (mut rows, mut tasks, mut new) = (Vec::new(), Vec::new(), 0);
        for row in listed.rows {
            new += u64::from(is_new(&mut hold.listed, &row.id));
            let mark = Mark::of(*state, &row);
            let row = TaskRow::of(*state, row);
            let is_due = hold.about.act == OperationAct::RunNow
                && row.at.is_none_or(|at| ms_of(at) <= added_ms);
            let is_meant = !is_due && hold.about.filter.takes(&row, instant(added_ms));
            if is_meant && is_new(&mut hold.seen, &row.id) {
                tasks.push(Counted { id: row.id.clone(), mark });
                rows.push(row);
            }
        }
        Ok(Matching { rows, tasks, scanned, new, next })
    }
}

/// Returns counted tasks, once it is stored in which queue they are. Before that, another
/// carrier would not look for uncounted changes there.
pub(super) fn once_stored(hold: &mut Hold, number: u64, chunk: Chunk) -> Option<Chunk> {
    if hold.stored_queue.as_ref() == Some(&chunk.queue) {
        return Some(chunk);
    }
    hold.progress.place = Some(start(first_state(hold), chunk.queue.clone()));
    // It is stored before the first change, so that an undo finds all of them.
    hold.progress.begun_ms.get_or_insert(hold.saved.now_ms);
    hold.chunk = Some((number, chunk));
    None
}

pub(super) fn lost() -> BrokerError {
    BrokerError::UnexpectedReply(LOST.to_owned())
}

/// Returns whether a task is not counted yet, as far as is remembered.
fn is_new(seen: &mut HashSet<Uuid>, id: &TaskId) -> bool {
    let uuid = id.uuid();
    if seen.len() < SEEN_MAX { seen.insert(uuid) } else { !seen.contains(&uuid) }
}

/// Keeps counted tasks until they are stored, in chunks that one step changes.
fn keep(hold: &mut Hold, queue: &QueueName, tasks: Vec<Counted>) {
    match hold.found.last_mut() {
        _ if tasks.is_empty() => {}
        Some(last) if last.queue == *queue && last.tasks.len() + tasks.len() <= BATCH_MAX => {
            last.tasks.extend(tasks);
        }
        _ => hold.found.push(Chunk { queue: queue.clone(), tasks }),
    }
}

/// The place behind all tasks.
const END: &str = "end";

fn first_state(hold: &Hold) -> TaskState {
    hold.about.filter.states.first().copied().unwrap_or(TaskState::Dead)
}

/// Returns the start of a list.
fn start(state: TaskState, queue: QueueName) -> Place {
    Place { queue, state, after: String::new(), unread: None }
}
