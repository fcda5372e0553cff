//! Which pages are of use: [`FeatureSearch`].

use std::collections::HashMap;

use optimus_core::{Client, QueueName, Sample};
use tokio::{sync::Mutex, time::timeout};

use super::{Snapshot, causes::READ_WITHIN};
use crate::{
    access::{Identity, Patterns},
    view::Features,
};

/// How many queues one read looks at.
const QUEUES_A_READ: usize = 10;
/// After how many reads the parts of the namespace are looked at again.
const READS: u64 = 12;
/// For how many people who see other queues it is kept what was found.
const SEARCHES_MAX: usize = 64;

/// Looks for lanes, limits, schedules and groups, in a few queues at each read. What was found once
/// stays, except dispensers, which come and go with their use.
#[derive(Default)]
pub(super) struct FeatureSearch {
    found: Features,
    next: usize,
    reads: u64,
}

impl FeatureSearch {
    /// Looks on. A part that can't be read is looked at later.
    pub(super) async fn look(&mut self, client: &Client, sample: &Sample) -> Features {
        if self.reads.is_multiple_of(READS) {
            let names = client.shard_names().await;
            self.found.shards |= names.is_ok_and(|names| !names.is_empty());
            let names = client.sources().await;
            self.found.sources |= names.is_ok_and(|names| !names.is_empty());
            if let Ok(names) = client.dispenser_names().await {
                self.found.dispensers = !names.is_empty();
            }
        }
        self.reads += 1;
        let queues = sample.queues.iter().map(|queue| &queue.seen);
        let queues: Vec<_> =
            queues.map(|seen| (seen.queue.as_str(), seen.counts.blocked)).collect();
        self.look_in(client, &queues).await;
        self.found
    }

    /// Looks on in queues, which have blocked tasks.
    async fn look_in(&mut self, client: &Client, queues: &[(&str, u64)]) {
        // Each queue comes again once all others were looked at.
        for _ in 0..QUEUES_A_READ.min(queues.len()) {
            if self.is_all_found() {
                break;
            }
            self.next = (self.next + 1) % queues.len();
            let (queue, blocked) = queues[self.next];
            if let Ok(queue) = QueueName::new(queue) {
                self.look_at(client, &queue, blocked).await;
            }
        }
    }

    fn is_all_found(&self) -> bool {
        let Features { lanes, limits, schedules, groups, .. } = self.found;
        lanes && limits && schedules && groups
    }

    async fn look_at(&mut self, client: &Client, queue: &QueueName, blocked: u64) {
        let inspector = client.inspector();
        if !self.found.lanes && blocked > 0 {
            let lanes = inspector.lanes(queue, 1).await;
            self.found.lanes = lanes.is_ok_and(|lanes| !lanes.is_empty());
        }
        if !self.found.limits {
            let limits = inspector.limits(queue, 1).await;
            self.found.limits = limits.is_ok_and(|limits| !limits.is_empty());
        }
        if !self.found.schedules {
            let page = client.schedules().list(queue, None, 1).await;
            self.found.schedules = page.is_ok_and(|page| !page.rows.is_empty());
        }
        if !self.found.groups {
            let page = inspector.groups(queue, None, 1).await;
            self.found.groups = page.is_ok_and(|page| !page.rows.is_empty());
        }
    }
}

/// What is in use in the queues of those who see only some.
#[derive(Default)]
pub(super) struct OwnFeatures(Mutex<HashMap<Patterns, FeatureSearch>>);

impl OwnFeatures {
    /// Looks on in the queues that somebody sees. What belongs to no queue is not theirs.
    pub(super) async fn look(
        &self,
        client: &Client,
        snapshot: &Snapshot,
        identity: &Identity,
    ) -> Features {
        if identity.queues.is_all() {
            return snapshot.features;
        }
        let mut searches = self.0.lock().await;
        if searches.len() >= SEARCHES_MAX && !searches.contains_key(&identity.queues) {
            searches.clear();
        }
        let search = searches.entry(identity.queues.clone()).or_default();
        if snapshot.redis.up {
            let rows = snapshot.seen_by(identity).map(|entry| &entry.row);
            let queues: Vec<_> = rows.map(|row| (row.queue.as_str(), row.counts.blocked)).collect();
            // What is not found in time is found later.
            let _ = timeout(READ_WITHIN, search.look_in(client, &queues)).await;
        }
        search.found
    }
}
