//! Counts the executions of a worker, and reports them to the harness.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use crate::Argument;
use crate::clock::now_ns;
use crate::harness::{end_with_input, say};

/// The interval of the reports to the harness.
const REPORT_EVERY: Duration = Duration::from_millis(10);

/// The tally is a static, because the handlers of a library are plain functions.
static TALLY: OnceLock<Tally> = OnceLock::new();

/// The executions in this process.
#[derive(Debug)]
struct Tally {
    /// How often each task ran.
    runs: Vec<AtomicU8>,
    count: AtomicU64,
    first_ns: AtomicU64,
    last_ns: AtomicU64,
    waits_ns: Mutex<Vec<u64>>,
}

/// Counts an execution. This call is the first line of the handler, because the latency ends here.
pub fn ran(argument: &Argument) {
    let now = now_ns();
    let tally = TALLY.get().expect("a worker starts its tally before it starts the library");
    if argument.sent_ns > 0 {
        let mut waits = tally.waits_ns.lock().unwrap_or_else(PoisonError::into_inner);
        waits.push(now - argument.sent_ns);
    }
    if let Some(runs) = tally.runs.get(argument.number) {
        runs.fetch_add(1, Relaxed);
    }
    tally.first_ns.fetch_min(now, Relaxed);
    tally.last_ns.fetch_max(now, Relaxed);
    tally.count.fetch_add(1, Relaxed);
}

/// Starts to count the executions of the tasks `0..count`, to report them, and to wait for the end
/// of the run, which ends the process.
pub(crate) fn start(count: usize) {
    let tally = TALLY.get_or_init(|| Tally {
        runs: (0..count).map(|_| AtomicU8::new(0)).collect(),
        count: AtomicU64::new(0),
        first_ns: AtomicU64::new(u64::MAX),
        last_ns: AtomicU64::new(0),
        waits_ns: Mutex::default(),
    });
    thread::spawn(move || {
        let mut told = 0;
        loop {
            thread::sleep(REPORT_EVERY);
            let count = tally.count.load(Relaxed);
            if count != told {
                told = count;
                let (first, last) = (tally.first_ns.load(Relaxed), tally.last_ns.load(Relaxed));
                // If the harness is gone, the report is lost, and the process ends anyway.
                let _ = say(&format!("ran {count} {first} {last}"));
            }
        }
    });
    end_with_input(move || _ = say(&tally.waited()).and_then(|()| say(&tally.seen())));
}

impl Tally {
    fn waited(&self) -> String {
        let waits = self.waits_ns.lock().unwrap_or_else(PoisonError::into_inner);
        waits.iter().fold(String::from("waited"), |mut line, wait| {
            write!(line, " {wait}").expect("writing to a string can't fail");
            line
        })
    }

    /// Returns two hexadecimal digits for each task: the number of its executions.
    fn seen(&self) -> String {
        self.runs.iter().fold(String::from("seen "), |mut line, runs| {
            write!(line, "{:02x}", runs.load(Relaxed)).expect("writing to a string can't fail");
            line
        })
    }
}
