//! Programs that prove errors of relays.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use optimus_sql::{PerformInTx as _, Relay, lag, list_parked};
use sqlx::{MySql, Pool, Postgres, Sqlite};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream, UnixStream},
    sync::watch,
    time::{Instant, sleep, timeout},
};

use crate::{
    databases::TestDb,
    setup::{Seen, Setup, note},
};

const WAIT: Duration = Duration::from_secs(30);

async fn commit<DB: TestDb>(setup: &Setup<DB>, number: u32) {
    let mut tx = setup.pool.begin().await.unwrap();
    note(1, number).perform_in_tx(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
}

async fn has(seen: &Seen, count: usize) -> bool {
    let began = Instant::now();
    while began.elapsed() < WAIT {
        if seen.count() >= count {
            return true;
        }
        sleep(Duration::from_millis(50)).await;
    }
    false
}

/// A row whose header names an unknown value of a field, which the error repeats.
fn row_with(value: &str) -> String {
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    let body = format!("{{}}\n{{\"t\":\"note\",\"l\":\"{value}\"}}\nnull");
    let hex: String = body.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("INSERT INTO optimus_outbox (queue, id, body) VALUES ('default', '{id}', HEX{hex}END)")
}

async fn a_damaged_row_holds_nothing_up<DB: TestDb>(setup: Setup<DB>, insert: String) {
    let (seen, relay) = (Seen::default(), setup.start_relay().await);
    let _worker = setup.start_worker(&seen);
    commit(&setup, 1).await;
    assert!(has(&seen, 1).await);
    DB::run_text(&mut setup.pool.acquire().await.unwrap(), insert).await.unwrap();
    commit(&setup, 2).await;
    let went_on = has(&seen, 2).await;
    let (lag, parked) = (lag(&setup.pool).await, list_parked(&setup.pool, 0).await);
    println!("went on: {went_on}, {lag:?}, parked: {}", parked.unwrap().len());
    assert!(went_on, "the other calls go on");
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "proves: a damaged row stops the relay"]
async fn a_damaged_row_with_a_nul_holds_nothing_up_on_postgres() {
    let setup = Setup::<Postgres>::start().await;
    let insert = row_with("\\u0000").replace("HEX", "'\\x").replace("END", "'");
    a_damaged_row_holds_nothing_up(setup, insert).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "proves: a damaged row stops the relay"]
async fn a_damaged_row_with_a_long_value_holds_nothing_up_on_mariadb() {
    let setup = Setup::<MySql>::start().await;
    let insert = row_with(&"x".repeat(70_000)).replace("HEX", "x'").replace("END", "'");
    a_damaged_row_holds_nothing_up(setup, insert).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "proves: a relay reads above a number that no longer counts"]
async fn a_table_that_is_truncated_and_begins_again_goes_on_on_postgres() {
    let setup = Setup::<Postgres>::start().await;
    let (seen, relay) = (Seen::default(), setup.start_relay().await);
    let _worker = setup.start_worker(&seen);
    for number in 0..200 {
        commit(&setup, number).await;
    }
    assert!(has(&seen, 200).await);
    setup.all_relayed().await;
    for number in 200..210 {
        commit(&setup, number).await;
        sleep(Duration::from_millis(20)).await;
    }
    setup.all_relayed().await;
    setup.sql("TRUNCATE optimus_outbox RESTART IDENTITY").await;
    commit(&setup, 999).await;
    let went_on = has(&seen, 211).await;
    println!("went on: {went_on}, {:?}", lag(&setup.pool).await.unwrap());
    assert!(went_on, "a call after the truncate is submitted");
    relay.stop().await;
}

/// Carries connections to a socket; those that are there when it freezes stay open, and no byte
/// passes them again.
struct Middle {
    port: u16,
    freeze: watch::Sender<u32>,
    opened: Arc<Mutex<u32>>,
}

impl Middle {
    async fn to(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (freeze, opened) = (watch::Sender::new(0), Arc::new(Mutex::new(0)));
        let (frozen, counts) = (freeze.clone(), opened.clone());
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                *counts.lock().unwrap() += 1;
                let mut ends = frozen.subscribe();
                tokio::spawn(carry(client, socket.clone(), async move {
                    ends.changed().await.ok();
                }));
            }
        });
        Self { port, freeze, opened }
    }
}

async fn carry(mut client: TcpStream, socket: PathBuf, freezes: impl Future<Output = ()>) {
    let mut server = UnixStream::connect(socket).await.unwrap();
    tokio::select! {
        _ = copy_bidirectional(&mut client, &mut server) => {}
        () = freezes => {
            // As behind a router that is gone: no end arrives at either side.
            std::future::pending::<()>().await;
        }
    }
}

/// A relay whose connection is half-open must open another one.
async fn a_relay_with_a_half_open_connection_goes_on<DB: TestDb>(
    setup: Setup<DB>,
    middle: Middle,
    pool: Pool<DB>,
) {
    let seen = Seen::default();
    let _worker = setup.start_worker(&seen);
    let relay = Relay::new(&pool, &setup.client).start().await.unwrap();
    commit(&setup, 1).await;
    assert!(has(&seen, 1).await);
    middle.freeze.send_modify(|times| *times += 1);
    let before = *middle.opened.lock().unwrap();
    // The database itself is well, also through the same way.
    commit(&setup, 2).await;
    let went_on = timeout(Duration::from_secs(180), async {
        while seen.count() < 2 {
            sleep(Duration::from_millis(100)).await;
        }
    });
    let went_on = went_on.await.is_ok();
    let opened = *middle.opened.lock().unwrap() - before;
    println!("went on: {went_on}, new connections: {opened}, {:?}", lag(&setup.pool).await);
    let began = Instant::now();
    relay.stop().await;
    println!("stopped after {:?}", began.elapsed());
    assert!(went_on, "a call that is committed is submitted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "proves: a relay waits for its connection without a limit"]
async fn a_half_open_connection_holds_nothing_up_on_postgres() {
    let setup = Setup::<Postgres>::start().await;
    let folder = setup.database.split("host=").nth(1).unwrap();
    let middle = Middle::to(format!("{folder}/.s.PGSQL.5432").into()).await;
    let url = format!("postgres://postgres@127.0.0.1:{}/{}", middle.port, setup.namespace);
    let pool = Postgres::connect(&url).await;
    a_relay_with_a_half_open_connection_goes_on(setup, middle, pool).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "proves: a relay waits for its connection without a limit"]
async fn a_half_open_connection_holds_nothing_up_on_mariadb() {
    let setup = Setup::<MySql>::start().await;
    let socket = setup.database.split("socket=").nth(1).unwrap();
    let middle = Middle::to(socket.into()).await;
    let url = format!("mysql://root@127.0.0.1:{}/{}", middle.port, setup.namespace);
    let pool = MySql::connect(&url).await;
    a_relay_with_a_half_open_connection_goes_on(setup, middle, pool).await;
}

/// Rows that a program may have written, with values at the limits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "proves: a row with an odd value stops its queue"]
async fn rows_with_odd_values_hold_nothing_up() {
    let setup = Setup::<Sqlite>::start().await;
    let (seen, relay) = (Seen::default(), setup.start_relay().await);
    let _worker = setup.start_worker(&seen);
    let max = u64::MAX;
    let rows = [
        (format!("{{\"in\":{max}}}"), "{\"t\":\"note\"}".to_owned()),
        (format!("{{\"at\":{}}}", i64::MIN), "{\"t\":\"note\"}".to_owned()),
        ("{\"at\":8210266876799999}".to_owned(), "{\"t\":\"note\"}".to_owned()),
        ("{\"at\":-8210266876799999}".to_owned(), "{\"t\":\"note\"}".to_owned()),
        ("{}".to_owned(), "{\"t\":\"\\u0000\"}".to_owned()),
        ("{}".to_owned(), "{\"t\":\"\"}".to_owned()),
        ("{}".to_owned(), format!("{{\"t\":\"note\",\"e\":{max}}}")),
        ("{}".to_owned(), format!("{{\"t\":\"note\",\"to\":{max}}}")),
        ("{}".to_owned(), format!("{{\"t\":\"note\",\"k\":{max}}}")),
        ("{}".to_owned(), "{\"t\":\"note\",\"z\":\"a\"}".to_owned()),
        ("{}".to_owned(), format!("{{\"t\":\"note\",\"z\":\"a\",\"k\":{max}}}")),
        ("{}".to_owned(), format!("{{\"t\":\"note\",\"z\":\"b\",\"w\":{max}}}")),
        ("{}".to_owned(), format!("{{\"t\":\"note\",\"rm\":{max}}}")),
        ("{}".to_owned(), "{\"t\":\"note\",\"p\":127}".to_owned()),
        ("{}".to_owned(), "{\"t\":\"note\",\"n\":\"\"}".to_owned()),
        ("{}".to_owned(), format!("{{\"t\":\"note\",\"n\":\"{}\"}}", "n".repeat(70_000))),
        ("{}".to_owned(), "{\"t\":\"note\",\"b\":\"fixed:1:NaN\"}".to_owned()),
        ("{}".to_owned(), "{\"t\":\"note\",\"g\":[\"1:0:0:x\"]}".to_owned()),
        ("{}".to_owned(), "{\"t\":\"note\",\"gc\":4294967295,\"g\":[\"1:1:1:x\"]}".to_owned()),
        ("{}".to_owned(), "{\"t\":\"note\",\"x\":true}".to_owned()),
        ("{}".to_owned(), "{\"t\":\"note\",\"ga\":\"x\"}".to_owned()),
        ("{}".to_owned(), "{\"t\":\"note\",\"gr\":\"x\"}".to_owned()),
        ("{}".to_owned(), "{\"t\":\"note\",\"m\":0,\"r\":4294967295}".to_owned()),
    ];
    let mut stuck = Vec::new();
    for (at, (first, header)) in rows.iter().enumerate() {
        // A queue of its own, except that two rows have one biz id.
        let queue = format!("odd-{}", if at == 10 { 9 } else { at });
        let body = format!("{first}\n{header}\nnull");
        let id = optimus_core::Uuid::from_u128(0x4000_8000_0000_0000_0000 + at as u128);
        let sql = "INSERT INTO optimus_outbox (queue, id, body) VALUES (?, ?, ?)";
        let insert = sqlx::query(sql).bind(queue).bind(id.to_string()).bind(body.into_bytes());
        insert.execute(&setup.pool).await.unwrap();
        let began = Instant::now();
        let mut went = false;
        while began.elapsed() < Duration::from_secs(5) && !went {
            sleep(Duration::from_millis(20)).await;
            went = lag(&setup.pool).await.unwrap().rows == i64_len(&stuck);
        }
        if !went {
            stuck.push((first, &header[..header.len().min(80)]));
        }
    }
    for parked in list_parked(&setup.pool, 0).await.unwrap() {
        println!("parked {}", parked.error.chars().take(150).collect::<String>());
    }
    println!("stuck: {stuck:#?}");
    assert!(stuck.is_empty());
    relay.stop().await;
}

fn i64_len<T>(list: &[T]) -> u64 {
    list.len() as u64
}

/// A row whose time is out of any range.
const NO_TIME: &str = "INSERT INTO optimus_outbox (queue, id, body, at_ms) VALUES ('default', \
    '01890a5d-ac96-774b-bcce-b302099a8057', 'no call', -9223372036854775808)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "proves: a damaged row stops the relay"]
async fn a_row_with_a_wrong_time_holds_nothing_up_on_postgres() {
    let setup = Setup::<Postgres>::start().await;
    a_damaged_row_holds_nothing_up(setup, NO_TIME.to_owned()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "proves: a damaged row stops the relay"]
async fn a_row_with_a_wrong_time_holds_nothing_up_on_mariadb() {
    let setup = Setup::<MySql>::start().await;
    a_damaged_row_holds_nothing_up(setup, NO_TIME.to_owned()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_with_a_wrong_time_holds_nothing_up_on_sqlite() {
    let setup = Setup::<Sqlite>::start().await;
    a_damaged_row_holds_nothing_up(setup, NO_TIME.to_owned()).await;
}

/// A part of a transaction that is rolled back takes the calls of that part along, in both forms.
async fn a_part_that_is_rolled_back_takes_its_plain_calls_along<DB: TestDb>(setup: Setup<DB>) {
    let (seen, relay) = (Seen::default(), setup.start_relay().await);
    let _worker = setup.start_worker(&seen);
    let client = setup.client.clone();
    let done: Result<(), optimus_core::BoxError> = client
        .scope(optimus_sql::transaction(&setup.pool, async |mut tx| {
            DB::run_plain(&mut tx, "SAVEPOINT inner_part").await?;
            note(1, 1).perform_async().await?;
            DB::run_plain(&mut tx, "ROLLBACK TO SAVEPOINT inner_part").await?;
            note(1, 2).perform_async().await?;
            Ok(())
        }))
        .await;
    done.unwrap();
    assert!(has(&seen, 1).await);
    sleep(Duration::from_secs(1)).await;
    println!("ran: {:?}", seen.all());
    assert_eq!(seen.all(), [(1, 2)], "the call of the part that was rolled back does not run");
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "proves: a call of a savepoint that is rolled back is submitted"]
async fn a_part_that_is_rolled_back_takes_its_plain_calls_along_on_postgres() {
    a_part_that_is_rolled_back_takes_its_plain_calls_along(Setup::<Postgres>::start().await).await;
}

/// Polls a future this many times, and drops it then.
async fn polled<F: Future>(future: F, mut times: u32) -> Option<F::Output> {
    let mut future = Box::pin(future);
    std::future::poll_fn(move |context| {
        if times == 0 {
            return std::task::Poll::Ready(None);
        }
        times -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

/// Which future is dropped.
#[derive(Debug, Clone, Copy)]
enum Dropped {
    /// That of sqlx alone, for comparison.
    Begin,
    Transaction,
    Once,
}

/// A handler is dropped while its transaction begins, as by its time limit. The pool has one
/// connection, so that the next user has the one that was dropped. Returns how many writes of the
/// next users were acknowledged, and how many of them are there in the end.
async fn lost_writes<DB: TestDb>(setup: &Setup<DB>, what: Dropped) -> (i64, i64) {
    setup.sql("DELETE FROM plain").await;
    let mut written = 0;
    for round in 0..5 {
        for times in 1..=8 {
            let options = sqlx::pool::PoolOptions::<DB>::new().max_connections(1);
            let options = options.connect(&setup.database);
            let pool: Pool<DB> = options.await.unwrap();
            match what {
                Dropped::Begin => drop(polled(pool.begin(), times).await),
                Dropped::Transaction => {
                    let body = async |_| Ok::<_, optimus_sql::Error>(());
                    drop(polled(optimus_sql::transaction(&pool, body), times).await);
                }
                Dropped::Once => {
                    let ctx = crate::once::attempt(&crate::once::task(), 1 + round);
                    let body = async |_| Ok::<_, optimus_sql::Error>(());
                    drop(polled(optimus_sql::Once::once(&ctx, &pool, body), times).await);
                }
            }
            // Another handler writes. It is told that this is done.
            let mut connection = pool.acquire().await.unwrap();
            DB::run_plain(&mut connection, "INSERT INTO plain VALUES (1)").await.unwrap();
            drop(connection);
            written += 1;
            pool.close().await;
        }
    }
    (written, DB::number(&setup.pool, "SELECT COUNT(*) FROM plain").await)
}

async fn a_handler_that_is_dropped_as_its_transaction_begins_loses_no_write<DB: TestDb>(
    setup: Setup<DB>,
) {
    setup.sql("CREATE TABLE plain (n bigint NOT NULL)").await;
    let mut lost = 0;
    for what in [Dropped::Begin, Dropped::Transaction, Dropped::Once] {
        let (written, there) = lost_writes(&setup, what).await;
        println!("{} {what:?}: {written} writes were acknowledged, {there} are there", DB::NAME);
        lost += if matches!(what, Dropped::Begin) { 0 } else { written - there };
    }
    assert_eq!(lost, 0, "acknowledged writes are lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "proves: a connection goes back to its pool within a transaction"]
async fn a_handler_that_is_dropped_as_its_transaction_begins_loses_no_write_on_postgres() {
    let setup = Setup::<Postgres>::start().await;
    a_handler_that_is_dropped_as_its_transaction_begins_loses_no_write(setup).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "proves: a connection goes back to its pool within a transaction"]
async fn a_handler_that_is_dropped_as_its_transaction_begins_loses_no_write_on_mariadb() {
    let setup = Setup::<MySql>::start().await;
    a_handler_that_is_dropped_as_its_transaction_begins_loses_no_write(setup).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_is_dropped_as_its_transaction_begins_loses_no_write_on_sqlite() {
    let setup = Setup::<Sqlite>::start().await;
    a_handler_that_is_dropped_as_its_transaction_begins_loses_no_write(setup).await;
}

/// Futures that are dropped at each of their waits leave nothing open, and nothing half.
async fn futures_that_are_dropped_leave_nothing_half<DB: TestDb>(setup: Setup<DB>) {
    setup.sql("CREATE TABLE orders (n bigint NOT NULL)").await;
    setup.sql("CREATE TABLE plain (n bigint NOT NULL)").await;
    let pool = &setup.pool;
    let client = setup.client.clone();
    for round in 0..10 {
        for times in 0..60 {
            let body = async |mut tx: optimus_sql::Tx<DB>| {
                DB::run_plain(&mut tx, "INSERT INTO orders VALUES (1)").await?;
                note(1, times).perform_in_tx(&mut tx).await?;
                DB::run_plain(&mut tx, "INSERT INTO orders VALUES (1)").await?;
                note(1, times).perform_async().await?;
                Ok::<_, optimus_core::BoxError>(7)
            };
            drop(polled(client.scope(optimus_sql::transaction(pool, body)), times).await);
            let ctx = crate::once::attempt(&crate::once::task(), 1 + u64::from(times));
            drop(polled(client.scope(optimus_sql::Once::once(&ctx, pool, body)), times).await);
            // What comes next on the pool is committed by itself.
            timeout(WAIT, setup.sql("INSERT INTO plain VALUES (1)")).await.expect("no lock");
        }
        let other = DB::connect(&setup.database).await;
        let count = async |sql| timeout(WAIT, DB::number(&other, sql)).await.expect("no lock");
        let orders = count("SELECT COUNT(*) FROM orders").await;
        let calls = count("SELECT COUNT(*) FROM optimus_outbox").await;
        let plain = count("SELECT COUNT(*) FROM plain").await;
        println!("{round}: {orders} orders, {calls} calls, {plain} plain writes");
        assert_eq!(orders, calls);
        assert_eq!(plain, 60 * (round + 1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "proves: a connection goes back to its pool within a transaction"]
async fn futures_that_are_dropped_leave_nothing_half_on_postgres() {
    futures_that_are_dropped_leave_nothing_half(Setup::<Postgres>::start().await).await;
}
