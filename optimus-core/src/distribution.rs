//! How long many attempts took: [`Distribution`].

use std::{iter, time::Duration};

use serde::{Serialize, Serializer, ser::SerializeStruct};

/// Counts of durations by their length, for percentiles of any number of durations. A count is of
/// the durations between two powers of √2 µs, so a percentile is at most 42 % too high. In the rows
/// of hours and days, these are powers of 2, and a percentile is less than twice the exact one. It
/// is never too low.
///
/// As JSON it has `count`, and in whole µs `mean_us`, `p50_us`, `p95_us` and `p99_us`, which are
/// null if nothing was counted.
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

    /// Returns a duration that so many percent of the durations do not exceed; `None` if nothing
    /// was counted. It is the least one of which the counts and the exact sum prove that. Numbers
    /// outside 0 to 100 count as the nearest of these.
    ///
    /// ```
    /// # use optimus_core::Distribution;
    /// # fn is_fast(run: &Distribution) -> bool {
    /// // This is never true of runs of which more than 5 % take longer than 450 ms.
    /// run.percentile(95.0).is_some_and(|time| time.as_millis() < 450)
    /// # }
    /// ```
    pub fn percentile(&self, percent: f64) -> Option<Duration> {
        let rank = self.rank(percent)?;
        // What the others take at least.
        let (mut before, mut others) = (0, 0_u64);
        for (bucket, within) in self.counted() {
            let least = self.least_us(bucket);
            if before + within < rank {
                before += within;
                others = others.saturating_add(within.saturating_mul(least));
                continue;
            }
            others = others.saturating_add((rank - before - 1).saturating_mul(least));
            for (bucket, count) in self.counted().skip_while(|(other, _)| *other <= bucket) {
                others = others.saturating_add(count.saturating_mul(self.least_us(bucket)));
            }
            // The rest of this bucket is at least as long as the one that is asked for.
            let rest = before + within - rank + 1;
            let most = self.sum_us.saturating_sub(others) / rest;
            let most = if bucket < LAST { most.min(end_us(bucket)) } else { most };
            return Some(Duration::from_micros(most.max(least)));
        }
        None
    }

    /// Returns which duration is asked for, counted from the shortest, which is 1.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts are far below 2^52, and the product is not below 0"
    )]
    fn rank(&self, percent: f64) -> Option<u64> {
        let count = self.count();
        let rank = ((percent / 100.0).clamp(0.0, 1.0) * count as f64).ceil() as u64;
        (count > 0).then(|| rank.clamp(1, count))
    }

    /// Returns the buckets that have durations, with their counts.
    fn counted(&self) -> impl Iterator<Item = (usize, u64)> {
        let buckets = self.buckets.iter().copied().enumerate();
        buckets.filter(|(_, count)| *count > 0)
    }

    /// Returns the shortest duration that may be in a bucket.
    fn least_us(&self, bucket: usize) -> u64 {
        let width = 1 + usize::from(self.is_coarse);
        bucket.checked_sub(width).map_or(0, |before| end_us(before) + 1)
    }

    /// Returns how many durations are in each bucket that has any: the longest duration that
    /// belongs to the bucket, and the count. The last bucket also has all longer durations.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> {
        self.counted().map(|(bucket, count)| (Duration::from_micros(end_us(bucket)), count))
    }

    /// Adds the durations of another distribution.
    pub fn add(&mut self, other: &Self) {
        if other.buckets.is_empty() {
            return;
        }
        if self.buckets.is_empty() {
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
        if self.buckets.is_empty() {
            self.is_coarse = is_coarse;
        }
        if is_coarse && !self.is_coarse {
            *self = self.coarse();
        }
        for (offset, count) in numbers_of(counts).enumerate() {
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
            self.buckets[bucket] = self.buckets[bucket].saturating_add(count);
        }
        self.sum_us = self.sum_us.saturating_add(sum_us);
    }
}

/// Returns the numbers of a list such as `3,0,12`. What can't be read is 0. The statistics of many
/// queues have millions of numbers, so this looks at each byte once.
pub(crate) fn numbers_of(list: &str) -> impl Iterator<Item = u64> {
    let mut left = Some(list.as_bytes());
    iter::from_fn(move || {
        let bytes = left?;
        let (mut number, mut length, mut is_number) = (0_u64, 0, true);
        for byte in bytes.iter().take_while(|byte| **byte != b',') {
            let digit = byte.wrapping_sub(b'0');
            is_number &= digit <= 9;
            number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
            length += 1;
        }
        left = bytes.get(length + 1..);
        if is_number && length > DIGITS {
            // It may be too large.
            let text = str::from_utf8(&bytes[..length]).unwrap_or_default();
            number = text.parse().unwrap_or(0);
        }
        Some(if is_number { number } else { 0 })
    })
}

/// Any number of so many digits is below 2^64.
const DIGITS: usize = 19;

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
        let whole = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let us = |found: Option<Duration>| found.map(whole);
        let mut fields = serializer.serialize_struct("Distribution", 5)?;
        fields.serialize_field("count", &self.count())?;
        fields.serialize_field("mean_us", &us(self.mean()))?;
        fields.serialize_field("p50_us", &us(self.percentile(50.0)))?;
        fields.serialize_field("p95_us", &us(self.percentile(95.0)))?;
        fields.serialize_field("p99_us", &us(self.percentile(99.0)))?;
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

/// Returns the longest duration of a bucket.
fn end_us(bucket: usize) -> u64 {
    u64::try_from((1_u128 << bucket.min(LAST)).isqrt()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "the numbers are small"
)]
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
            let bucket = bucket_of(us);
            let before = bucket.checked_sub(1).map_or(0, end_us);
            assert!(before < us && us <= end_us(bucket), "{us}: {bucket}");
        }
        assert_eq!((bucket_of(0), bucket_of(1), bucket_of(u64::MAX)), (0, 0, LAST));
    }

    #[test]
    fn a_percentile_is_never_below_the_exact_one_and_less_than_a_bucket_above_it() {
        let same = [500_000, 501_440, 503_000].map(|us| (0..44).map(|_| us).collect());
        let near: Vec<u64> = (0..44).map(|run| 500_000 + 70 * run).collect();
        let mixed = (1..400_u64).map(|n| n * n * n % 7_919 * n).collect();
        let longest = vec![1, 1 << 41, 3 << 41];
        let others = [(1..=100_000).collect(), near, mixed, longest, vec![0, 0, 1], vec![7]];
        for mut all in same.into_iter().chain(others) {
            let found = of(all.iter().copied());
            all.sort_unstable();
            for percent in [0.0, 1.0, 50.0, 90.0, 95.0, 99.0, 99.9, 100.0] {
                let exact = all[found.rank(percent).unwrap() as usize - 1];
                for (found, most) in [(&found, 1.42), (&found.coarse(), 2.0)] {
                    let us = found.percentile(percent).unwrap().as_micros() as u64;
                    assert!(exact <= us, "{percent} %: {us} of {exact}");
                    let is_near = us as f64 <= exact.max(1) as f64 * most || exact > 1 << 40;
                    assert!(is_near, "{percent} %: {us} of {exact}");
                }
            }
        }
        assert_eq!(of(1..=99_999).mean(), Some(Duration::from_millis(50)));
        assert_eq!(Distribution::default().percentile(50.0), None);
    }

    #[test]
    fn the_sum_makes_percentiles_of_few_or_equal_durations_exact() {
        let us = |found: &Distribution, percent| found.percentile(percent).unwrap().as_micros();
        let one = of([540_000]).coarse();
        assert_eq!([us(&one, 0.0), us(&one, 50.0), us(&one, 99.0)], [540_000; 3]);
        let same = of([540_000; 44]).coarse();
        assert!(us(&same, 50.0) < 556_000, "the bucket ends at 1.05 s");
        let torn = read("20:5", 3, Scale::Fine);
        assert_eq!(us(&torn, 50.0), 725, "a sum that can not be is no reason to be below a bucket");
        let json = serde_json::to_string(&of([1_500; 2])).unwrap();
        let expected = r#"{"count":2,"mean_us":1500,"p50_us":1500,"p95_us":1551,"p99_us":1551}"#;
        assert_eq!(json, expected);
    }

    #[test]
    fn a_number_of_a_list_that_can_not_be_read_is_0() {
        let read = |list| numbers_of(list).collect::<Vec<_>>();
        assert_eq!(read("3,0,12"), [3, 0, 12]);
        assert_eq!(read("18446744073709551615,18446744073709551616"), [u64::MAX, 0]);
        assert_eq!(read(",x,-1,5 ,7"), [0, 0, 0, 0, 7]);
        assert_eq!(read(""), [0]);
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
