//! The causes of deaths, and the overview that has them: of the queues that somebody sees.

use std::{cmp::Reverse, sync::Arc, time::Duration};

use optimus_core::{Dying, Error, FingerprintRow, Fingerprints, QueueName};
use tokio::time::timeout;

use super::{Sampling, Snapshot};
use crate::access::{Identity, Patterns, Payloads};

/// The overview has the causes of deaths in so many queues.
const DYING_MAX: usize = 5;
/// So many causes are kept for it.
const WORST_MAX: usize = 50;
/// The list of causes and a search read those of so many queues.
pub(crate) const CAUSES_QUEUES_MAX: usize = 50;
/// How long an overview or a search waits for them.
pub(super) const READ_WITHIN: Duration = Duration::from_secs(1);

/// The causes of deaths in some queues.
pub(crate) struct Causes {
    /// Those with most dead tasks come first.
    pub(crate) rows: Vec<(QueueName, FingerprintRow)>,
    /// In how many queues with dead tasks they were not read.
    pub(crate) left_out: usize,
}

impl Sampling {
    /// Returns the causes with most dead tasks, in the queues with most of them of those that
    /// somebody sees.
    async fn worst(
        &self,
        snapshot: &Snapshot,
        queues: &Patterns,
    ) -> Vec<(QueueName, FingerprintRow)> {
        let mut rows = self.causes(snapshot, queues, DYING_MAX).await.rows;
        rows.truncate(WORST_MAX);
        rows
    }

    /// Returns the causes of deaths in the queues that somebody sees, in up to `most` of them: as
    /// they are, or as they were read last if Redis can't be read in time.
    pub(crate) async fn causes(
        &self,
        snapshot: &Snapshot,
        queues: &Patterns,
        most: usize,
    ) -> Causes {
        let dying = snapshot.dying(|queue| queues.take(queue));
        let all = dying.len();
        let found = self.found_or_kept(snapshot, dying, most).await;
        let rows = found.iter().flat_map(|(queue, found)| {
            found.rows.iter().map(move |row| (queue.clone(), row.clone()))
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by_key(|(_, row)| Reverse(row.dead));
        Causes { rows, left_out: all.saturating_sub(found.len()) }
    }

    async fn found_or_kept(
        &self,
        snapshot: &Snapshot,
        dying: Vec<Dying>,
        most: usize,
    ) -> Vec<(QueueName, Arc<Fingerprints>)> {
        if snapshot.redis.up {
            let (failures, inspector) = (self.failures.clone(), self.inspector.clone());
            let queues = dying.clone();
            // A read that takes longer goes on, so that the next overview has what it finds.
            let reading = async move { failures.read(&inspector, queues, most).await };
            if let Ok(Ok(Ok((found, _)))) = timeout(READ_WITHIN, tokio::spawn(reading)).await {
                return found;
            }
        }
        self.failures.kept(dying, most)
    }

    /// Returns the causes of deaths in the queues with most dead tasks, and how many other queues
    /// have dead tasks.
    pub(crate) async fn failures(
        &self,
        queues: Vec<Dying>,
        most: usize,
    ) -> Result<(Vec<(QueueName, Arc<Fingerprints>)>, usize), Error> {
        self.failures.read(&self.inspector, queues, most).await
    }

    /// Returns the overview as JSON. People who see the same share it: one of them makes it, and
    /// the others wait for that.
    pub(crate) async fn overview_json(
        &self,
        snapshot: &Snapshot,
        identity: &Identity,
        payloads: Payloads,
    ) -> Arc<str> {
        if let Some(json) = snapshot.form(identity, payloads) {
            return json;
        }
        let _forming = self.forming.lock().await;
        if let Some(json) = snapshot.form(identity, payloads) {
            return json;
        }
        let (worst, features) = tokio::join!(
            self.worst(snapshot, &identity.queues),
            self.own_features.look(&self.client, snapshot, identity),
        );
        let overview = snapshot.overview(identity, payloads, &worst, features);
        let json: Arc<str> = serde_json::to_string(&overview).unwrap_or_default().into();
        snapshot.keep_form(identity, payloads, json.clone());
        json
    }
}
