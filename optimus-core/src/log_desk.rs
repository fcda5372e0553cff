//! The lines that attempts say, until the worker has sent them: [`LogDesk`].

use std::{
    collections::VecDeque,
    fmt::{self, Write},
    mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::time::Instant;

use crate::{attempt_facts::AttemptFacts, broker::SaidLines, id::TaskId};

/// How many lines of an attempt wait at most.
const LINES_MAX: usize = 100;
/// How many bytes these lines have at most.
const BYTES_MAX: usize = 8_192;
/// How many bytes of a line are kept.
const LINE_BYTES_MAX: usize = 500;
/// What a line costs besides its text: its place, the time and the attempt in the store.
const LINE_BYTES: usize = 48;
/// What an attempt with unsent lines keeps in memory besides them, also after its end.
const LOG_BYTES: usize = 512;
/// How many bytes all attempts of a worker with unsent lines have at most. More lines are dropped.
const DESK_BYTES_MAX: usize = 16 << 20;

/// The attempts of a worker with lines that were not sent.
pub struct LogDesk {
    listed: Mutex<VecDeque<Arc<AttemptLog>>>,
    bytes: AtomicUsize,
    /// Called after an attempt was listed.
    wake: Box<dyn Fn() + Send + Sync>,
}

/// The lines of one attempt that were not sent.
#[derive(Debug)]
pub struct AttemptLog {
    id: TaskId,
    fence: u64,
    attempt: u32,
    /// When the attempt began, by Redis' clock in ms.
    began_ms: u64,
    began: Instant,
    unsent: Mutex<Unsent>,
}

#[derive(Debug, Default)]
struct Unsent {
    lines: VecDeque<Line>,
    bytes: usize,
    /// How many lines the attempt has said.
    said: u64,
    is_listed: bool,
}

#[derive(Debug)]
struct Line {
    number: u64,
    at: Instant,
    text: Box<str>,
}

/// Where the lines of an attempt go, and when it began.
#[derive(Debug, Clone)]
pub struct LogSeat {
    /// The desk of the worker.
    pub desk: Arc<LogDesk>,
    /// When the attempt began, by Redis' clock in ms.
    pub began_ms: u64,
    /// The same time by the clock of the worker.
    pub began: Instant,
}

impl LogSeat {
    pub(crate) fn log(&self, attempt: &AttemptFacts) -> Arc<AttemptLog> {
        Arc::new(AttemptLog {
            id: attempt.id.clone(),
            fence: attempt.fence,
            attempt: attempt.number,
            began_ms: self.began_ms,
            began: self.began,
            unsent: Mutex::default(),
        })
    }
}

impl fmt::Debug for LogDesk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogDesk").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl LogDesk {
    /// Returns a desk without lines. It calls `wake` when an attempt has its first unsent line.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self { listed: Mutex::default(), bytes: AtomicUsize::new(0), wake: Box::new(wake) }
    }

    /// Returns whether no attempt has unsent lines.
    pub fn is_empty(&self) -> bool {
        locked(&self.listed).is_empty()
    }

    /// Takes the attempt that has waited longest.
    pub fn take(&self) -> Option<Arc<AttemptLog>> {
        let log = locked(&self.listed).pop_front();
        if log.is_some() {
            self.bytes.fetch_sub(LOG_BYTES, Ordering::Relaxed);
        }
        log
    }

    /// Adds what an attempt says, a line for each line of the text.
    pub(crate) fn say(&self, log: &Arc<AttemptLog>, text: &str) {
        let at = Instant::now();
        for line in text.lines() {
            if log.add(self, at, shortened(line)) {
                self.list(log.clone());
            }
        }
    }

    /// Forgets the lines of an attempt up to a number: they were sent. Lists it if others wait.
    pub fn sent(&self, log: &Arc<AttemptLog>, last: u64) {
        let mut unsent = locked(&log.unsent);
        while unsent.lines.front().is_some_and(|line| line.number <= last) {
            unsent.drop_first(self);
        }
        drop(unsent);
        self.again(log);
    }

    /// Lists an attempt again if it has unsent lines and is not listed.
    pub fn again(&self, log: &Arc<AttemptLog>) {
        let mut unsent = locked(&log.unsent);
        if unsent.lines.is_empty() || mem::replace(&mut unsent.is_listed, true) {
            return;
        }
        drop(unsent);
        // It has lines already, so it is listed even if there is no room.
        self.bytes.fetch_add(LOG_BYTES, Ordering::Relaxed);
        self.list(log.clone());
    }

    fn list(&self, log: Arc<AttemptLog>) {
        locked(&self.listed).push_back(log);
        (self.wake)();
    }

    /// Returns whether there is room for that many bytes, which are then taken.
    fn takes(&self, bytes: usize) -> bool {
        let more = |taken: usize| Some(taken + bytes).filter(|sum| *sum <= DESK_BYTES_MAX);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }
}

impl AttemptLog {
    /// Returns the lines that were not sent, once; the attempt is then not listed.
    pub fn unsent(&self) -> SaidLines {
        let mut unsent = locked(&self.unsent);
        unsent.is_listed = false;
        let mut text = String::with_capacity(unsent.bytes);
        for line in &unsent.lines {
            if !text.is_empty() {
                text.push('\n');
            }
            let since = line.at.saturating_duration_since(self.began).as_millis();
            let at_ms = self.began_ms.saturating_add(u64::try_from(since).unwrap_or(u64::MAX));
            let written = write!(text, "{at_ms} {} {}", self.attempt, line.text);
            written.expect("a string takes any text");
        }
        SaidLines {
            id: self.id.clone(),
            fence: self.fence,
            last: unsent.lines.back().map_or(unsent.said, |line| line.number),
            count: unsent.lines.len(),
            text,
        }
    }

    /// Adds a line. Returns whether the attempt must be listed.
    fn add(&self, desk: &LogDesk, at: Instant, text: &str) -> bool {
        let mut unsent = locked(&self.unsent);
        unsent.said += 1;
        let bytes = text.len() + LINE_BYTES;
        while unsent.lines.len() >= LINES_MAX || unsent.bytes + bytes > BYTES_MAX {
            unsent.drop_first(desk);
        }
        let place = if unsent.is_listed { 0 } else { LOG_BYTES };
        while !desk.takes(bytes + place) {
            // The lines of an attempt have numbers without gaps, so its first one goes.
            if unsent.lines.is_empty() {
                return false;
            }
            unsent.drop_first(desk);
        }
        let number = unsent.said;
        unsent.lines.push_back(Line { number, at, text: text.into() });
        unsent.bytes += bytes;
        !mem::replace(&mut unsent.is_listed, true)
    }
}

impl Unsent {
    fn drop_first(&mut self, desk: &LogDesk) {
        if let Some(line) = self.lines.pop_front() {
            let bytes = line.text.len() + LINE_BYTES;
            self.bytes -= bytes;
            desk.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

/// Returns the beginning of a line that is too long.
fn shortened(line: &str) -> &str {
    let mut end = line.len().min(LINE_BYTES_MAX);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    &line[..end]
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "log_desk_tests.rs"]
mod tests;
