//! The events about attempts that a worker logs, for tests: [`Log`].

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use optimus_testkit::{EachEvent, LogEvent, eventually};
use tracing::Level;

pub const PATIENCE: Duration = Duration::from_secs(20);

/// Keeps the events of a level and of more severe levels.
#[derive(Clone)]
pub struct Log {
    level: Level,
    pub lines: Arc<Mutex<Vec<LogEvent>>>,
}

impl Log {
    pub fn at(level: Level) -> Self {
        Self { level, lines: Arc::default() }
    }

    pub fn subscriber(&self) -> EachEvent {
        let lines = self.lines.clone();
        let keep = move |event| lines.lock().unwrap().push(event);
        EachEvent::new(keep).of("optimus").at(self.level)
    }

    /// Returns the lines about the ends of the tasks with this name.
    pub fn of(&self, task: &str) -> Vec<LogEvent> {
        let ends = self.lines("optimus::task").into_iter();
        ends.filter(|line| line.get("task") == task).collect()
    }

    pub fn lines(&self, target: &str) -> Vec<LogEvent> {
        let lines = self.lines.lock().unwrap();
        lines.iter().filter(|line| line.target == target).cloned().collect()
    }

    /// Returns the first line about such a task.
    pub async fn first(&self, task: &str) -> LogEvent {
        eventually("the end is logged", PATIENCE, async || !self.of(task).is_empty()).await;
        self.of(task).remove(0)
    }
}
