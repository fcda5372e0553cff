//! A source over a table of `SQLite`, whose worker processes are killed and replaced while rows
//! become tasks and change their status; many tables of which few have rows; and a Redis that loses
//! all its data.
//!
//! `cargo test -p optimus-journeys --test sources -- --ignored a_million` takes 1,000,000 rows, or
//! as many as `OPTIMUS_SOURCE_ROWS` says.

use std::{
    env,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    thread::sleep,
    time::{Duration, Instant},
};

use crate::common::{
    Bench,
    rows::{OPTIONS, PARTS, Pay, Rows, rows},
};
use optimus_core::{
    BoxError, Context, Found, Page, PageFacts, RunningScan, Source, SourceOptions, SourceParts,
    Task, TaskOptions, Tier, found_rows,
};
use optimus_testkit::{Proc, RedisServer, eventually};
use rusqlite::{Connection, TransactionBehavior, params};
use serde::{Deserialize, Serialize};

const WITHIN: Duration = Duration::from_secs(60);
const LEASE: Duration = Duration::from_secs(1);
const FILE: &str = "CHILD_FILE";
const SECOND: Duration = Duration::from_secs(1);

fn open(file: &Path) -> Connection {
    let connection = Connection::open(file).unwrap();
    connection.busy_handler(Some(try_again)).unwrap();
    connection
}

/// The handler of SQLite itself waits for up to 100 ms, in which others write a hundred times.
fn try_again(times: i32) -> bool {
    sleep(Duration::from_millis(1));
    u128::try_from(times).is_ok_and(|times| times < WITHIN.as_millis())
}

fn number(file: &Path, sql: &str) -> i64 {
    open(file).query_row(sql, (), |row| row.get(0)).unwrap()
}

/// The database, with the connection of a process.
#[derive(Clone)]
struct File(PathBuf, Arc<Mutex<Connection>>);

/// Sends one coupon, and marks it.
#[derive(Serialize, Deserialize)]
struct Send {
    id: i64,
}

impl Task for Send {
    const NAME: &'static str = "send";
    type Output = ();

    fn options() -> TaskOptions {
        TaskOptions::new().queue("send")
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let file = ctx.data::<File>().ok_or("no file")?;
        let mut db = file.1.lock().map_err(|_| "another handler has panicked")?;
        let db = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let sql = "UPDATE coupon SET status = 1 WHERE id = ?1 AND status = 0";
        let table = if db.execute(sql, [self.id])? == 1 { "sent" } else { "again" };
        db.execute(&format!("INSERT INTO {table} VALUES (?1)"), [self.id])?;
        Ok(db.commit()?)
    }
}

const COUPON_TIERS: &[Tier] =
    &[Tier { least: 0, most: u32::MAX, every: Duration::from_millis(200) }];

fn coupons() -> Source {
    let options = SourceOptions {
        tiers: COUPON_TIERS,
        idle: SECOND,
        slices: 4,
        page: 200,
        high_water: 1_000,
        attempts: None,
        timeout: WITHIN,
        ..OPTIONS
    };
    let parts = SourceParts { scan, data: Vec::new, ..PARTS };
    Source::new(("coupons", "here"), options, parts)
}

#[expect(clippy::unnecessary_wraps, reason = "`SourceParts::scan` returns a result")]
fn scan(facts: Arc<PageFacts>) -> Result<RunningScan, BoxError> {
    let page = Page::<i64>::of(facts.clone());
    Ok(Box::pin(async move {
        let file = page.shard().data::<File>().ok_or("no file")?;
        let (db, began) = (open(&file.0), Instant::now());
        let sql = "SELECT id FROM coupon WHERE status = 0 AND id > ?1 AND id % ?2 = ?3 \
                   ORDER BY id LIMIT ?4";
        let mut query = db.prepare(sql)?;
        let after = page.after().copied().unwrap_or(-1);
        let values = params![after, page.slices(), page.slice(), page.limit()];
        let ids = query.query_map(values, |row| row.get(0))?;
        let ids = ids.collect::<Result<Vec<i64>, _>>()?;
        let found: Vec<_> =
            ids.into_iter().map(|id| Found::new(id).task(Send { id }.call())).collect();
        let took = i64::try_from(began.elapsed().as_micros())?;
        let rows = i64::try_from(found.len())?;
        db.execute("INSERT INTO page VALUES (?1, ?2, ?3)", params![after, rows, took])?;
        Ok(found_rows(found, &facts)?)
    }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the other test starts this process"]
async fn a_worker_process_for_the_other_test() {
    let bench = Bench::of_parent().await;
    let path = PathBuf::from(env::var(FILE).unwrap());
    let connection = Arc::new(Mutex::new(open(&path)));
    let file = File(path, connection);
    let worker = bench.worker().lease(LEASE).source(coupons).task_type::<Send>().data(file);
    println!("begins");
    worker.concurrency(8).run().await.unwrap();
}

struct Fleet {
    bench: Bench,
    file: PathBuf,
    running: Vec<Proc>,
}

impl Fleet {
    fn add(&mut self) {
        let child = self.bench.child("sources_faults::a_worker_process_for_the_other_test");
        self.running.push(child.env(FILE, self.file.display().to_string()).start());
    }

    fn count(&self, sql: &str) -> i64 {
        number(&self.file, sql)
    }

    /// Returns the median time of the first full pages, or of the last ones.
    fn page_us(&self, order: &str) -> i64 {
        let some = format!("SELECT took FROM page WHERE rows = 200 ORDER BY after {order} LIMIT 9");
        self.count(&format!("SELECT took FROM ({some}) ORDER BY took LIMIT 1 OFFSET 4"))
    }
}

/// Makes the table, and lets workers come, go and die until all rows are sent. Half of the rows are
/// inserted while they work.
async fn each_row_once(total: i64, kills: i64) {
    let bench = Bench::on_redis().await;
    let file = env::temp_dir().join(format!("{}.db", bench.namespace()));
    let mut db = open(&file);
    db.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;
         CREATE TABLE coupon (id INTEGER PRIMARY KEY, status INTEGER);
         CREATE INDEX open_coupon ON coupon (id) WHERE status = 0;
         CREATE TABLE sent (id INTEGER); CREATE TABLE again (id INTEGER);
         CREATE TABLE page (after INTEGER, rows INTEGER, took INTEGER)",
    )
    .unwrap();
    let mut insert = |ids: std::ops::Range<i64>| {
        let batch = db.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        for id in ids {
            batch.execute("INSERT INTO coupon VALUES (?1, 0)", [id]).unwrap();
        }
        batch.commit().unwrap();
    };
    insert(0..total / 2);
    let mut fleet = Fleet { bench, file, running: Vec::new() };
    (0..3).for_each(|_| fleet.add());
    for kill in 1..=kills {
        let some = total / 2 * kill / (kills + 1);
        eventually("more are sent", WITHIN * 10, async || {
            fleet.count("SELECT count(*) FROM sent") >= some
        })
        .await;
        fleet.running.remove(0).kill9();
        fleet.add();
        let (from, to) = (total / 2 * (kill - 1) / kills, total / 2 * kill / kills);
        insert(total / 2 + from..total / 2 + to);
    }
    eventually("all are sent", WITHIN * 60, async || {
        fleet.count("SELECT count(*) FROM sent") == total
    })
    .await;
    for process in &fleet.running {
        process.sigterm();
    }
    for mut process in std::mem::take(&mut fleet.running) {
        assert!(process.wait(WITHIN).await.success());
    }
    assert_eq!(fleet.count("SELECT count(DISTINCT id) FROM sent"), total);
    assert_eq!(fleet.count("SELECT count(*) FROM coupon WHERE status = 0"), 0);
    let again = fleet.count("SELECT count(*) FROM again");
    // Only tasks that a killed worker had begun or not yet reported run again.
    assert!(again <= kills * 32, "{again} tasks found their row sent");
    let (first, last) = (fleet.page_us("ASC"), fleet.page_us("DESC"));
    println!(
        "{again} tasks found their row sent; a page takes {first} us at first, {last} at last"
    );
    // Pages by number would read all rows before them.
    assert!(last <= 4 * first + 2_000, "a page takes {first} us at first and {last} us at last");
    for end in ["", "-wal", "-shm"] {
        std::fs::remove_file(format!("{}{end}", fleet.file.display())).ok();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_row_is_sent_once_while_workers_die_and_rows_come() {
    each_row_once(4_000, 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it takes many minutes"]
async fn a_million_rows_are_sent_once_while_workers_die_and_rows_come() {
    let rows = env::var("OPTIMUS_SOURCE_ROWS").ok().and_then(|text| text.parse().ok());
    each_row_once(rows.unwrap_or(1_000_000), 9).await;
}

const TABLES: usize = 1_024;
const EVERY: Duration = Duration::from_secs(2);

fn many_tables() -> Source {
    let options = SourceOptions {
        tiers: &[Tier { least: 0, most: u32::MAX, every: EVERY }],
        idle: EVERY.saturating_mul(2),
        slices: 4,
        ..OPTIONS
    };
    let tables = || (0..TABLES).map(|table| format!("t{table}")).collect();
    Source::new(("many", "many"), options, SourceParts { tables, ..PARTS })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_in_few_of_many_empty_tables_are_found_within_twice_the_interval() {
    let bench = Bench::on_memory().await;
    let table = Rows::default();
    let builder = bench.worker().source(many_tables).task_type::<Pay>().data(table.clone());
    let worker = bench.start(builder);
    eventually("each table was read twice", WITHIN, async || {
        (0..TABLES).all(|at| table.pages_of(&format!("t{at}")) >= 3)
    })
    .await;
    let pages = table.pages();
    for name in ["t3", "t500", "t1023"] {
        table.add(name, 0..50);
    }
    let began = Instant::now();
    eventually("all rows are done", WITHIN, async || table.done() == 150).await;
    let took = table.all_found_at().unwrap() - began;
    assert!(took <= EVERY * 2, "it took {took:?}");
    // Empty tables are read each 3.5 s now, so few of them twice in this time.
    let read = usize::try_from(table.pages() - pages).unwrap();
    assert!(read <= TABLES * 3 / 2 + 100, "{read} pages in {took:?}");
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_whose_tasks_a_flush_has_lost_are_found_by_the_next_pass() {
    let redis = RedisServer::start();
    let bench = Bench::at(&redis.url()).await;
    let table = Rows::default();
    table.add("", 0..100);
    let scanner = bench.worker().lease(LEASE).source(rows).data(table.clone());
    let scans = bench.start(scanner);
    let source = bench.client.source("rows");
    eventually("all tasks wait", WITHIN, async || {
        source
            .look()
            .await
            .is_ok_and(|seen| seen.slices.iter().any(|slice| slice.scans.submitted >= 100))
    })
    .await;
    bench.raw().await.run("FLUSHALL").await;
    eventually("operators find the source again", WITHIN, async || {
        bench.client.sources().await.is_ok_and(|names| names == ["rows"])
    })
    .await;
    let runs = bench.worker().task_type::<Pay>().source(rows).without_sources();
    let runs = bench.start(runs.data(table.clone()));
    eventually("all rows are done", WITHIN, async || table.done() == 100).await;
    assert_eq!(table.runs(), 100);
    runs.stop().await;
    scans.stop().await;
}
