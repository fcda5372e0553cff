//! Transactions of the user beside a relay: none waits for a lock of it.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use futures_util::future::join_all;
use optimus_sql::PerformInTx as _;
use tokio::time::sleep;

use crate::{
    databases::TestDb,
    setup::{Setup, note},
};

/// It is not for SQLite, which has one lock for all writers.
mod on_postgres {
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn writers_wait_for_no_lock_while_a_relay_works() {
        let waits = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() \
                     AND wait_event_type = 'Lock' AND wait_event IN ('transactionid', 'tuple')";
        super::wait_for_no_lock::<sqlx::Postgres>(waits).await;
    }
}

mod on_mariadb {
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn writers_wait_for_no_lock_while_a_relay_works() {
        let waits = "SELECT COUNT(*) FROM information_schema.INNODB_LOCK_WAITS AS waits \
                     JOIN information_schema.INNODB_LOCKS AS locks \
                     ON locks.lock_id = waits.requested_lock_id \
                     WHERE locks.lock_table LIKE CONCAT('`', DATABASE(), '`%')";
        super::wait_for_no_lock::<sqlx::MySql>(waits).await;
    }
}

const WRITERS: u32 = 32;
/// Of each writer.
const TRANSACTIONS: u32 = 40;
/// How often the locks are looked at.
const LOOK: Duration = Duration::from_millis(2);

async fn wait_for_no_lock<DB: TestDb>(waits: &'static str) {
    let setup = Setup::<DB>::start().await;
    setup.sql("CREATE TABLE orders (n bigint NOT NULL)").await;
    let (relay, left) = (setup.start_relay().await, AtomicU32::new(WRITERS));
    let write = async |writer: u32| {
        for number in 0..TRANSACTIONS {
            let mut tx = setup.pool.begin().await.unwrap();
            DB::run_plain(&mut tx, "INSERT INTO orders VALUES (1)").await.unwrap();
            note(writer, number).perform_in_tx(&mut tx).await.unwrap();
            tx.commit().await.unwrap();
        }
        left.fetch_sub(1, Ordering::Relaxed);
    };
    let look = async {
        let (mut looks, mut seen) = (0, 0);
        while left.load(Ordering::Relaxed) > 0 {
            seen += DB::number(&setup.pool, waits).await;
            looks += 1;
            sleep(LOOK).await;
        }
        (looks, seen)
    };
    let ((looks, seen), _) = tokio::join!(look, join_all((0..WRITERS).map(write)));
    setup.all_relayed().await;
    relay.stop().await;
    let ready = setup.client.inspector().counts("default").await.unwrap().ready;
    assert_eq!(ready, u64::from(WRITERS * TRANSACTIONS));
    assert_eq!(seen, 0, "in {looks} looks");
    println!("{}: {} transactions, no wait in {looks} looks", DB::NAME, WRITERS * TRANSACTIONS);
}
