//! The lines that the attempts of a task have said: [`TaskLog`].

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::platform::instant;

/// The lines that the attempts of a task have said with [`Context::log`](crate::Context::log): the
/// last 100 of all attempts, and at most 8 KiB.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TaskLog {
    /// The lines, the latest last.
    pub lines: Vec<LogLine>,
    /// How many lines are not kept: earlier ones, and those that came too fast to be sent.
    pub dropped: u64,
}

/// A line that an attempt has said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LogLine {
    /// When it was said, by Redis' clock at the claim and the clock of the worker since then.
    #[serde(rename = "at_ms", with = "chrono::serde::ts_milliseconds")]
    pub at: DateTime<Utc>,
    /// The number of the attempt.
    pub attempt: u32,
    /// The text, as the handler has said it: anything but a line break.
    pub text: String,
}

impl TaskLog {
    /// Reads a log as it is stored: `<said> <kept> <fence> <last number>`, and a line for each.
    pub(crate) fn read(stored: &str) -> Self {
        let Some((head, lines)) = stored.split_once('\n') else { return Self::default() };
        // A handler may say `\r`, at which `lines` would end a line, too.
        let lines: Vec<LogLine> = lines.split_terminator('\n').filter_map(read_line).collect();
        let said: u64 = head.split(' ').next().and_then(|said| said.parse().ok()).unwrap_or(0);
        let dropped = said.saturating_sub(lines.len() as u64);
        Self { lines, dropped }
    }
}

fn read_line(line: &str) -> Option<LogLine> {
    let mut words = line.splitn(3, ' ');
    let (at_ms, attempt) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(LogLine { at: instant(at_ms), attempt, text: words.next()?.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_log_has_its_lines_and_how_many_are_missing() {
        let log = TaskLog::read("7 2 5120 4\n1000 1 copied  2\r\n2000 3 \n");
        let lines: Vec<_> = log.lines.iter().map(|line| (line.attempt, &*line.text)).collect();
        assert_eq!(lines, [(1, "copied  2\r"), (3, "")]);
        assert_eq!((log.dropped, log.lines[1].at.timestamp_millis()), (5, 2_000));
        assert_eq!(TaskLog::read(""), TaskLog::default());
    }
}
