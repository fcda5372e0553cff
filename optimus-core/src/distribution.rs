//! How long many attempts took: [`Distribution`].

use std::time::Duration;

use serde::{Serialize, Serializer, ser::SerializeStruct};

/// Counts of durations by their length, for percentiles of any number of durations. A count is of
/// the durations between two powers of √2 µs, so a percentile is off by at most 19 %. In the rows
/// of hours and days, these are powers of 2, and a percentile is off by at most 42 %.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Distribution {
    /// Bucket k has the durations up to 2^(k/2) µs that are in no earlier one.
    buckets: Vec<u64>,
    sum_us: u64,
    /// Whether only each second bucket is used.
    is_coarse: bool,
}

/// The last bucket, which has all longer durations: up to 12.7 days.
const LAST: usize = 80;

/// The word for a distribution without a duration.
const NOTHING: &str = "-";

impl Distribution {
    /// Returns how many durations were counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns the sum of all durations, which is exact.
    pub fn sum(&self) -> Duration {
        Duration::from_micros(self.sum_us)
    }

    /// Returns the mean, which is exact; `None` if nothing was counted.
    pub fn mean(&self) -> Option<Duration> {
        Some(Duration::from_micros(self.sum_us.checked_div(self.count())?))
    }

    /// Returns the duration below which this percentage of the durations is; `None` if nothing was
    /// counted. Numbers outside 0 to 100 count as the nearest of these.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub fn percentile(&self, percent: f64) -> Option<Duration> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = (percent / 100.0).clamp(0.0, 1.0) * count as f64;
        let (mut below, mut found) = (0.0, 0.0);
        for (bucket, within) in self.buckets.iter().enumerate().filter(|(_, within)| **within > 0) {
            found = end_us(bucket);
            below += *within as f64;
            if below >= rank {
                break;
            }
        }
        // The middle of a bucket is nearest to all that may be in it.
        let width = if self.is_coarse { 2.0_f64 } else { 2.0_f64.sqrt() };
        Some(micros(found / width.sqrt()))
    }

    /// Returns how many durations are in each bucket that has any: the longest duration that
    /// belongs to the bucket, and the count. The last bucket also has all longer durations.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> {
        let counted = self.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        counted.map(|(bucket, count)| (micros(end_us(bucket)), *count))
    }

    /// Adds the durations of another distribution.
    pub fn add(&mut self, other: &Self) {
        if other.count() == 0 {
            return;
        }
        if self.count() == 0 {
            self.is_coarse = other.is_coarse;
        }
        if other.is_coarse && !self.is_coarse {
            *self = self.coarse();
        }
        let coarse;
        let other = if self.is_coarse && !other.is_coarse {
            coarse = other.coarse();
            &coarse
        } else {
            other
        };
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (own, added) in self.buckets.iter_mut().zip(&other.buckets) {
            *own += added;
        }
        self.sum_us = self.sum_us.saturating_add(other.sum_us);
    }

    /// Forgets all, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.buckets.clear();
        (self.sum_us, self.is_coarse) = (0, false);
    }

    /// Counts a duration.
    pub(crate) fn record(&mut self, duration: Duration) {
        let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let bucket = bucket_of(us);
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.sum_us = self.sum_us.saturating_add(us);
    }

    fn coarse(&self) -> Self {
        let mut buckets = vec![0; self.buckets.len().next_multiple_of(2) + 1];
        for (bucket, count) in self.buckets.iter().enumerate() {
            buckets[bucket.next_multiple_of(2)] += count;
        }
        Self { buckets, sum_us: self.sum_us, is_coarse: true }
    }

    pub(crate) fn sum_us(&self) -> u64 {
        self.sum_us
    }

    /// Returns the text of a row: `<first bucket>:<count>,<count>…`.
    pub(crate) fn text(&self) -> String {
        let Some(first) = self.buckets.iter().position(|count| *count > 0) else {
            return NOTHING.to_owned();
        };
        let last = self.buckets.iter().rposition(|count| *count > 0).unwrap_or(first);
        let counts = self.buckets[first..=last].iter().map(u64::to_string);
        format!("{first}:{}", counts.collect::<Vec<_>>().join(","))
    }

    /// Adds the text of a row; what can't be read counts as nothing.
    pub(crate) fn add_text(&mut self, text: &str, sum_us: u64, scale: Scale) {
        let Some((first, counts)) = text.split_once(':') else { return };
        let Ok(first) = first.parse::<usize>() else { return };
        let is_coarse = matches!(scale, Scale::Coarse);
        if self.count() == 0 {
            self.is_coarse = is_coarse;
        }
        if is_coarse && !self.is_coarse {
            *self = self.coarse();
        }
        for (offset, count) in counts.split(',').enumerate() {
            let bucket = first.saturating_add(offset);
            // Two fine buckets are one coarse one, which has the number of the second.
            let bucket = match (is_coarse, self.is_coarse) {
                (true, _) => bucket.saturating_mul(2),
                (false, true) => bucket.saturating_add(bucket % 2),
                (false, false) => bucket,
            };
            let bucket = bucket.min(LAST);
            if self.buckets.len() <= bucket {
                self.buckets.resize(bucket + 1, 0);
            }
            let count = count.parse().unwrap_or(0);
            self.buckets[bucket] = self.buckets[bucket].saturating_add(count);
        }
        self.sum_us = self.sum_us.saturating_add(sum_us);
    }
}

/// The width of the buckets of a stored row.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scale {
    /// Powers of √2 µs.
    Fine,
    /// Powers of 2 µs.
    Coarse,
}

/// The numbers that people look at.
impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ms = |duration: Option<Duration>| duration.map(|found| found.as_secs_f64() * 1_000.0);
        let mut fields = serializer.serialize_struct("Distribution", 5)?;
        fields.serialize_field("count", &self.count())?;
        fields.serialize_field("mean_ms", &ms(self.mean()))?;
        fields.serialize_field("p50_ms", &ms(self.percentile(50.0)))?;
        fields.serialize_field("p95_ms", &ms(self.percentile(95.0)))?;
        fields.serialize_field("p99_ms", &ms(self.percentile(99.0)))?;
        fields.end()
    }
}

/// Returns the first bucket whose end is not below this many µs.
fn bucket_of(us: u64) -> usize {
    let us = u128::from(us.max(1));
    let octave = us.ilog2() as usize;
    let bucket = if us == 1 << octave {
        2 * octave
    } else if us * us <= 1 << (2 * octave + 1) {
        2 * octave + 1
    } else {
        2 * octave + 2
    };
    bucket.min(LAST)
}

fn end_us(bucket: usize) -> f64 {
    let halves = f64::from(u32::try_from(bucket.min(LAST)).unwrap_or(0));
    (halves / 2.0).exp2()
}

fn micros(us: f64) -> Duration {
    Duration::from_secs_f64(us.max(0.0) / 1_000_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, sum_us: u64, scale: Scale) -> Distribution {
        let mut found = Distribution::default();
        found.add_text(text, sum_us, scale);
        found
    }

    fn of(us: impl IntoIterator<Item = u64>) -> Distribution {
        let mut found = Distribution::default();
        us.into_iter().for_each(|us| found.record(Duration::from_micros(us)));
        found
    }

    #[test]
    fn each_duration_is_in_the_first_bucket_that_does_not_end_before_it() {
        for us in (1..5_000).chain([1 << 20, (1 << 20) + 1, (1 << 40) - 1, 1 << 40]) {
            let (bucket, us) = (bucket_of(us), Duration::from_micros(us).as_secs_f64() * 1e6);
            let before = bucket.checked_sub(1).map_or(0.0, end_us);
            assert!(before < us && us <= end_us(bucket) + 1e-3, "{us}: {bucket}");
        }
        assert_eq!((bucket_of(0), bucket_of(1), bucket_of(u64::MAX)), (0, 0, LAST));
    }

    #[test]
    fn percentiles_are_near_the_exact_ones_also_after_two_buckets_became_one() {
        let all = of(1..=100_000);
        for percent in [1.0, 50.0, 90.0, 95.0, 99.0, 99.9] {
            let exact = percent * 1_000.0;
            for (found, most) in [(&all, 0.19), (&all.coarse(), 0.42)] {
                let us = found.percentile(percent).unwrap().as_secs_f64() * 1e6;
                assert!((us / exact - 1.0).abs() <= most, "{percent} %: {us} of {exact}");
            }
        }
        assert_eq!(all.mean(), Some(Duration::from_millis(50)));
        assert_eq!(Distribution::default().percentile(50.0), None);
    }

    #[test]
    fn a_text_is_read_as_it_was_written_and_coarse_ones_add_to_fine_ones() {
        let all = of([1, 3, 3, 900, 70_000]);
        assert_eq!(read(&all.text(), all.sum_us(), Scale::Fine), all);
        assert_eq!(Distribution::default().text(), NOTHING);
        for strange in ["", "-", "x:1", "5", "99999999999999999999:1"] {
            assert_eq!(read(strange, 0, Scale::Fine).count(), 0, "{strange}");
        }
        let coarse = read("10:2,0,1", 3_000, Scale::Coarse);
        let mut both = all.clone();
        both.add(&coarse);
        let mut other = coarse.clone();
        other.add(&all);
        assert_eq!(both, other);
        assert_eq!((both.count(), both.sum_us()), (8, all.sum_us() + 3_000));
    }
}
