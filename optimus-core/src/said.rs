//! What a handler says of its attempt: how far it has come, and lines for the log of the task.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::{
    context::Context,
    log_desk::{AttemptLog, LogSeat},
    task_progress::TaskProgress,
};

/// What the handler of one attempt has said.
#[derive(Debug)]
pub(crate) struct Said {
    /// What it has said last of how far it has come.
    progress: Mutex<Option<TaskProgress>>,
    /// The lines that it has said, once there is one.
    log: OnceLock<Arc<AttemptLog>>,
    /// Where these go. Without a worker, nobody keeps them.
    seat: Option<LogSeat>,
}

impl Said {
    pub(crate) fn new(seat: Option<LogSeat>) -> Self {
        Self { progress: Mutex::default(), log: OnceLock::new(), seat }
    }
}

impl Context {
    /// Says how far this attempt has come, for operators: the part that is done, from 0 to 1, and
    /// up to 100 characters, or `""`. [`Inspector::processes`](crate::Inspector::processes) and
    /// `optimus process show` have the last one of each running task.
    ///
    /// The worker sends it every 5 s with what else it says of itself, so it costs no call of
    /// Redis, however often a handler says it. Nothing is left of it when the attempt ends.
    ///
    /// ```
    /// # fn doc(ctx: &optimus_core::Context, files: &[String]) {
    /// for (done, file) in files.iter().enumerate() {
    ///     ctx.progress(done as f64 / files.len() as f64, file);
    /// }
    /// # }
    /// ```
    pub fn progress(&self, part: f64, text: impl AsRef<str>) {
        let progress = TaskProgress::new(part, text.as_ref());
        *self.said().0.progress.lock().unwrap_or_else(PoisonError::into_inner) = Some(progress);
    }

    /// Adds a line to the log of the task, for operators; each line of a text is one.
    /// [`TaskDetails::log`](crate::TaskDetails::log) and `optimus task show` have the last 100
    /// lines of all attempts, up to 8 KiB, and 500 bytes of each line.
    ///
    /// The worker sends the lines of all its tasks together, each second at most, so a handler may
    /// say as many lines as it likes. If it says more than 100 in a second, or the worker has more
    /// than 16 MiB to send, the earlier ones are dropped and counted. A worker that is killed loses
    /// the lines of the last second. The log is removed with a task that died or was cancelled, and
    /// a day after the last line of one that succeeded. A queue keeps at most 8,192 logs, those
    /// with the latest lines.
    ///
    /// A `perform_inline` keeps no lines. In a run of gathered calls, they belong to the first one.
    ///
    /// ```
    /// # fn doc(ctx: &optimus_core::Context, file: &str, bytes: usize) {
    /// ctx.log(format!("{file}: {bytes} bytes copied"));
    /// # }
    /// ```
    pub fn log(&self, text: impl AsRef<str>) {
        let (Said { log, seat, .. }, attempt) = self.said();
        if let Some(seat) = seat {
            let log = log.get_or_init(|| seat.log(attempt));
            seat.desk.say(log, text.as_ref());
        }
    }

    /// Returns what was last said with [`progress`](Self::progress); for workers.
    #[doc(hidden)]
    pub fn last_progress(&self) -> Option<TaskProgress> {
        self.said().0.progress.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
