//! What ended in several queues, added up: [`StatsSum`].

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::{
    Error,
    id::QueueName,
    inspect::Inspector,
    platform::instant,
    stats::{StatsUnit, StoredRows, TaskStats},
};

/// How many queues one write reads. Their rows are in memory at the same time.
const QUEUES_A_WRITE: usize = 8;

/// What ended in several queues, added up: by time, and by task.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StatsSum {
    /// The length of a row.
    pub unit: StatsUnit,
    /// The time of the last read, by Redis' clock.
    pub until: DateTime<Utc>,
    /// What ended, by the begin of its minute, hour or day. One in which nothing ended is absent.
    pub rows: BTreeMap<DateTime<Utc>, TaskStats>,
    /// What ended, by the name of the task; see [`OTHER_TASKS`](crate::OTHER_TASKS).
    pub tasks: BTreeMap<String, TaskStats>,
    /// The queues that are left out, because they can't be read, such as for a key that another
    /// program has written.
    pub unreadable: Vec<(QueueName, Error)>,
}

impl StatsSum {
    /// Makes a sum of nothing.
    pub fn new(unit: StatsUnit) -> Self {
        let (rows, tasks) = (BTreeMap::new(), BTreeMap::new());
        Self { unit, until: DateTime::UNIX_EPOCH, rows, tasks, unreadable: Vec::new() }
    }

    /// Adds another sum of the same unit.
    pub fn add(&mut self, other: Self) {
        self.until = self.until.max(other.until);
        self.unreadable.extend(other.unreadable);
        for (since, stats) in other.rows {
            self.rows.entry(since).or_default().add(&stats);
        }
        for (task, stats) in other.tasks {
            self.tasks.entry(task).or_default().add(&stats);
        }
    }

    /// Adds the stored rows of a queue, without a value for each row and task of it: there are
    /// hundreds of thousands of these.
    fn add_stored(&mut self, last: u32, stored: &StoredRows) {
        self.until = self.until.max(instant(stored.now_ms));
        let mut of_line = TaskStats::default();
        let (mut present, mut of_row) = (None, TaskStats::default());
        let (unit, rows, tasks) = (self.unit, &mut self.rows, &mut self.tasks);
        let mut end_row = |number: Option<u64>, stats: &TaskStats| {
            if let Some(number) = number {
                rows.entry(unit.begin_of(number)).or_default().add(stats);
            }
        };
        stored.each_line(unit, last, |number, task, line, scale| {
            if present != Some(number) {
                end_row(present, &of_row);
                of_row.clear();
                present = Some(number);
            }
            of_line.clear();
            of_line.add_line(line, scale);
            of_row.add(&of_line);
            match tasks.get_mut(task) {
                Some(stats) => stats.add(&of_line),
                None => drop(tasks.insert(task.to_owned(), of_line.clone())),
            }
        });
        end_row(present, &of_row);
    }
}

impl Inspector {
    /// Adds up what ended in these queues in the last `last` minutes, hours or days: two to five
    /// commands a queue, eight queues in a write. Queues that can't be read are in
    /// [`unreadable`](StatsSum::unreadable).
    ///
    /// ```
    /// # async fn doc(client: &optimus_core::Client) -> Result<(), optimus_core::Error> {
    /// # use optimus_core as optimus;
    /// use optimus::StatsUnit;
    ///
    /// let inspector = client.inspector();
    /// let queues = inspector.queues().await?;
    /// for (task, ended) in inspector.stats_sum(&queues, StatsUnit::Day, 30).await?.tasks {
    ///     println!("{task}: {} succeeded, {} died", ended.successes, ended.deaths);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::is_unavailable`]; [`Error::is_invalid`] if `last` is 0.
    pub async fn stats_sum(
        &self,
        queues: &[QueueName],
        unit: StatsUnit,
        last: u32,
    ) -> Result<StatsSum, Error> {
        check_last(last)?;
        let mut sum = StatsSum::new(unit);
        for part in queues.chunks(QUEUES_A_WRITE) {
            let stored = self.broker.stats_of(part, unit, last).await?;
            for (queue, stored) in part.iter().zip(stored) {
                match stored {
                    Ok(stored) => sum.add_stored(last, &stored),
                    Err(problem) => sum.unreadable.push((queue.clone(), problem.into())),
                }
            }
        }
        Ok(sum)
    }
}

/// Refuses to read nothing.
pub(crate) fn check_last(last: u32) -> Result<(), Error> {
    if last == 0 {
        return Err(Error::invalid("the statistics of 0 rows are asked for; ask for 1 or more"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Stats;

    #[test]
    fn a_sum_is_that_of_the_rows_and_tasks_of_each_queue() {
        let row = |number: u64, text: &str| format!("{number}\n{text}");
        let send = "send 120,3,1,0,0,0,724000,93000 9:80,10:44 4:120";
        let stored = StoredRows {
            now_ms: 86_400_000 * 2 + 3_700_000,
            open: [
                row(60 * 24 * 2 + 60, "send 1,0,0,0,0,0,5,0 5:1 -\ncopy 0,0,2,0,0,0,9,8 4:1,1 7:2"),
                row(24 * 2, send),
                row(2, "copy 1,0,0,0,0,1,7,7 3:2 9:1"),
            ],
            finished: vec![row(0, send), row(1, "copy 3,0,0,0,0,0,7,7 3:3 9:1"), "x".to_owned()],
        };
        for (unit, last) in [(StatsUnit::Day, 3), (StatsUnit::Day, 2), (StatsUnit::Minute, 9)] {
            let mut sum = StatsSum::new(unit);
            sum.add_stored(last, &stored);
            let one = sum.clone();
            sum.add(one);
            let stats = Stats::of(unit, last, &stored);
            assert_eq!(sum.until, stats.until);
            let twice = |mut stats: TaskStats| {
                stats.add(&stats.clone());
                stats
            };
            let rows = stats.rows.iter().map(|row| (row.since, twice(row.total())));
            assert_eq!(sum.rows, rows.collect(), "{unit:?} {last}");
            let tasks = stats.by_task().into_iter().map(|(task, stats)| (task, twice(stats)));
            assert_eq!(sum.tasks, tasks.collect(), "{unit:?} {last}");
        }
    }
}
