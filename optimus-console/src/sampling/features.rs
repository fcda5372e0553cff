//! Which pages are of use: [`FeatureSearch`].

use optimus_core::{Client, QueueName, Sample};

use crate::view::Features;

/// How many queues one read looks at.
const QUEUES_A_READ: usize = 10;
/// After how many reads the parts of the namespace are looked at again.
const READS: u64 = 12;

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
        // Each queue comes again once all others were looked at.
        for _ in 0..QUEUES_A_READ.min(sample.queues.len()) {
            if self.is_all_found() {
                break;
            }
            self.next = (self.next + 1) % sample.queues.len();
            let seen = &sample.queues[self.next].seen;
            self.look_at(client, &seen.queue, seen.counts.blocked).await;
        }
        self.found
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
