//! The store under test: a broker on a separate queue, and raw access to the same keys.

use std::sync::{
    Arc, LazyLock, Mutex,
    atomic::{AtomicU64, Ordering},
};

use optimus_core::{
    QueueName,
    broker::{Broker, Endpoint, KnownKeys},
};
use optimus_embedded::{Clock, Room, Store};
use optimus_testkit::{RedisServer, SharedRedis, namespace, shared_redis};
use redis::{
    AsyncConnectionConfig, Cmd, FromRedisValue, Pipeline, aio::MultiplexedConnection, cmd,
};

use crate::dump::is_operation;

/// The time from which all tests count, in ms. It is in the past, but no test may depend on this.
pub(crate) const START: u64 = 1_700_000_000_000;

/// The number of databases of a Redis server with its default configuration.
const DATABASES: u64 = 16;

/// Runs tests on both stores: `a_name` becomes `a_name::embedded` and `a_name::redis`.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {$(
        mod $name {
            #[tokio::test]
            async fn embedded() {
                super::$name($crate::bench::Bench::embedded()).await;
            }

            #[tokio::test]
            async fn redis() {
                super::$name($crate::bench::Bench::redis().await).await;
            }
        }
    )+};
}

/// A queue that no other test uses, with its store.
pub(crate) struct Bench {
    broker: Broker,
    raw: Raw,
    pub(crate) queue: QueueName,
    last_number: AtomicU64,
    /// What reads of many queues remember of the queue.
    known: Mutex<KnownKeys>,
}

#[derive(Clone)]
enum Raw {
    Memory(Store),
    Shared(MultiplexedConnection),
    /// The bench keeps the server because its drop ends the process.
    Own(MultiplexedConnection, Arc<RedisServer>),
}

impl Bench {
    /// Makes a bench on a private store in this process.
    pub(crate) fn embedded() -> Self {
        let store = Store::new(Clock::system());
        Self::new(Endpoint::Memory(store.clone(), "bench".to_owned()), Raw::Memory(store))
    }

    /// Makes a bench on the server that the tests share, in one of its databases: a dump looks for
    /// its keys with `KEYS`, which passes all keys of the database, also those of other tests.
    pub(crate) async fn redis() -> Self {
        static SHARED: LazyLock<SharedRedis> = LazyLock::new(shared_redis);
        static BENCHES: AtomicU64 = AtomicU64::new(0);
        let database = BENCHES.fetch_add(1, Ordering::Relaxed) % DATABASES;
        let url = format!("{}?db={database}", SHARED.url());
        let endpoint = Endpoint::parse(&url).expect("the testkit's URL is valid");
        Self::new(endpoint, Raw::Shared(connect(&url).await))
    }

    /// Makes a bench on a private server, which a test may disturb.
    pub(crate) async fn own_redis() -> Self {
        let server = RedisServer::start();
        let endpoint = Endpoint::parse(&server.url()).expect("the testkit's URL is valid");
        Self::new(endpoint, Raw::Own(connect(&server.url()).await, Arc::new(server)))
    }

    /// Makes a bench on a server that the test restarts, with the data of the last run.
    pub(crate) async fn on(server: &RedisServer) -> Self {
        let endpoint = Endpoint::parse(&server.url()).expect("the testkit's URL is valid");
        Self::named(endpoint, Raw::Shared(connect(&server.url()).await), "restarted")
    }

    fn new(endpoint: Endpoint, raw: Raw) -> Self {
        Self::named(endpoint, raw, &namespace())
    }

    fn named(endpoint: Endpoint, raw: Raw, namespace: &str) -> Self {
        let broker = Broker::new(endpoint, namespace, "test");
        let queue = QueueName::new(QueueName::DEFAULT).expect("the bench's name is valid");
        Self { broker, raw, queue, last_number: AtomicU64::new(0), known: Mutex::default() }
    }

    /// Another queue of the same store and namespace.
    pub(crate) fn sibling(&self, queue: &str) -> Self {
        let queue = QueueName::new(queue).expect("the name of a test's queue is valid");
        let (broker, raw) = (self.broker.clone(), self.raw.clone());
        Self { broker, raw, queue, last_number: AtomicU64::new(0), known: Mutex::default() }
    }

    /// Returns the broker, this many ms after [`START`].
    pub(crate) fn at(&self, ms: u64) -> Broker {
        self.broker.at(START + ms)
    }

    /// Returns the broker, with the clock of the store.
    pub(crate) fn now(&self) -> Broker {
        self.broker.clone()
    }

    /// Returns the key of that name in the format of our keys.
    pub(crate) fn key(&self, name: &str) -> String {
        format!("{{{}:{}:0}}:{name}", self.broker.namespace(), self.queue)
    }

    /// Returns a call number that was not used before.
    pub(crate) fn next_number(&self) -> u64 {
        self.last_number.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns what the last read of many queues remembers.
    pub(crate) fn take_known(&self) -> KnownKeys {
        std::mem::take(&mut self.known.lock().expect("no test panics while it holds this"))
    }

    /// Keeps it for the next read.
    pub(crate) fn keep_known(&self, known: KnownKeys) {
        *self.known.lock().expect("no test panics while it holds this") = known;
    }

    /// Runs a command directly; it must succeed.
    pub(crate) async fn raw<T: FromRedisValue>(&self, command: &Cmd) -> T {
        let answer = match &self.raw {
            Raw::Memory(store) => command.query_async(&mut store.connection()).await,
            Raw::Shared(connection) | Raw::Own(connection, _) => {
                command.query_async(&mut connection.clone()).await
            }
        };
        answer.expect("a raw command of a test is right")
    }

    /// Runs commands directly in one write; they must succeed.
    pub(crate) async fn raw_all<T: FromRedisValue>(&self, commands: &Pipeline) -> Vec<T> {
        if commands.is_empty() {
            return Vec::new();
        }
        let answers = match &self.raw {
            Raw::Memory(store) => commands.query_async(&mut store.connection()).await,
            Raw::Shared(connection) | Raw::Own(connection, _) => {
                commands.query_async(&mut connection.clone()).await
            }
        };
        answers.expect("the raw commands of a test are right")
    }

    /// Returns a hash's field.
    pub(crate) async fn field(&self, name: &str, field: &str) -> Option<String> {
        self.raw(cmd("HGET").arg(self.key(name)).arg(field)).await
    }

    /// Returns a zset's score.
    pub(crate) async fn score(&self, name: &str, member: &str) -> Option<u64> {
        self.raw(cmd("ZSCORE").arg(self.key(name)).arg(member)).await
    }

    /// Returns a zset's score as Redis writes it, which need not be whole.
    pub(crate) async fn exact_score(&self, name: &str, member: &str) -> Option<String> {
        self.raw(cmd("ZSCORE").arg(self.key(name)).arg(member)).await
    }

    /// Returns a list's items.
    pub(crate) async fn list(&self, name: &str) -> Vec<String> {
        self.raw(cmd("LRANGE").arg(self.key(name)).arg(0).arg(-1)).await
    }

    /// Returns the names of all keys.
    pub(crate) async fn names(&self) -> Vec<String> {
        self.dump().await.into_keys().filter(|name| !is_operation(name)).collect()
    }

    /// Makes the store reach its maxmemory, or ends this state.
    ///
    /// # Panics
    /// Panics on the shared server, which must not be disturbed.
    pub(crate) async fn set_full(&self, full: bool) {
        match &self.raw {
            Raw::Memory(store) => store.set_room(if full { Room::Full } else { Room::Free }),
            Raw::Shared(_) => panic!("the shared server is not to be filled"),
            Raw::Own(..) => {
                let limit = u8::from(full);
                let () = self.raw(cmd("CONFIG").arg("SET").arg("maxmemory").arg(limit)).await;
            }
        }
    }
}

async fn connect(url: &str) -> MultiplexedConnection {
    let client = redis::Client::open(url).expect("the testkit's URL is valid");
    let config = AsyncConnectionConfig::new().set_response_timeout(None);
    let connection = client.get_multiplexed_async_connection_with_config(&config).await;
    connection.expect("the testkit's server answers")
}
