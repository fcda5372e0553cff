//! The statistics of the world, and the calls that add to them and read them.

use std::time::Duration;

use optimus_core::{StatsUnit, TaskStats, broker::BrokerError};

use crate::{
    bench::{Bench, START},
    world::{NOW, World},
};

/// When the world counted its tasks, in the minute before that of [`NOW`].
const COUNTED: u64 = 2_000;

/// Returns the counts of one success.
pub(crate) fn one_success() -> TaskStats {
    let mut stats = TaskStats::default();
    stats.successes = 1;
    stats.record(Some(Duration::from_millis(3)), Some(Duration::from_millis(40)));
    stats
}

impl World {
    /// Counts tasks in some hours of some days.
    pub(crate) async fn tally_some(&self, bench: &Bench) {
        let days = [0, 1, 30, 31, 50].map(|hours: u64| hours * 3_600_000);
        for (number, before) in (1..).zip(days.into_iter().rev()) {
            let broker = bench.now().at(START + COUNTED - before);
            let counted = [("job", &one_success())];
            broker.tally(&bench.queue, &self.busy, number, counted).await.expect("it is alive");
        }
    }

    pub(crate) async fn tally_in(
        &self,
        bench: &Bench,
        script: &str,
        situation: &str,
    ) -> Result<(), BrokerError> {
        let broker = bench.at(if situation == "the same minute" { COUNTED } else { NOW });
        let (queue, busy) = (&bench.queue, &self.busy);
        match (script, situation) {
            ("stats", "minutes") => broker.stats(queue, StatsUnit::Minute, 120).await.map(drop),
            ("stats", "hours") => broker.stats(queue, StatsUnit::Hour, 336).await.map(drop),
            ("stats", _) => broker.stats(queue, StatsUnit::Day, 180).await.map(drop),
            _ => {
                let number = if situation == "a repeat" { 5 } else { 6 };
                broker.tally(queue, busy, number, [("job", &one_success())]).await
            }
        }
    }
}
