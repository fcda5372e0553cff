//! A row that a database stores and can't hand over: it is put aside, and holds nothing up.

use optimus_sql::list_parked;
use sqlx::Sqlite;

use crate::setup::{Seen, Setup};

/// A text whose length is 0 for SQLite, and whose digits are more than fit into a text.
const ENDLESS: &str = "INSERT INTO optimus_outbox (queue, id, body) VALUES ('default', \
    '01890a5d-ac96-774b-bcce-b302099a8057', CAST(zeroblob(500000001) AS text))";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_of_half_a_gigabyte_holds_nothing_up_on_sqlite() {
    let (setup, seen) = (Setup::<Sqlite>::start().await, Seen::default());
    let _worker = setup.start_worker(&seen);
    setup.sql(ENDLESS).await;
    let relay = setup.start_relay().await;
    setup.commit(1).await;
    seen.has(1).await;
    setup.all_relayed().await;
    let parked = list_parked(&setup.pool, 0).await.unwrap();
    assert_eq!(parked.len(), 1, "{parked:?}");
    assert!(parked[0].error.contains("too large to be read"), "{parked:?}");
    relay.stop().await;
}
