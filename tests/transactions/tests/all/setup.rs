//! A database, a store and a client for one test: [`Setup`].

use std::{
    env,
    sync::{Arc, Mutex},
    time::Duration,
};

use optimus_core::{BoxError, Client, Context, Task};
use optimus_sql::{PerformInTx as _, Relay, RunningRelay, lag, migrate};
use optimus_testkit::{Proc, RedisServer, SharedRedis, eventually, namespace, shared_redis};
use optimus_worker::{Worker, WorkerBuilder};
use serde::{Deserialize, Serialize};
use sqlx::Pool;
use tempfile::TempDir;
use tokio::{sync::oneshot, task::JoinHandle};

use crate::databases::TestDb;

pub const SOON: Duration = Duration::from_secs(60);

/// What a child process needs to find the setup of its parent.
const CHILD: [&str; 3] = ["CHILD_DATABASE", CHILD_REDIS, "CHILD_NAMESPACE"];
pub const CHILD_REDIS: &str = "CHILD_REDIS";

pub struct Setup<DB: TestDb> {
    pub pool: Pool<DB>,
    pub client: Client,
    pub database: String,
    pub redis: String,
    pub namespace: String,
    _shared: Option<SharedRedis>,
    _folder: Option<TempDir>,
}

impl<DB: TestDb> Setup<DB> {
    /// On the shared Redis.
    pub async fn start() -> Self {
        let shared = shared_redis();
        let url = shared.url().to_owned();
        Self { _shared: Some(shared), ..Self::on(&url).await }
    }

    pub async fn on(redis: &str) -> Self {
        let namespace = namespace();
        let (database, folder) = DB::create(&namespace).await;
        let pool = DB::connect(&database).await;
        migrate(&pool).await.unwrap();
        let client = connect(redis, &namespace).await;
        let redis = redis.to_owned();
        Self { pool, client, database, redis, namespace, _shared: None, _folder: folder }
    }

    /// The setup of the process that started this one.
    pub async fn of_parent() -> Self {
        let [database, redis, namespace] = CHILD.map(|name| env::var(name).unwrap());
        let pool = DB::connect(&database).await;
        let client = connect(&redis, &namespace).await;
        Self { pool, client, database, redis, namespace, _shared: None, _folder: None }
    }

    /// Starts this test binary as another process, which runs one of its ignored tests.
    pub fn child(&self, test: &str) -> Proc {
        self.child_with(test, "CHILD", "")
    }

    /// Starts it with another variable.
    pub fn child_with(&self, test: &str, name: &str, value: &str) -> Proc {
        let values = [&self.database, &self.redis, &self.namespace];
        let program = Proc::program(env::current_exe().unwrap());
        let program = program.arg(test).arg("--exact").arg("--ignored").arg("--nocapture");
        let known = CHILD.iter().zip(values).fold(program, |it, (name, known)| it.env(name, known));
        known.env(name, value).start()
    }

    pub fn relay(&self) -> Relay<DB> {
        Relay::new(&self.pool, &self.client)
    }

    pub async fn start_relay(&self) -> RunningRelay {
        self.relay().start().await.unwrap()
    }

    /// Returns the same database with another store, which the test may disturb.
    pub async fn moved_to(self, server: &RedisServer) -> Self {
        let client = connect(&server.url(), &self.namespace).await;
        Self { client, redis: server.url(), ..self }
    }

    /// Starts a relay on a runtime of its own, which a test can end at any moment.
    pub async fn relay_of(&self, client: &Client) -> DoomedRelay {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let pool = runtime.spawn(connect_again::<DB>(self.database.clone())).await.unwrap();
        let relay = Relay::new(&pool, client);
        let running = runtime.spawn(relay.start()).await.unwrap().unwrap();
        DoomedRelay { runtime: Some(runtime), _running: running }
    }

    /// Returns whether a batch is noted.
    pub async fn is_noted(&self) -> bool {
        let sql = "SELECT COUNT(*) FROM optimus_stream WHERE name = 'outbox' AND noted <> '[]'";
        DB::number(&self.pool, sql).await == 1
    }

    /// Starts a worker that runs one task at a time, so that tasks run in the order of the queue.
    pub fn start_worker(&self, seen: &Seen) -> RunningWorker {
        run_worker(self.worker(seen).concurrency(1))
    }

    pub fn worker(&self, seen: &Seen) -> WorkerBuilder {
        Worker::builder(&self.redis)
            .namespace(&self.namespace)
            .queues(["default", "other"])
            .task_type::<Note>()
            .task_type::<Double>()
            .data(seen.clone())
            .poll(Duration::from_millis(50))
            .quiet()
    }

    /// Commits a call.
    pub async fn commit(&self, number: u32) {
        let mut tx = self.pool.begin().await.unwrap();
        note(1, number).perform_in_tx(&mut tx).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Runs statements.
    pub async fn sql(&self, sql: &'static str) {
        DB::run_plain(&mut self.pool.acquire().await.unwrap(), sql).await.unwrap();
    }

    /// Returns how many tasks have succeeded.
    pub async fn succeeded(&self) -> u64 {
        self.client.inspector().totals("default").await.unwrap().successes
    }

    /// Returns how many tasks have not ended, or not with a success.
    pub async fn counts_left(&self) -> u64 {
        let counts = self.client.inspector().counts("default").await.unwrap();
        let open = counts.ready + counts.delayed + counts.retry + counts.working;
        open + counts.dead + counts.cancelled
    }

    /// Waits until no call waits in the outbox.
    pub async fn all_relayed(&self) {
        let is_empty = async || lag(&self.pool).await.is_ok_and(|lag| lag.rows == 0);
        eventually("the outbox is empty", SOON, is_empty).await;
    }
}

async fn connect_again<DB: TestDb>(url: String) -> Pool<DB> {
    DB::connect(&url).await
}

/// A relay that ends as in a crash.
pub struct DoomedRelay {
    runtime: Option<tokio::runtime::Runtime>,
    _running: RunningRelay,
}

impl DoomedRelay {
    /// Ends it wherever it is.
    pub fn kill(mut self) {
        self.runtime.take().expect("it runs").shutdown_background();
    }
}

impl Drop for DoomedRelay {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

pub async fn connect(redis: &str, namespace: &str) -> Client {
    Client::builder(redis).namespace(namespace).connect().await.unwrap()
}

pub fn run_worker(builder: WorkerBuilder) -> RunningWorker {
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = builder.build().unwrap();
    let ended = tokio::spawn(async move {
        tokio::select! {
            ended = worker.run() => ended.unwrap(),
            _ = stopped => {}
        }
    });
    RunningWorker { ended, _stop: stop }
}

pub struct RunningWorker {
    ended: JoinHandle<()>,
    _stop: oneshot::Sender<()>,
}

impl Drop for RunningWorker {
    fn drop(&mut self) {
        self.ended.abort();
    }
}

/// The tasks that ran, in order.
#[derive(Clone, Default)]
pub struct Seen(Arc<Mutex<Vec<(u32, u32)>>>);

impl Seen {
    pub fn all(&self) -> Vec<(u32, u32)> {
        self.0.lock().unwrap().clone()
    }

    pub fn add(&self, writer: u32, number: u32) {
        self.0.lock().unwrap().push((writer, number));
    }

    pub fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub async fn has(&self, count: usize) {
        let has = async || self.count() >= count;
        eventually(&format!("{count} tasks ran"), SOON, has).await;
    }
}

/// A task that only notes that it ran.
#[derive(Serialize, Deserialize)]
pub struct Note {
    pub writer: u32,
    pub number: u32,
}

impl Task for Note {
    const NAME: &'static str = "note";
    type Output = ();

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let seen: Seen = ctx.data().ok_or("no data")?;
        seen.add(self.writer, self.number);
        Ok(())
    }
}

pub fn note(writer: u32, number: u32) -> optimus_core::Call<Note> {
    Note { writer, number }.call()
}

/// A task with a result.
#[derive(Serialize, Deserialize)]
pub struct Double {
    pub number: i64,
}

impl Task for Double {
    const NAME: &'static str = "double";
    type Output = i64;

    async fn run(self, _: Context) -> Result<i64, BoxError> {
        Ok(2 * self.number)
    }
}
