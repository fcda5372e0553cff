//! Tables that are emptied, as test suites do between their tests.

use sqlx::Postgres;

use crate::setup::{Seen, Setup};

/// The numbers of new rows are lower than those that the relay has read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outbox_that_is_truncated_and_begins_again_goes_on_on_postgres() {
    let setup = Setup::<Postgres>::start().await;
    let (seen, relay) = (Seen::default(), setup.start_relay().await);
    let _worker = setup.start_worker(&seen);
    for number in 0..200 {
        setup.commit(number).await;
        if number > 190 {
            // The relay learns that all earlier transactions have ended.
            setup.all_relayed().await;
        }
    }
    seen.has(200).await;
    setup.all_relayed().await;
    setup.sql("TRUNCATE optimus_outbox RESTART IDENTITY").await;
    setup.commit(999).await;
    seen.has(201).await;
    relay.stop().await;
}
