//! `tally` and `stats`: the statistics of a queue.

use redis::Value;

use super::{
    BATCH_MAX, Broker, BrokerError, Reply, ScriptCall, inspect::get, overview::of_one_queue,
    reply::plain_list, scripts,
};
use crate::{
    id::{QueueName, WorkerId},
    stats::{Stats, StatsUnit, StoredRows, TaskStats},
};

impl Broker {
    /// Returns the call that adds what a worker has counted. A repeat under the same number changes
    /// nothing.
    pub fn tally_call<'a>(
        &self,
        queue: &QueueName,
        worker: &WorkerId,
        number: u64,
        counted: impl IntoIterator<Item = (&'a str, &'a TaskStats)>,
    ) -> ScriptCall {
        let mut call = self.call(&scripts::TALLY, queue, worker.as_str()).arg(number);
        for (task, stats) in counted {
            call.push(stats.line(task));
        }
        call
    }

    /// Adds what a worker has counted.
    pub async fn tally<'a>(
        &self,
        queue: &QueueName,
        worker: &WorkerId,
        number: u64,
        counted: impl IntoIterator<Item = (&'a str, &'a TaskStats)>,
    ) -> Result<(), BrokerError> {
        self.run(self.tally_call(queue, worker, number, counted)).await.map(drop)
    }

    /// Reads the statistics of the last `last` minutes, hours or days.
    pub async fn stats(
        &self,
        queue: &QueueName,
        unit: StatsUnit,
        last: u32,
    ) -> Result<Stats, BrokerError> {
        let mut found = self.stats_of(std::slice::from_ref(queue), unit, last).await?;
        Ok(Stats::of(unit, last, &found.pop().expect("one for each queue")?))
    }

    /// Reads what is stored of the last `last` minutes, hours or days of each queue, in one write.
    /// Finished rows do not change, so plain commands read them, which cost Redis a quarter of a
    /// script that does. The script reads the open rows, and again the latest finished ones: a row
    /// may be finished between the commands. A queue that Redis can't read has that error, and the
    /// others are read.
    pub(crate) async fn stats_of(
        &self,
        queues: &[QueueName],
        unit: StatsUnit,
        last: u32,
    ) -> Result<Vec<Result<StoredRows, BrokerError>>, BrokerError> {
        let pages = pages_of(last.min(unit.kept()) as usize);
        let mut commands = Vec::new();
        for queue in queues {
            let key = self.keys(queue).of(unit.key());
            let page = |(from, to): &(String, String)| get(&["LRANGE", &key, from, to]);
            commands.extend(pages.iter().map(page));
        }
        let mut finished = self.read(commands).await.into_iter();
        let call =
            |queue: &QueueName| self.call(&scripts::STATS, queue, "").arg(unit.key()).arg(LATEST);
        let mut found = Vec::with_capacity(queues.len());
        for open in self.run_all(queues.iter().map(call).collect()).await {
            let rows: Vec<_> = finished.by_ref().take(pages.len()).collect();
            found.push(of_one_queue(read_stats(open, rows))?);
        }
        Ok(found)
    }
}

/// How many of the latest finished rows are read with the open ones.
const LATEST: usize = 2;

/// Returns the places of the last `last` rows of a list, in ranges of at most
/// [`BATCH_MAX`](super::BATCH_MAX), the latest first. If a row is added between the reads of two
/// ranges, the second has a row of the first again, and none is left out.
fn pages_of(last: usize) -> Vec<(String, String)> {
    let firsts = (1..=last).step_by(BATCH_MAX);
    firsts.map(|to| (format!("-{}", last.min(to + BATCH_MAX - 1)), format!("-{to}"))).collect()
}

fn text_of(row: Vec<u8>) -> String {
    // A row that is not text was not written by a worker, and counts as nothing.
    String::from_utf8(row).unwrap_or_default()
}

fn read_stats(
    open: Result<Reply, BrokerError>,
    pages: Vec<Result<Value, BrokerError>>,
) -> Result<StoredRows, BrokerError> {
    let (mut open, mut finished) = (open?, Vec::new());
    for page in pages.into_iter().rev() {
        let page: Vec<String> = plain_list("LRANGE", page?)?.into_iter().map(text_of).collect();
        let first = page.first().filter(|row| !row.is_empty());
        let again = finished.iter().rposition(|row| Some(row) == first);
        finished.truncate(again.unwrap_or(finished.len()));
        finished.extend(page);
    }
    let now_ms = open.number()?;
    let rows = [open.text()?, open.text()?, open.text()?];
    for row in open.rest()? {
        let latest = finished.len().saturating_sub(LATEST);
        if !finished[latest..].contains(&row) {
            finished.push(row);
        }
    }
    Ok(StoredRows { now_ms, open: rows, finished })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    #[test]
    fn pages_have_each_row_once() {
        let pages = |last| pages_of(last).into_iter().map(|(from, to)| format!("{from}..{to}"));
        assert_eq!(pages(1).collect::<Vec<_>>(), ["-1..-1"]);
        assert_eq!(pages(128).collect::<Vec<_>>(), ["-128..-1"]);
        assert_eq!(pages(180).collect::<Vec<_>>(), ["-128..-1", "-180..-129"]);
        assert_eq!(pages(336).collect::<Vec<_>>(), ["-128..-1", "-256..-129", "-336..-257"]);
    }

    #[test]
    fn rows_that_are_added_between_two_pages_hide_none() {
        let row = |number: usize| bulk(&number.to_string());
        let before: Vec<Value> = (0..200).map(row).collect();
        let after: Vec<Value> = (0..203).map(row).collect();
        let page = |rows: &[Value], (from, to): &(String, String)| {
            let place = |text: &str| rows.len() - text[1..].parse::<usize>().expect("a place");
            Value::Array(rows[place(from)..=place(to)].to_vec())
        };
        let pages: Vec<_> = pages_of(180).into_iter().zip([&before, &after]).collect();
        let pages = pages.iter().map(|(range, rows)| Ok(page(rows, range))).collect();
        let open = Value::Array(["OK", "5", "", "", ""].map(bulk).to_vec());
        let open = Reply::new("stats", open).expect("it is a reply");

        let found = read_stats(Ok(open), pages).expect("the rows can be read").finished;

        let rows: Vec<usize> = found.iter().map(|row| row.parse().expect("a row")).collect();
        assert_eq!(rows, (23..200).collect::<Vec<_>>());
    }
}
