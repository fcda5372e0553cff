//! Calls of all sizes: a batch is limited by its bytes.

use optimus_core::{BoxError, Context, Task};
use optimus_sql::{PerformInTx as _, lag};
use serde::{Deserialize, Serialize};

use crate::{
    databases::TestDb,
    setup::{Seen, Setup, run_worker},
};

crate::on_each_database! {
    small_and_large_calls_keep_their_order
}

/// A task with arguments of any size.
#[derive(Serialize, Deserialize)]
struct Padded {
    number: u32,
    pad: String,
}

impl Task for Padded {
    const NAME: &'static str = "padded";
    type Output = ();

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let seen: Seen = ctx.data().ok_or("no data")?;
        seen.add(u32::try_from(self.pad.len())?, self.number);
        Ok(())
    }
}

/// Together they have more bytes than a batch, and some have more than MySQL reads at once.
async fn small_and_large_calls_keep_their_order<DB: TestDb>(setup: Setup<DB>) {
    let sizes = [10, 5_000, 10, 900_000, 900_000, 10, 900_000, 900_000, 900_000, 4_000, 10];
    for (number, &size) in (0..).zip(&sizes) {
        let mut tx = setup.pool.begin().await.unwrap();
        let pad = "x".repeat(size as usize);
        Padded { number, pad }.call().perform_in_tx(&mut tx).await.unwrap();
        tx.commit().await.unwrap();
    }
    assert_eq!(lag(&setup.pool).await.unwrap().rows, sizes.len() as u64);
    let (seen, relay) = (Seen::default(), setup.start_relay().await);
    setup.all_relayed().await;
    let _worker = run_worker(setup.worker(&seen).task_type::<Padded>().concurrency(1));
    seen.has(sizes.len()).await;
    assert_eq!(seen.all(), sizes.into_iter().zip(0..).collect::<Vec<(u32, u32)>>());
    relay.stop().await;
}
