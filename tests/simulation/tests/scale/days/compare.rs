//! Compares what the store has of the ends of tasks with the reference: [`Compare`].

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, NaiveDate, Utc};
use optimus_core::{Client, HistoryFilter, QueueName, StatsUnit, TaskState, TaskStats};
use optimus_simulation::world::World;

use super::{
    DAY_MS, Harm, KEPT, TIGHT,
    ended::{Ended, Way},
};

/// The queue whose history has each end of the run.
const ALL_IN_HISTORY: usize = 0;

/// A comparison of all queues at one time.
#[derive(Clone, Copy)]
pub(crate) struct Compare<'a> {
    pub(crate) client: &'a Client,
    pub(crate) ended: &'a [Ended],
    pub(crate) harm: Harm,
    /// Whether it is the last one of the run.
    pub(crate) is_last: bool,
}

/// How many ends surely are in a row, and how many may be.
#[derive(Clone, Copy, Debug, Default)]
struct Bounds {
    sure: u64,
    possible: u64,
}

impl Compare<'_> {
    pub(crate) async fn all(&self, world: &World) {
        for (place, queue) in world.queues.names().iter().enumerate() {
            self.totals(place, queue).await;
            for unit in [StatsUnit::Minute, StatsUnit::Hour, StatsUnit::Day] {
                self.statistics(place, queue, unit).await;
            }
            self.history(place, queue).await;
        }
    }

    fn of(&self, place: usize, way: Way) -> impl Iterator<Item = &Ended> {
        self.ended.iter().filter(move |ended| (ended.queue, ended.way) == (place, way))
    }

    async fn totals(&self, place: usize, queue: &QueueName) {
        let totals = self.client.inspector().totals(queue).await.unwrap();
        let count = |way| self.of(place, way).count() as u64;
        let found = (totals.successes, totals.deaths);
        assert_eq!(found, (count(Way::Success), count(Way::Death)), "{queue}");
        // A task may be cancelled before an attempt, of which the reference knows nothing.
        assert!(totals.cancels >= count(Way::Cancel), "{queue}: {totals:?}");
        if self.harm == Harm::Nothing {
            assert_eq!((totals.retries, totals.losses), (count(Way::Retry), 0), "{queue}");
        }
    }

    async fn statistics(&self, place: usize, queue: &QueueName, unit: StatsUnit) {
        let stats = self.client.inspector().stats(queue, unit, unit.kept()).await.unwrap();
        let length = u64::try_from(unit.length().as_millis()).unwrap();
        let since = ms(stats.until) / length + 1 - u64::from(unit.kept());
        let mut found: BTreeMap<(u64, &str), &TaskStats> = BTreeMap::new();
        for row in &stats.rows {
            for (task, stats) in &row.tasks {
                found.insert((ms(row.since) / length, task), stats);
            }
        }
        let mut ways = vec![Way::Success, Way::Death, Way::Cancel];
        if self.harm == Harm::Nothing {
            ways.extend([Way::Retry, Way::Snooze]);
        }
        for way in ways {
            let mut known: BTreeMap<(u64, &str), Bounds> = BTreeMap::new();
            let mut sum = Bounds::default();
            for ended in self.of(place, way) {
                let (first, last) = (ended.counted.0 / length, ended.counted.1 / length);
                for row in first.max(since)..=last {
                    let bounds = known.entry((row, ended.task)).or_default();
                    bounds.possible += 1;
                    bounds.sure += u64::from(first == last && ended.is_counted);
                }
                sum.possible += u64::from(last >= since);
                sum.sure += u64::from(first >= since && ended.is_counted);
            }
            let mut total = 0;
            let rows: BTreeSet<_> = known.keys().chain(found.keys()).copied().collect();
            for row in rows {
                let Bounds { sure, possible } = known.get(&row).copied().unwrap_or_default();
                let count = found.get(&row).map_or(0, |stats| count(stats, way));
                total += count;
                let at = (queue.as_str(), unit, row, way);
                assert!((sure..=possible).contains(&count), "{at:?}: {count}, {sure}, {possible}");
            }
            let at = (queue.as_str(), unit, way);
            assert!((sum.sure..=sum.possible).contains(&total), "{at:?}: {total}, {sum:?}");
        }
    }

    /// Compares the lines of each day. The oldest ones have left a queue with too many bytes.
    async fn history(&self, place: usize, queue: &QueueName) {
        let kept = KEPT[place];
        let inspector = self.client.inspector();
        let details = inspector.history_details(queue).await.unwrap();
        let today = ms(inspector.now().await.unwrap()) / DAY_MS;
        assert!(details.bytes <= kept.bytes, "{queue}: {} bytes", details.bytes);
        let first = today + 1 - kept.days;
        let mut days = details.days.iter().map(|day| number_of(day.day));
        // The last purge may have been before midnight.
        assert!(days.all(|day| day + 1 >= first), "{queue}: {:?}", details.days);
        // A success comes to its day long after its end, so each kind begins by itself.
        let mut has_begun = [kept.bytes != TIGHT; 2];
        let (mut lines, mut gone) = (0, 0);
        // The clock of the store may have been ahead.
        for day in first..=today + 1 {
            for (state, way) in [(TaskState::Success, Way::Success), (TaskState::Dead, Way::Death)]
            {
                let (has, lacks) = self.day(place, queue, day, (state, way)).await;
                let kind = usize::from(state == TaskState::Dead);
                // A purge may have removed the first day when the clock was ahead, past midnight.
                let may_be_gone = day == first && self.harm == Harm::KillsAndClocks;
                assert!(
                    lacks == 0 || may_be_gone || !has_begun[kind],
                    "{queue} lacks {lacks} {state} of day {day}"
                );
                (lines, gone) = (lines + has, gone + lacks);
                // The list in which the kept lines begin may lack its first ones.
                has_begun[kind] |= details.days.iter().any(|kept| {
                    let bytes = [kept.success_bytes, kept.dead_bytes];
                    number_of(kept.day) == day && bytes[kind] > 0
                });
            }
        }
        assert!(lines > 0, "{queue}");
        assert!(gone > 0 || kept.bytes != TIGHT || !self.is_last, "{queue}: none has left");
        if place == ALL_IN_HISTORY {
            let ends = self.of(place, Way::Success).chain(self.of(place, Way::Death)).count();
            assert_eq!(lines, ends as u64, "{queue}: each end is on one day");
        }
    }

    /// Returns how many lines a day has of tasks that ended so, and how many it lacks.
    async fn day(
        &self,
        place: usize,
        queue: &QueueName,
        day: u64,
        (state, way): (TaskState, Way),
    ) -> (u64, u64) {
        let (found, names) = (self.lines(queue, day, state).await, KEPT[place].tasks);
        let (mut sure, mut possible) = (BTreeMap::new(), BTreeMap::new());
        for ended in self.of(place, way) {
            let days = (ended.reported.0 / DAY_MS, ended.reported.1 / DAY_MS);
            // The last thousand successes are there whatever their names are.
            if (days.0..=days.1).contains(&day) {
                *possible.entry(ended.id.to_string()).or_default() += 1;
            }
            if days == (day, day) && (names.is_empty() || names.contains(&ended.task)) {
                *sure.entry(ended.id.to_string()).or_default() += 1;
            }
        }
        assert_eq!(lacking(&found, &possible), 0, "{queue} has a {state} of day {day} of no end");
        (found.values().sum(), lacking(&sure, &found))
    }

    /// Returns how many lines each task has on a day.
    async fn lines(&self, queue: &QueueName, day: u64, state: TaskState) -> BTreeMap<String, u64> {
        let filter = HistoryFilter::day(date(day)).state(state);
        let (mut after, mut found) = (None, BTreeMap::new());
        let inspector = self.client.inspector();
        loop {
            let page = inspector.history(queue, &filter, after.as_ref(), 500).await.unwrap();
            for row in page.rows {
                *found.entry(row.id.to_string()).or_default() += 1;
            }
            after = page.next;
            if after.is_none() {
                return found;
            }
        }
    }
}

/// Returns how many of the wanted are not present.
fn lacking(wanted: &BTreeMap<String, u64>, present: &BTreeMap<String, u64>) -> u64 {
    let lacks = |(id, count): (&String, &u64)| {
        count.saturating_sub(present.get(id).copied().unwrap_or_default())
    };
    wanted.iter().map(lacks).sum()
}

fn count(stats: &TaskStats, way: Way) -> u64 {
    match way {
        Way::Success => stats.successes,
        Way::Death => stats.deaths,
        Way::Cancel => stats.cancels,
        Way::Retry => stats.retries,
        Way::Snooze => stats.snoozes,
    }
}

fn ms(at: DateTime<Utc>) -> u64 {
    u64::try_from(at.timestamp_millis()).unwrap()
}

fn number_of(day: NaiveDate) -> u64 {
    ms(day.and_hms_opt(0, 0, 0).unwrap().and_utc()) / DAY_MS
}

fn date(day: u64) -> NaiveDate {
    let at = i64::try_from(day * DAY_MS).unwrap();
    DateTime::from_timestamp_millis(at).unwrap().date_naive()
}
