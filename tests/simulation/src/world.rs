//! A store with all its processes, on one thread and on virtual time: [`World`].

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use optimus_core::{Client, Error, platform};
use optimus_embedded::Store;
use optimus_embedded::simulation::VirtualTime;
use optimus_testkit::history::What;
use optimus_worker::Worker;
use tokio::runtime;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::dump::{QueueDump, dump};
use crate::flow_tasks::{Link, Total};
use crate::gathered::Gathered;
use crate::hostile::{Hostile, Unclonable};
use crate::journal::Journal;
use crate::network::Network;
use crate::process_gate::ProcessGate;
use crate::queues::{ALL, Queues};
use crate::rows::Rowed;
use crate::sources::{Sources, Ticked};
use crate::tasks::{Desk, Mute, Neighbour, Poison, Rare, Work, be_quiet_about_panics};

/// The prefix of all keys.
pub const NAMESPACE: &str = "simulation";
/// The lease of a worker without another setting.
pub const LEASE: Duration = Duration::from_secs(2);
const CONNECT_AGAIN: Duration = Duration::from_millis(100);
/// The time at which every run begins, in ms since the epoch.
const START_MS: u64 = 1_800_000_000_000;

/// Counts the names of stores, because all threads share them.
static WORLDS: AtomicU64 = AtomicU64::new(0);

/// One store, and its processes.
pub struct World {
    /// The network between the processes and the store.
    pub network: Arc<Network>,
    /// The queues.
    pub queues: Queues,
    name: u64,
    processes: AtomicU32,
    stops: Mutex<HashMap<u32, CancellationToken>>,
}

/// A worker process that was started.
pub struct Member {
    /// The number of the process.
    pub process: u32,
    /// The setup of the worker.
    pub setup: Setup,
    /// Asks the worker to end.
    pub stop: CancellationToken,
    /// The main task of the worker.
    pub main: JoinHandle<Result<(), Error>>,
}

/// The name by which a process finds the store. The name is removed when this value is dropped.
struct Published(String);

impl Drop for Published {
    fn drop(&mut self) {
        Store::withdraw(&self.0);
    }
}

/// The setup of a worker.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The number of tasks that the worker runs at once.
    pub concurrency: usize,
    /// The interval of the worker's polls.
    pub poll: Duration,
    /// How long tasks may still run after the worker is asked to end.
    pub grace: Duration,
    /// Whether the worker knows every task.
    pub knows_all: bool,
    /// How long the worker keeps its tasks after its last heartbeat.
    pub lease: Duration,
    /// The queues that the worker serves, as bits.
    pub serves: u64,
    /// The schedule or the sharded function in the code of the worker.
    pub sources: Sources,
    /// How many dead and cancelled tasks the worker keeps, and for how long, if that is set.
    pub keep_ended: Option<(usize, Duration)>,
}

impl Setup {
    /// Returns the setup of a worker that serves all queues with this many slots, and knows every
    /// task.
    pub fn of(concurrency: usize) -> Self {
        let (poll, grace) = (Duration::from_secs(1), Duration::from_secs(1));
        let sources = Sources::Nothing;
        let (lease, serves, keep_ended) = (LEASE, ALL, None);
        Self { concurrency, poll, grace, knows_all: true, lease, serves, sources, keep_ended }
    }
}

/// Runs a future on one thread and on virtual time. All random numbers come from the seed.
pub fn simulate<T>(seed: u64, run: impl AsyncFnOnce(World) -> T) -> T {
    simulate_at(START_MS, seed, run)
}

/// The same, but the run begins at that time, in ms since the epoch.
pub fn simulate_at<T>(start_ms: u64, seed: u64, run: impl AsyncFnOnce(World) -> T) -> T {
    be_quiet_about_panics();
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime without threads can be built");
    runtime.block_on(async {
        let origin = Instant::now();
        let time_of_day = move || UNIX_EPOCH + Duration::from_millis(start_ms) + origin.elapsed();
        platform::simulate(seed, time_of_day);
        run(World::new(start_ms)).await
    })
}

impl World {
    fn new(start_ms: u64) -> Self {
        let time = VirtualTime::starting_at(start_ms);
        let store = Store::new(time.clock());
        let network = Network::new(store, time, Arc::new(Journal::new()));
        let name = WORLDS.fetch_add(1, Ordering::Relaxed);
        let (processes, queues) = (AtomicU32::new(1), Queues::default());
        Self { network, queues, name, processes, stops: Mutex::default() }
    }

    /// Returns the keys of each queue that has keys, by the queue's name.
    pub fn dump(&self) -> BTreeMap<String, QueueDump> {
        dump(&self.network.store)
    }

    /// Returns the number of a new process.
    pub fn next_process(&self) -> u32 {
        self.processes.fetch_add(1, Ordering::Relaxed)
    }

    /// Provides the URL of the store for a process. The URL is valid for as long as `using` takes.
    async fn at_url<T>(&self, process: u32, using: impl AsyncFnOnce(&str) -> T) -> T {
        let name = format!("simulation-{}-{process}", self.name);
        let gate = Arc::new(ProcessGate::new(self.network.clone(), process));
        self.network.store.behind(gate).publish(&name);
        let url = format!("memory://{name}");
        let _published = Published(name);
        using(&url).await
    }

    /// Connects a client of that process.
    ///
    /// # Errors
    ///
    /// The errors of a client that connects.
    pub async fn client(&self, process: u32) -> Result<Client, Error> {
        self.at_url(process, async |url| {
            Client::builder(url)
                .namespace(NAMESPACE)
                .submit_timeout(Duration::from_secs(5))
                .connect()
                .await
        })
        .await
    }

    /// Connects a client, and repeats that until it is connected.
    pub async fn client_at_last(&self, process: u32) -> Client {
        loop {
            match self.client(process).await {
                Ok(client) => return client,
                Err(_) => sleep(CONNECT_AGAIN).await,
            }
        }
    }

    /// Starts a process that can be killed.
    pub fn spawn(
        &self,
        process: u32,
        main: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<()> {
        let main = tokio::spawn(main);
        self.network.begin(process, main.abort_handle());
        main
    }

    fn stops(&self) -> MutexGuard<'_, HashMap<u32, CancellationToken>> {
        self.stops.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks a worker to end, if the process is a worker.
    pub fn ask_to_end(&self, process: u32) {
        if let Some(stop) = self.stops().get(&process) {
            self.network.note_asked(process);
            stop.cancel();
        }
    }

    /// Asks all workers to end.
    pub(crate) fn ask_all_to_end(&self) {
        self.stops().values().for_each(CancellationToken::cancel);
    }

    /// Starts a worker process.
    pub fn worker(self: &Arc<Self>, setup: Setup) -> Member {
        let (process, stop) = (self.next_process(), CancellationToken::new());
        let (world, stopped) = (self.clone(), stop.clone());
        let main = tokio::spawn(async move {
            let running = world.at_url(process, async |url| {
                let desk = Desk { network: world.network.clone(), process };
                let builder = Worker::builder(url).quiet().namespace(NAMESPACE);
                let mut builder = world
                    .queues
                    .serve(builder, setup.serves)
                    .concurrency(setup.concurrency)
                    .lease(setup.lease)
                    .poll(setup.poll)
                    .shutdown_grace(setup.grace)
                    .only_named_tasks()
                    .task_type::<Work>()
                    .task_type::<Poison>()
                    .task_type::<Neighbour>()
                    .task_type::<Mute>()
                    .task_type::<Link>()
                    .task_type::<Total>()
                    .task_type::<Gathered>()
                    .task_type::<Hostile>()
                    .task_type::<Ticked>()
                    .task_type::<Rowed>()
                    .data(Unclonable)
                    .data(desk);
                if setup.knows_all {
                    builder = builder.task_type::<Rare>();
                }
                if let Some((tasks, age)) = setup.keep_ended {
                    builder = builder.keep_ended(tasks, age);
                }
                builder = setup.sources.add_to(builder);
                let asked = async {
                    stopped.cancelled().await;
                    world.network.journal.now_ns()
                };
                builder.build()?.run_until(asked).await
            });
            let since = running.await?;
            world.network.journal.write(process, What::Left { worker: process, since });
            Ok(())
        });
        let lease_ms = u64::try_from(setup.lease.as_millis()).unwrap_or(u64::MAX);
        self.network.journal.write(0, What::Lease { worker: process, ms: lease_ms });
        self.stops().insert(process, stop.clone());
        self.network.begin(process, main.abort_handle());
        Member { process, setup, stop, main }
    }
}
