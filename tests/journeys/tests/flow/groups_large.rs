//! Groups whose members are stored a thousand at a time.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use crate::common::{Bench, sums::number};
use optimus_core::{BoxError, Client, Layer, QueueName, Submission, broker::Keep, group};

const MEMBERS: u32 = 1_500;
const IDLE: Duration = Duration::from_secs(3600);

/// Purges the queue while the first thousand members are being stored, as a worker may.
struct Purges {
    client: Client,
    members: AtomicU32,
}

impl Layer for Purges {
    async fn submit(&self, _: &mut Submission) -> Result<(), BoxError> {
        if self.members.fetch_add(1, Ordering::Relaxed) == 500 {
            let queue = QueueName::new("default").unwrap();
            // The results of the group are kept for less than this.
            tokio::time::sleep(Duration::from_millis(2)).await;
            self.client.broker().purge(&queue, Keep::DEFAULT, IDLE).await.unwrap();
        }
        Ok(())
    }
}

on_both! {
    async fn a_group_whose_results_are_not_kept_has_all_its_members(bench: Bench) {
        let purges = Purges { client: bench.client.clone(), members: AtomicU32::new(0) };
        let client = bench.client_builder().layer(purges).connect().await.unwrap();
        let members = (0..MEMBERS).map(|n| number(n.into()));
        let sums = client.submit_group(group(members).result_ttl(Duration::ZERO)).await.unwrap();
        assert_eq!(sums.progress().await.unwrap().total, MEMBERS);
        let counts = bench.client.inspector().counts("default").await.unwrap();
        assert_eq!(counts.ready, u64::from(MEMBERS));
    }
}
