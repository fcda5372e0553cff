//! What is committed is submitted exactly once, and nothing else is.

use std::time::Duration;

use optimus_core::{Due, Error as TaskError, Task as _, TaskState};
use optimus_sql::{
    AfterCommit, Error, IntoOutboxRow as _, Outbox as _, PerformAfter as _, PerformInTx as _,
    Relay, drop_parked, lag, list_parked, migrate, purge_once, retry_parked, submit_all_in_tx,
    transaction,
};
use optimus_testkit::eventually;
use optimus_worker::Worker;
use sqlx::Postgres;

use crate::{
    databases::TestDb,
    setup::{Double, SOON, Seen, Setup, connect, note},
};

crate::on_each_database! {
    a_call_is_submitted_once_its_transaction_is_committed
    a_rolled_back_call_is_never_submitted
    a_savepoint_that_is_rolled_back_takes_its_calls_along
    many_calls_of_a_transaction_keep_their_order
    a_handle_waits_from_before_the_commit_to_the_result
    a_plain_verb_in_a_transaction_waits_for_its_commit
    a_list_after_the_commit_is_submitted_or_discarded
    a_delay_counts_from_the_call
    options_reach_the_task
    a_duplicate_by_its_biz_id_is_not_submitted
    the_handle_of_a_duplicate_finds_the_task_with_its_biz_id
    a_row_that_is_no_call_is_put_aside_and_others_go_on
    migrations_run_again_and_at_once
    a_program_without_redis_stores_calls
    errors_about_missing_tables_name_what_creates_them
    the_outbox_belongs_to_one_namespace
}

async fn the_outbox_belongs_to_one_namespace<DB: TestDb>(setup: Setup<DB>) {
    let relay = setup.start_relay().await;
    let own = setup.namespace.clone();
    let other = connect(&setup.redis, &format!("other-{own}")).await;
    let refused = Relay::new(&setup.pool, &other).start().await.unwrap_err();
    assert!(matches!(&refused, Error::OtherNamespace { known, .. } if *known == own), "{refused}");
    let worker = Worker::builder(&setup.redis).namespace(other.broker().namespace()).quiet();
    let worker = worker.task_type::<Double>().outbox(&setup.pool).build().unwrap();
    let refused = worker.run_until(std::future::pending::<()>()).await.unwrap_err();
    assert!(refused.to_string().contains("another database or schema"), "{refused}");
    relay.stop().await;
    // The program moves, as the error says.
    setup.sql("DELETE FROM optimus_stream WHERE name = 'namespace'").await;
    Relay::new(&setup.pool, &other).start().await.unwrap().stop().await;
    assert!(matches!(setup.relay().start().await, Err(Error::OtherNamespace { .. })));
}

async fn a_call_is_submitted_once_its_transaction_is_committed<DB: TestDb>(setup: Setup<DB>) {
    let (seen, relay) = (Seen::default(), setup.start_relay().await);
    let _worker = setup.start_worker(&seen);
    let mut tx = setup.pool.begin().await.unwrap();
    let promised = note(1, 1).perform_in_tx(&mut tx).await.unwrap();
    let handle = promised.handle(&setup.client);
    assert_eq!(handle.id(), promised.id());
    assert_eq!(handle.status().await.unwrap(), TaskState::Forgotten, "nothing is submitted yet");
    tx.commit().await.unwrap();
    handle.result_within(SOON).await.unwrap();
    assert_eq!(seen.all(), [(1, 1)]);
    setup.all_relayed().await;
    relay.stop().await;
}

async fn a_rolled_back_call_is_never_submitted<DB: TestDb>(setup: Setup<DB>) {
    let (seen, relay) = (Seen::default(), setup.start_relay().await);
    let _worker = setup.start_worker(&seen);
    let mut tx = setup.pool.begin().await.unwrap();
    note(1, 1).biz_id("order-7").perform_in_tx(&mut tx).await.unwrap();
    tx.rollback().await.unwrap();
    let mut tx = setup.pool.begin().await.unwrap();
    note(1, 2).perform_in_tx(&mut tx).await.unwrap();
    drop(tx);
    let refused: Result<(), Error> = transaction(&setup.pool, async |mut tx| {
        note(1, 3).perform_in_tx(&mut tx).await?;
        setup.client.scope(async { note(1, 4).perform_async().await }).await.map(drop).unwrap();
        Err(TaskError::invalid("no").into())
    })
    .await;
    assert_eq!(refused.unwrap_err().to_string(), "no");
    // A later call shows that the relay has passed the others.
    let mut tx = setup.pool.begin().await.unwrap();
    let last = note(1, 5).biz_id("order-7").perform_in_tx(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    // No task of a transaction that was rolled back has the biz id.
    last.handle(&setup.client).result_within(SOON).await.unwrap();
    // The scope of a client inside the body is a submit of its own.
    assert_eq!(seen.all(), [(1, 4), (1, 5)]);
    relay.stop().await;
}

async fn a_savepoint_that_is_rolled_back_takes_its_calls_along<DB: TestDb>(setup: Setup<DB>) {
    let (seen, relay) = (Seen::default(), setup.start_relay().await);
    let _worker = setup.start_worker(&seen);
    let mut tx = setup.pool.begin().await.unwrap();
    note(1, 1).perform_in_tx(&mut tx).await.unwrap();
    DB::run_plain(&mut tx, "SAVEPOINT inner_part").await.unwrap();
    note(1, 2).perform_in_tx(&mut tx).await.unwrap();
    DB::run_plain(&mut tx, "ROLLBACK TO SAVEPOINT inner_part").await.unwrap();
    note(1, 3).perform_in_tx(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    seen.has(2).await;
    setup.all_relayed().await;
    assert_eq!(seen.all(), [(1, 1), (1, 3)]);
    relay.stop().await;
}

async fn many_calls_of_a_transaction_keep_their_order<DB: TestDb>(setup: Setup<DB>) {
    let (seen, relay) = (Seen::default(), setup.start_relay().await);
    let mut tx = setup.pool.begin().await.unwrap();
    let calls = (0..2_500).map(|number| note(1, number));
    let promised = submit_all_in_tx(&mut tx, calls).await.unwrap();
    assert_eq!(promised.len(), 2_500);
    tx.commit().await.unwrap();
    setup.all_relayed().await;
    let _worker = setup.start_worker(&seen);
    seen.has(2_500).await;
    assert_eq!(seen.all(), (0..2_500).map(|number| (1, number)).collect::<Vec<_>>());
    promised[2_499].handle(&setup.client).result_within(SOON).await.unwrap();
    relay.stop().await;
}

async fn a_handle_waits_from_before_the_commit_to_the_result<DB: TestDb>(setup: Setup<DB>) {
    let seen = Seen::default();
    let _worker = setup.start_worker(&seen);
    let mut tx = setup.pool.begin().await.unwrap();
    let promised = Double { number: 4 }.call().perform_in_tx(&mut tx).await.unwrap();
    let handle = promised.handle(&setup.client);
    let waits = tokio::spawn(async move { handle.result_within(SOON).await });
    tx.commit().await.unwrap();
    let problem = promised.handle(&setup.client).result_within(Duration::from_millis(100)).await;
    assert!(problem.unwrap_err().is_timeout(), "no relay runs yet");
    let relay = setup.start_relay().await;
    assert_eq!(waits.await.unwrap().unwrap(), 8);
    let later = Box::pin(setup.client.scope(promised.result_within(SOON))).await;
    assert_eq!(later.unwrap(), 8);
    relay.stop().await;
}

async fn a_plain_verb_in_a_transaction_waits_for_its_commit<DB: TestDb>(setup: Setup<DB>) {
    /// Code that does not know whether it runs in a transaction.
    async fn welcome(number: i64) -> Result<optimus_core::TaskHandle<i64>, TaskError> {
        Double { number }.call().perform_async().await
    }
    let seen = Seen::default();
    let _worker = setup.start_worker(&seen);
    let client = setup.client.clone();
    let (outside, inside) = client
        .scope(async {
            let outside = welcome(1).await.unwrap();
            let inside = transaction(&setup.pool, async |_| {
                let inside = welcome(2).await?;
                assert_eq!(inside.status().await?, TaskState::Forgotten);
                let refused = inside.result().await.unwrap_err();
                assert!(refused.to_string().contains("wait after the commit"), "{refused}");
                assert!(inside.ended().await.unwrap_err().is_invalid());
                Ok::<_, Error>(inside)
            });
            (outside, inside.await.unwrap())
        })
        .await;
    assert_eq!(outside.result_within(SOON).await.unwrap(), 2, "it needs no relay");
    assert_eq!(lag(&setup.pool).await.unwrap().rows, 1);
    let relay = setup.start_relay().await;
    assert_eq!(inside.result_within(SOON).await.unwrap(), 4);
    relay.stop().await;
}

async fn a_list_after_the_commit_is_submitted_or_discarded<DB: TestDb>(setup: Setup<DB>) {
    let seen = Seen::default();
    let _worker = setup.start_worker(&seen);
    let mut discarded = AfterCommit::new();
    note(1, 1).perform_after(&mut discarded).unwrap();
    drop(discarded);
    let mut list = AfterCommit::new();
    note(1, 2).perform_after(&mut list).unwrap();
    note(1, 3).perform_after(&mut list).unwrap();
    let handles = setup.client.scope(list.submit()).await.unwrap();
    assert_eq!(handles.len(), 2);
    seen.has(2).await;
    assert_eq!(seen.all(), [(1, 2), (1, 3)]);
    assert!(AfterCommit::new().submit().await.unwrap().is_empty(), "it needs no client");
}

async fn a_delay_counts_from_the_call<DB: TestDb>(setup: Setup<DB>) {
    let seen = Seen::default();
    let _worker = setup.start_worker(&seen);
    let mut tx = setup.pool.begin().await.unwrap();
    let late = note(1, 1).due(Due::In(Duration::from_secs(3600))).perform_in_tx(&mut tx).await;
    let soon = note(1, 2).due(Due::In(Duration::from_secs(60))).perform_in_tx(&mut tx).await;
    // The calls were made an hour less five seconds ago.
    DB::run_plain(&mut tx, "UPDATE optimus_outbox SET at_ms = at_ms - 3595000").await.unwrap();
    tx.commit().await.unwrap();
    let relay = setup.start_relay().await;
    soon.unwrap().handle(&setup.client).result_within(SOON).await.unwrap();
    let late = setup.client.inspector().get(late.unwrap().id()).await.unwrap().unwrap();
    assert_eq!(late.state, TaskState::Delayed);
    relay.stop().await;
}

async fn options_reach_the_task<DB: TestDb>(setup: Setup<DB>) {
    let relay = setup.start_relay().await;
    let mut tx = setup.pool.begin().await.unwrap();
    let call = note(1, 1).lane("a").header("tenant", "t1").max_retry(7).queue("other");
    let promised = call.perform_in_tx(&mut tx).await.unwrap();
    let large = Double { number: 1 }.call().header("pad", "x".repeat(4_000));
    large.perform_in_tx(&mut tx).await.unwrap();
    let row = note(2, 2).priority(9).outbox_row().unwrap();
    tx.commit().await.unwrap();
    setup.all_relayed().await;
    let found = setup.client.inspector().get(promised.id()).await.unwrap().unwrap();
    assert_eq!((found.state, found.id.queue().as_str()), (TaskState::Ready, "other"));
    assert!(row.sql(DB::DIALECT).starts_with("INSERT INTO optimus_outbox"));
    assert_eq!((row.queue(), row.id()), ("default", &*row.task_id().uuid().to_string()));
    relay.stop().await;
}

async fn a_duplicate_by_its_biz_id_is_not_submitted<DB: TestDb>(setup: Setup<DB>) {
    let (seen, relay) = (Seen::default(), setup.start_relay().await);
    let mut tx = setup.pool.begin().await.unwrap();
    for number in 0..3 {
        note(1, number).biz_id("same").perform_in_tx(&mut tx).await.unwrap();
    }
    note(1, 9).perform_in_tx(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    setup.all_relayed().await;
    let _worker = setup.start_worker(&seen);
    seen.has(2).await;
    assert_eq!(seen.all(), [(1, 0), (1, 9)]);
    relay.stop().await;
}

async fn the_handle_of_a_duplicate_finds_the_task_with_its_biz_id<DB: TestDb>(setup: Setup<DB>) {
    let seen = Seen::default();
    let mut tx = setup.pool.begin().await.unwrap();
    let mut promised = Vec::new();
    for number in 1..4 {
        let call = Double { number }.call().biz_id("same");
        promised.push(call.perform_in_tx(&mut tx).await.unwrap());
    }
    tx.commit().await.unwrap();
    let handles: Vec<_> = promised.iter().map(|one| one.handle(&setup.client)).collect();
    let early = handles[1].clone();
    let waits = tokio::spawn(async move { early.result_within(SOON).await });
    let relay = setup.start_relay().await;
    setup.all_relayed().await;
    assert_eq!(handles[2].status().await.unwrap(), TaskState::Ready);
    assert_eq!(handles[2].id(), promised[0].id());
    assert!(handles[2].is_duplicate() && !handles[0].is_duplicate());
    let _worker = setup.start_worker(&seen);
    assert_eq!(waits.await.unwrap().unwrap(), 2, "that of the task that was submitted");
    for handle in handles {
        assert_eq!(handle.result_within(SOON).await.unwrap(), 2);
    }
    relay.stop().await;
}

async fn a_row_that_is_no_call_is_put_aside_and_others_go_on<DB: TestDb>(setup: Setup<DB>) {
    let (seen, relay) = (Seen::default(), setup.start_relay().await);
    let _worker = setup.start_worker(&seen);
    let mut tx = setup.pool.begin().await.unwrap();
    note(1, 1).perform_in_tx(&mut tx).await.unwrap();
    for bad in [
        "INSERT INTO optimus_outbox (queue, id, body) VALUES ('default', 'no', 'x')",
        "INSERT INTO optimus_outbox (queue, id, body) \
         VALUES ('default', '01890a5d-ac96-774b-bcce-b302099a8057', 'no call')",
    ] {
        DB::run_plain(&mut tx, bad).await.unwrap();
    }
    note(1, 2).perform_in_tx(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    seen.has(2).await;
    setup.all_relayed().await;
    let parked = list_parked(&setup.pool, 0).await.unwrap();
    assert_eq!(parked.len(), 2);
    assert!(parked[0].id.is_none() && parked[0].error.contains("not a task id"), "{parked:?}");
    assert!(parked[1].error.contains("damaged"), "{parked:?}");
    assert_eq!(list_parked(&setup.pool, parked[0].seq).await.unwrap().len(), 1);
    let found = lag(&setup.pool).await.unwrap();
    assert_eq!((found.rows, found.oldest, found.parked), (0, None, 2));

    assert!(drop_parked(&setup.pool, parked[0].seq).await.unwrap());
    assert!(!drop_parked(&setup.pool, parked[0].seq).await.unwrap());
    assert!(retry_parked(&setup.pool, parked[1].seq).await.unwrap());
    assert!(!retry_parked(&setup.pool, parked[1].seq).await.unwrap());
    let again = async || {
        let parked_again = list_parked(&setup.pool, parked[1].seq).await.unwrap();
        parked_again.len() == 1
    };
    eventually("it is tried again behind the others", SOON, again).await;
    relay.stop().await;
}

async fn migrations_run_again_and_at_once<DB: TestDb>(setup: Setup<DB>) {
    let again = (0..4).map(|_| migrate(&setup.pool));
    for migrated in futures_util::future::join_all(again).await {
        migrated.unwrap();
    }
}

async fn a_program_without_redis_stores_calls<DB: TestDb>(setup: Setup<DB>) {
    // No client is installed in this process, and no scope surrounds this code.
    let mut tx = setup.pool.begin().await.unwrap();
    note(1, 1).perform_in_tx(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    let found = lag(&setup.pool).await.unwrap();
    assert_eq!(found.rows, 1);
    assert!(found.oldest.unwrap() < SOON, "{found:?}");
}

async fn errors_about_missing_tables_name_what_creates_them<DB: TestDb>(setup: Setup<DB>) {
    setup.sql("DROP TABLE optimus_stream").await;
    setup.sql("DROP TABLE optimus_once").await;
    setup.sql("DROP TABLE optimus_outbox").await;
    let mut tx = setup.pool.begin().await.unwrap();
    let stored = note(1, 1).perform_in_tx(&mut tx).await.map(drop);
    tx.rollback().await.unwrap();
    let read = lag(&setup.pool).await.map(drop);
    let purged = purge_once(&setup.pool, SOON).await.map(drop);
    let started = setup.relay().start().await.map(drop);
    for refused in [stored, read, purged, started] {
        let problem = refused.unwrap_err();
        assert!(matches!(problem, Error::NoTables(_)), "{problem}");
        assert!(problem.to_string().contains("run optimus_sql::migrate first"), "{problem}");
    }
}

/// A relay that is SERIALIZABLE would make such transactions of the user fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_has_no_part_in_serializable_transactions() {
    let setup = Setup::<Postgres>::start().await;
    setup
        .sql(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = \
             serializable', current_database()); END $$",
        )
        .await;
    let pool = Postgres::connect(&setup.database).await;
    // What others read is kept as long as a transaction of this kind is open.
    let mut open = pool.begin().await.unwrap();
    sqlx::query("SELECT * FROM optimus_fence").fetch_all(&mut *open).await.unwrap();
    let mut tx = setup.pool.begin().await.unwrap();
    let promised = note(1, 1).perform_in_tx(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    let relay = Relay::new(&pool, &setup.client).start().await.unwrap();
    let is_sent = async || setup.client.inspector().get(promised.id()).await.unwrap().is_some();
    eventually("the call is sent", SOON, is_sent).await;
    relay.stop().await;
    let reads = "SELECT COUNT(*) FROM pg_locks WHERE mode = 'SIReadLock' \
                 AND relation IN ('optimus_outbox'::regclass, 'optimus_outbox_pkey'::regclass, \
                 'optimus_stream'::regclass, 'optimus_stream_pkey'::regclass)";
    assert_eq!(Postgres::number(&setup.pool, reads).await, 0);
    open.rollback().await.unwrap();
}
