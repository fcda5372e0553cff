//! Records the events of clients, handlers and the nemesis for the history checker: [`Journal`].

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use optimus_testkit::history::{Event, How, IfDead, What};
use tokio::time::Instant;

/// The time of the first event. It is not zero, because the checker looks back from the first
/// events.
const START_NS: u64 = 1_000_000_000_000;

/// The history of one run, in memory.
#[derive(Debug)]
pub struct Journal {
    origin: Instant,
    /// Whether each event is printed when it is recorded.
    loud: AtomicBool,
    written: Mutex<Written>,
}

#[derive(Debug, Default)]
struct Written {
    events: Vec<Event>,
    /// How often the handler of each task has begun.
    begun: HashMap<u64, u32>,
    /// The number of each task whose id is known.
    numbers: HashMap<String, u64>,
}

impl Journal {
    /// Returns an empty history that begins now.
    pub fn new() -> Self {
        let loud = AtomicBool::new(false);
        Self { origin: Instant::now(), loud, written: Mutex::default() }
    }

    /// Prints each event from now on.
    pub fn be_loud(&self) {
        self.loud.store(true, Ordering::Relaxed);
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the current time in the ns of the events.
    pub fn now_ns(&self) -> u64 {
        START_NS + u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX / 2)
    }

    /// Records an event of a process with the current time.
    pub fn write(&self, process: u32, what: What) {
        let at = self.now_ns();
        let mut written = self.written();
        if let What::Begin { task, .. } = &what {
            *written.begun.entry(*task).or_default() += 1;
        }
        if let What::Begin { task, id, .. } | What::Acked { task, id } = &what {
            written.numbers.insert(id.clone(), *task);
        }
        let event = Event { at, pid: process, what };
        if self.loud.load(Ordering::Relaxed) {
            println!("  {event}");
        }
        written.events.push(event);
    }

    /// Returns how often the task's handler has begun.
    pub fn begun(&self, task: u64) -> u32 {
        self.written().begun.get(&task).copied().unwrap_or(0)
    }

    /// Returns the process in which the task last began.
    pub fn runner(&self, task: u64) -> Option<u32> {
        let written = self.written();
        let mut events = written.events.iter().rev();
        let begin =
            |event: &&Event| matches!(event.what, What::Begin { task: begun, .. } if begun == task);
        events.find(begin).map(|event| event.pid)
    }

    /// Returns whether the task succeeded under that fence.
    pub fn ended_well(&self, task: u64, fence: u64) -> bool {
        let well = What::End { task, fence, how: How::Ok };
        self.written().events.iter().any(|event| event.what == well)
    }

    /// Returns whether any attempt of the task succeeded.
    pub fn has_succeeded(&self, number: u64) -> bool {
        let is_well = |event: &Event| match event.what {
            What::End { task, how, .. } => task == number && how == How::Ok,
            _ => false,
        };
        self.written().events.iter().any(is_well)
    }

    /// Returns whether the store was rolled back.
    pub fn was_rolled_back(&self) -> bool {
        let back = |event: &Event| matches!(event.what, What::Rollback { .. });
        self.written().events.iter().any(back)
    }

    /// Returns the number of the task with this id.
    pub(crate) fn number_of(&self, id: &str) -> Option<u64> {
        self.written().numbers.get(id).copied()
    }

    /// Returns whether the task keeps its lane if it dies.
    pub(crate) fn blocks_a_lane(&self, number: u64) -> bool {
        let blocks = |event: &Event| match event.what {
            What::Lane { task, if_dead, .. } => task == number && if_dead == IfDead::Block,
            _ => false,
        };
        self.written().events.iter().any(blocks)
    }

    /// Returns whether a user has tried to delete the task, or any task.
    pub(crate) fn has_deleted(&self, number: Option<u64>) -> bool {
        let deletes = |event: &Event| match event.what {
            What::Delete { task } => number.is_none_or(|number| task == number),
            _ => false,
        };
        self.written().events.iter().any(deletes)
    }

    /// Returns all events.
    pub fn events(&self) -> Vec<Event> {
        self.written().events.clone()
    }
}

impl Default for Journal {
    fn default() -> Self {
        Self::new()
    }
}
