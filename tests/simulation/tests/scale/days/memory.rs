//! The memory that statistics, histories, logs and ended tasks take: [`Memory`].

use std::fmt::{self, Display};

use optimus_fsck::{Content, Dump};
use optimus_simulation::world::World;

use super::{KEPT, shift::KEEP};

/// The keys of the statistics, and the most bytes that a task takes there.
const STATISTICS: [&str; 4] = ["tally", "minutes", "hours", "days"];
const STATISTICS_BYTES_A_TASK: usize = 65_000;
/// The names of tasks.
const TASKS: usize = 4;
/// The looks of about ten days. A key a queue and a day would double the keys in a month.
const LOOKS: usize = 18;

/// What was seen after each shift.
#[derive(Default)]
pub(crate) struct Memory {
    keys: Vec<usize>,
    statistics: Vec<usize>,
    history: usize,
}

impl Memory {
    pub(crate) fn look(&mut self, world: &World) {
        let (mut keys, mut statistics) = (0, 0);
        for (name, queue) in world.dump() {
            let Some(place) = world.queues.position(&name) else { continue };
            let days = |name: &str| name.starts_with("success:") || name.starts_with("dead:");
            let names = || queue.keys.keys().map(String::as_str);
            let logs = names().filter(|name| name.starts_with("log:")).count();
            assert!(logs <= 2 * KEEP, "{name} has {logs} logs");
            let history: usize =
                names().filter(|name| days(name)).map(|name| bytes(&queue.keys, name)).sum();
            let of = KEPT[place];
            let [budget, kept] = [of.bytes, of.days].map(|most| usize::try_from(most).unwrap());
            assert!(history <= budget, "{name}: {history} bytes of history");
            self.history = self.history.max(history);
            let lists = names().filter(|name| days(name)).count();
            assert!(lists <= 2 * (kept + 1), "{name}: {lists} lists of days");
            let taken = STATISTICS.iter().map(|name| bytes(&queue.keys, name)).sum::<usize>();
            assert!(taken <= TASKS * STATISTICS_BYTES_A_TASK, "{name}: {taken} bytes");
            statistics += taken;
            keys += queue.keys.len() - lists;
        }
        self.keys.push(keys);
        self.statistics.push(statistics);
    }

    /// Expects that the number of keys does not grow with the days, but for a list for each day.
    pub(crate) fn expect_bounds(&self) {
        let mean = |keys: &[usize]| keys.iter().sum::<usize>() / keys.len();
        let (first, last) = (&self.keys[..LOOKS], &self.keys[self.keys.len() - LOOKS..]);
        assert!(mean(last) * 10 <= mean(first) * 13, "{:?}", self.keys);
    }
}

impl Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = |all: &[usize]| all.last().copied().unwrap_or_default();
        let (keys, statistics) = (last(&self.keys), last(&self.statistics));
        let history = self.history;
        write!(f, "{keys} keys, {statistics} bytes of statistics, {history} of the largest history")
    }
}

/// Returns the bytes of a key's content.
fn bytes(keys: &Dump, name: &str) -> usize {
    match keys.get(name) {
        Some(Content::List(items)) => items.iter().map(Vec::len).sum(),
        Some(Content::Hash(pairs) | Content::Zset(pairs)) => {
            pairs.iter().map(|(field, value)| field.len() + value.len()).sum()
        }
        Some(Content::Text(text)) => text.len(),
        None => 0,
    }
}
