//! A relay that is killed while its transaction waits for a lock. The database runs the rest of the
//! transaction afterwards, and finds that nobody reads its answers.

use optimus_testkit::{FaultProxy, Way, eventually};
use sqlx::{MySql, Postgres};

use crate::{
    databases::TestDb,
    setup::{CHILD_REDIS, SOON, Seen, Setup},
};

/// How many statements of this database wait for the row of the stream.
const WAITING_IN_POSTGRES: &str = "SELECT COUNT(*) FROM pg_stat_activity \
     WHERE wait_event_type = 'Lock' AND datname = current_database() \
     AND query LIKE '%UPDATE optimus_stream%'";
const WAITING_IN_MYSQL: &str = "SELECT COUNT(*) FROM information_schema.processlist \
     WHERE db = DATABASE() AND id <> CONNECTION_ID() AND info IS NOT NULL";

async fn a_relay_that_dies_while_its_transaction_waits_repeats_nothing<DB: TestDb>(
    child: &str,
    waiting: &'static str,
) {
    let (setup, seen) = (Setup::<DB>::start().await, Seen::default());
    let _worker = setup.start_worker(&seen);
    let proxy = FaultProxy::start(&setup.redis).await;
    let mut relay = setup.child_with(child, CHILD_REDIS, &proxy.url());
    setup.commit(0).await;
    setup.all_relayed().await;
    proxy.black_hole(Way::Down);
    setup.commit(1).await;
    // Redis has it, and the relay does not know.
    seen.has(2).await;
    let mut holds = setup.pool.begin().await.unwrap();
    DB::run_plain(&mut holds, "SELECT * FROM optimus_stream FOR UPDATE").await.unwrap();
    proxy.pass();
    let is_waiting = async || DB::number(&setup.pool, waiting).await == 1;
    eventually("the transaction of the relay waits", SOON, is_waiting).await;
    relay.kill9();
    holds.rollback().await.unwrap();
    let next = setup.start_relay().await;
    setup.commit(2).await;
    seen.has(3).await;
    setup.all_relayed().await;
    next.stop().await;
    assert_eq!(setup.succeeded().await, 3);
    assert_eq!(seen.all(), [(1, 0), (1, 1), (1, 2)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_that_dies_while_its_transaction_waits_repeats_nothing_on_postgres() {
    let child = "frozen::a_relay_of_another_process_on_postgres";
    a_relay_that_dies_while_its_transaction_waits_repeats_nothing::<Postgres>(
        child,
        WAITING_IN_POSTGRES,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_that_dies_while_its_transaction_waits_repeats_nothing_on_mariadb() {
    let child = "frozen::a_relay_of_another_process_on_mariadb";
    a_relay_that_dies_while_its_transaction_waits_repeats_nothing::<MySql>(child, WAITING_IN_MYSQL)
        .await;
}
