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
/// How long an overview waits for them.
const READ_WITHIN: Duration = Duration::from_secs(1);

impl Sampling {
    /// Returns the causes with most dead tasks, in the queues with most of them of those that
    /// somebody sees.
    pub(crate) async fn worst(
        &self,
        snapshot: &Snapshot,
        queues: &Patterns,
    ) -> Vec<(QueueName, FingerprintRow)> {
        let dying = snapshot.dying(|queue| queues.take(queue));
        let found = self.found_or_kept(snapshot, dying).await;
        let rows = found.iter().flat_map(|(queue, found)| {
            found.rows.iter().map(move |row| (queue.clone(), row.clone()))
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by_key(|(_, row)| Reverse(row.dead));
        rows.truncate(WORST_MAX);
        rows
    }

    /// Returns what was read last if Redis can't be read in time.
    async fn found_or_kept(
        &self,
        snapshot: &Snapshot,
        dying: Vec<Dying>,
    ) -> Vec<(QueueName, Arc<Fingerprints>)> {
        if snapshot.redis.up {
            let reading = self.failures(dying.clone(), DYING_MAX);
            if let Ok(Ok((found, _))) = timeout(READ_WITHIN, reading).await {
                return found;
            }
        }
        self.failures.lock().await.kept(dying, DYING_MAX)
    }

    /// Returns the causes of deaths in the queues with most dead tasks, and how many other queues
    /// have dead tasks.
    pub(crate) async fn failures(
        &self,
        queues: Vec<Dying>,
        most: usize,
    ) -> Result<(Vec<(QueueName, Arc<Fingerprints>)>, usize), Error> {
        self.failures.lock().await.read(&self.inspector, queues, most).await
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
        let worst = self.worst(snapshot, &identity.queues).await;
        let overview = snapshot.overview(identity, payloads, &worst);
        let json: Arc<str> = serde_json::to_string(&overview).unwrap_or_default().into();
        snapshot.keep_form(identity, payloads, json.clone());
        json
    }
}
