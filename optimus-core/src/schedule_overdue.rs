//! Why no worker ticks a schedule that is due: [`Overdue`].

use std::{fmt, time::Duration};

use crate::{inspect::WorkerDetails, platform::instant, schedule_details::ScheduleDetails};

/// A schedule that is due, and that no worker ticks. As text it is
/// `overdue by 3 min: no worker serves the queue`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Overdue {
    /// For how long it is due.
    pub late: Duration,
    /// Why, as far as the workers of its queue show it.
    pub cause: OverdueCause,
}

/// Why no worker ticks a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OverdueCause {
    /// No worker serves its queue.
    Unserved,
    /// It comes from the code of a program, and no worker of its queue knows its task.
    NotInCode,
    /// Workers of its queue know its task, and do not tick it. Their logs may say why.
    Unknown,
}

impl ScheduleDetails {
    /// Returns for how long the schedule is due and why nobody ticks it, if it
    /// [is overdue](Self::is_overdue). `workers` are those of its queue, which
    /// [`Inspector::workers`](crate::Inspector::workers) reads.
    pub fn overdue(&self, workers: &[WorkerDetails]) -> Option<Overdue> {
        let next = self.next.filter(|_| self.is_overdue())?;
        let now = instant(self.now_ms);
        let mut live = workers.iter().filter(|worker| worker.lease_until > now).peekable();
        let task = self.record.as_ref().map_or("", |record| &record.task);
        let is_of_code = self.release.is_some() && !task.is_empty();
        let cause = if live.peek().is_none() {
            OverdueCause::Unserved
        } else if is_of_code
            && !live.any(|worker| worker.description.tasks.iter().any(|known| known == task))
        {
            OverdueCause::NotInCode
        } else {
            OverdueCause::Unknown
        };
        Some(Overdue { late: (now - next).to_std().unwrap_or_default(), cause })
    }
}

impl fmt::Display for Overdue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "overdue by {}: {}", span_text(self.late), self.cause)
    }
}

impl fmt::Display for OverdueCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unserved => "no worker serves the queue",
            Self::NotInCode => "no worker of the queue has it in its code",
            Self::Unknown => "no worker ticks it, though some serve the queue",
        })
    }
}

/// Prints a time in its largest unit, such as `3 min`.
fn span_text(span: Duration) -> String {
    match span.as_secs() {
        seconds @ 0..=59 => format!("{seconds} s"),
        seconds @ 60..=3_599 => format!("{} min", seconds / 60),
        seconds @ 3_600..=86_399 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_overdue_by_its_largest_unit() {
        let text = |seconds| {
            let late = Duration::from_secs(seconds);
            Overdue { late, cause: OverdueCause::Unserved }.to_string()
        };
        assert_eq!(text(59), "overdue by 59 s: no worker serves the queue");
        let spans = [60, 3_599, 3_600, 86_399, 86_400]
            .map(|seconds| span_text(Duration::from_secs(seconds)));
        assert_eq!(spans, ["1 min", "59 min", "1 h", "23 h", "1 d"]);
    }
}
