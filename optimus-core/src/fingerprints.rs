//! The dead tasks of a queue by their causes: [`Fingerprints`].

use std::{
    cmp::Reverse,
    collections::{BTreeMap, btree_map::Entry},
};

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::{
    Error,
    broker::DeadGroups,
    fingerprint::Fingerprint,
    id::{QueueName, TaskId},
    inspect::{Inspector, read_error},
    platform::instant,
    record::TaskRecord,
    state::{AttemptError, Reason},
};

/// How many dead tasks one read looks at.
const DEAD_MAX: u64 = 10_000;
/// How many rows have the error of their sample.
const SAMPLES_MAX: usize = 50;

/// The dead tasks of a queue, by the fingerprints of their last errors.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct Fingerprints {
    /// One row for each fingerprint, those with most dead tasks first.
    pub rows: Vec<FingerprintRow>,
    /// How many dead tasks were read, the oldest first: at most about 10,000.
    pub scanned: u64,
    /// How many tasks are dead.
    pub dead: u64,
}

/// Dead tasks with the same cause.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FingerprintRow {
    /// What their last errors have in common. `None` for errors that no worker wrote, such as
    /// losses, or that a worker of an earlier release wrote: these have one row for each reason.
    pub fingerprint: Option<Fingerprint>,
    /// Why the last attempts did not succeed; `None` if it is not known.
    pub reason: Option<Reason>,
    /// How many of the tasks that were read.
    pub dead: u64,
    /// When the first of these tasks died, by Redis' clock.
    pub first: DateTime<Utc>,
    /// When the last of these tasks died.
    pub last: DateTime<Utc>,
    /// The task that died last.
    pub sample: TaskId,
    /// The name of that task. `None` if it can't be read, or has left meanwhile; also in the rows
    /// after the first 50.
    pub task: Option<String>,
    /// The last error of that task, under the same conditions.
    pub error: Option<AttemptError>,
}

impl FingerprintRow {
    /// Returns the first line of the sample's message, with `#` instead of numbers, ids and quoted
    /// parts.
    pub fn outline(&self) -> Option<String> {
        self.error.as_ref().map(|error| Fingerprint::outline(&error.message))
    }
}

impl Fingerprints {
    fn of(found: DeadGroups) -> Self {
        let mut rows: BTreeMap<(String, String), FingerprintRow> = BTreeMap::new();
        for group in found.groups {
            let (first, last) = (instant(group.first_ms), instant(group.last_ms));
            match rows.entry((group.fingerprint, group.reason)) {
                Entry::Vacant(entry) => {
                    let (fingerprint, reason) = entry.key();
                    let row = FingerprintRow {
                        fingerprint: fingerprint.parse().ok(),
                        reason: Reason::from_word(reason),
                        dead: group.dead,
                        first,
                        last,
                        sample: group.sample,
                        task: None,
                        error: None,
                    };
                    entry.insert(row);
                }
                Entry::Occupied(entry) => {
                    let row = entry.into_mut();
                    row.dead += group.dead;
                    row.first = row.first.min(first);
                    if last >= row.last {
                        (row.last, row.sample) = (last, group.sample);
                    }
                }
            }
        }
        let mut rows: Vec<_> = rows.into_values().collect();
        rows.sort_by_key(|row| Reverse((row.dead, row.last)));
        Self { rows, scanned: found.read, dead: found.dead }
    }
}

/// A row as JSON: the fields, and the outline.
impl Serialize for FingerprintRow {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut fields = serializer.serialize_struct("FingerprintRow", 9)?;
        fields.serialize_field("fingerprint", &self.fingerprint)?;
        fields.serialize_field("reason", &self.reason)?;
        fields.serialize_field("dead", &self.dead)?;
        fields.serialize_field("first_ms", &self.first.timestamp_millis())?;
        fields.serialize_field("last_ms", &self.last.timestamp_millis())?;
        fields.serialize_field("sample", &self.sample.to_string())?;
        fields.serialize_field("task", &self.task)?;
        fields.serialize_field("outline", &self.outline())?;
        fields.serialize_field("error", &self.error.as_ref().map(AttemptError::to_json))?;
        fields.end()
    }
}

impl Inspector {
    /// Groups the dead tasks of a queue by the [`Fingerprint`] of their last errors, so that one
    /// cause has one row, however many tasks it has killed.
    ///
    /// Each call reads about 10,000 dead tasks at most, in steps of 500, and the first 50 samples.
    /// It takes Redis about 1 µs for each dead task.
    ///
    /// ```
    /// # async fn doc(client: &optimus_core::Client) -> Result<(), optimus_core::Error> {
    /// let found = client.inspector().fingerprints("mail").await?;
    /// for row in &found.rows {
    ///     let cause = row.outline().unwrap_or_default();
    ///     println!("{} dead since {}: {cause}", row.dead, row.first);
    /// }
    /// println!("{} of {} dead tasks", found.scanned, found.dead);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::is_unavailable`].
    pub async fn fingerprints(&self, queue: impl AsRef<str>) -> Result<Fingerprints, Error> {
        let queue = &QueueName::new(queue)?;
        let mut found = Fingerprints::of(self.broker.dead_groups(queue, DEAD_MAX).await?);
        for row in found.rows.iter_mut().take(SAMPLES_MAX) {
            let sample = self.broker.inspect(&row.sample).await?;
            row.error = sample.errors.lines().next_back().and_then(read_error);
            row.task = TaskRecord::decode(sample.record).ok().map(|record| record.task);
        }
        Ok(found)
    }
}
