//! One run, from the first process to the verdict: [`run_scene`].

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use optimus_testkit::history::{HistoryLog, What};
use optimus_testkit::{FaultProxy, has_faketime};
use redis::Value;
use tokio::runtime::Builder;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::agent::{Role, Settings};
use crate::nemesis::{Act, Done, Nemesis};
use crate::options::Options;
use crate::outcome::{self, Outcome};
use crate::processes::{NUMBERS_EACH, Processes, Who};
use crate::profile::{Profile, Sync};
use crate::stall::StallWatch;
use crate::store::Store;

/// Numbers of tasks that a client's place has for all its processes.
const NUMBERS_A_PLACE: u64 = NUMBERS_EACH << 16;
/// By how much one worker's clock is wrong, and one client's.
const AHEAD: &str = "+1d";
const BEHIND: &str = "-1d";
const TEND_EVERY: Duration = Duration::from_millis(100);
const SAY_EVERY: Duration = Duration::from_secs(30);

/// Everything that a nemesis can reach.
pub(crate) struct Stage {
    pub(crate) store: Store,
    /// The workers' lease.
    pub(crate) lease: Duration,
    /// Some agents see Redis through one of these.
    pub(crate) proxies: Vec<(Who, FaultProxy)>,
    pub(crate) log: Arc<HistoryLog>,
    /// So many acts are done.
    pub(crate) acts: AtomicU64,
    processes: Mutex<Processes>,
    synced_always: AtomicBool,
}

impl Stage {
    pub(crate) fn processes(&self) -> MutexGuard<'_, Processes> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_synced_always(&self) -> bool {
        self.synced_always.load(Ordering::Relaxed)
    }

    /// Tells Redis when to sync its file; it forgets that when it is restarted.
    ///
    /// # Errors
    /// When Redis is away.
    pub(crate) async fn apply_sync(&self) -> anyhow::Result<()> {
        if !self.is_synced_always() {
            let words = ["CONFIG", "SET", "appendfsync", "everysec"];
            self.store.command::<Value>(&words).await.context("appendfsync")?;
        }
        Ok(())
    }

    /// Sets the clock of Redis to so many seconds off the machine's, where that can be done.
    ///
    /// # Errors
    /// When the clock's file can't be written.
    pub(crate) async fn set_clock(&self, off_s: i64) -> anyhow::Result<bool> {
        let Some(by_s) = self.store.server().await.set_clock(off_s)? else { return Ok(false) };
        self.log.write(What::ClockSet { by_ms: by_s * 1_000 });
        Ok(true)
    }

    /// From now on what is acknowledged may be lost by a kill within two seconds.
    async fn sync_every_second(&self) -> anyhow::Result<()> {
        self.synced_always.store(false, Ordering::Relaxed);
        let _server = self.store.server().await;
        self.apply_sync().await
    }
}

/// Breaks things and judges; `false` if a promise was broken.
///
/// # Errors
/// When the run itself could not be carried out.
pub(crate) fn run_scene(options: &Options) -> anyhow::Result<bool> {
    let folder = tempfile::Builder::new().prefix("optimus-soak-").tempdir()?;
    println!("profile {}, seed {}", options.profile.name, options.seed);
    if has_faketime() {
        println!("clocks: one worker's {AHEAD}, one client's {BEHIND}");
    } else {
        println!("clocks: all right, for there is no libfaketime");
    }
    let runtime = Builder::new_multi_thread().worker_threads(4).enable_all().build()?;
    let outcome = runtime.block_on(run(options, folder.path()));
    let good = outcome.as_ref().is_ok_and(Outcome::is_good);
    if let Ok(outcome) = &outcome {
        println!("{outcome}");
    }
    println!("profile {}, seed {}", options.profile.name, options.seed);
    if options.keep || !good {
        println!("histories: {}", folder.keep().display());
    }
    outcome.map(|_| good)
}

async fn run(options: &Options, folder: &Path) -> anyhow::Result<Outcome> {
    let (begun, profile) = (Instant::now(), &options.profile);
    let mut random = fastrand::Rng::with_seed(options.seed);
    let stage = Arc::new(set(profile, folder, &mut random).await?);
    if profile.sync == Sync::EverySec {
        stage.sync_every_second().await?;
    }
    let _watch = StallWatch::start(stage.log.clone());
    let done = disturb(&stage, profile, &mut random).await?;
    println!("healing and draining after {:.0?}", begun.elapsed());
    heal(&stage).await?;
    outcome::find(&stage, folder, done, begun).await
}

/// Starts Redis, the proxies and the agents. Half of the workers and of the clients see Redis
/// through proxies.
async fn set(
    profile: &Profile,
    folder: &Path,
    random: &mut fastrand::Rng,
) -> anyhow::Result<Stage> {
    let store = Store::start(profile.acts().any(|act| act == Act::SetClock));
    let mut proxies = Vec::new();
    let mut url = async |who: Who, index: usize| {
        if index.is_multiple_of(2) {
            return store.url().to_owned();
        }
        let proxy = FaultProxy::start(store.url()).await;
        let url = proxy.url();
        proxies.push((who, proxy));
        url
    };
    let folder_of = || PathBuf::from(folder);
    let lease_ms = u64::try_from(profile.lease.as_millis())?;
    let (mut workers, mut clients) = (Vec::new(), Vec::new());
    for worker in 0..profile.workers {
        let url = url(Who::Worker(worker), worker).await;
        let role = Role::Worker { slots: profile.slots, lease_ms };
        let clock = wrong_clock(worker, profile.workers, AHEAD);
        workers.push(Settings { url, folder: folder_of(), clock, role });
    }
    let each = profile.clients as u64;
    for client in 0..profile.clients {
        let url = url(Who::Client(client), client).await;
        let role = Role::Client {
            first: client as u64 * NUMBERS_A_PLACE,
            count: profile.tasks.map(|tasks| tasks / each),
            per_s: profile.per_s / each,
            seed: random.u64(..),
        };
        let clock = wrong_clock(client, profile.clients, BEHIND);
        clients.push(Settings { url, folder: folder_of(), clock, role });
    }
    let log = Arc::new(HistoryLog::open(folder)?);
    let processes = Mutex::new(Processes::start(folder, workers, clients)?);
    let (acts, synced_always) = (AtomicU64::new(0), AtomicBool::new(true));
    Ok(Stage { store, lease: profile.lease, proxies, log, acts, processes, synced_always })
}

/// The last of several has a wrong clock: whose clock it is must not matter.
fn wrong_clock(index: usize, count: usize, offset: &str) -> Option<String> {
    (index > 0 && index + 1 == count).then(|| offset.to_owned())
}

/// Lets the nemeses play until the time is over, or they and the clients are done.
async fn disturb(
    stage: &Arc<Stage>,
    profile: &Profile,
    random: &mut fastrand::Rng,
) -> anyhow::Result<Done> {
    let (begun, stop) = (Instant::now(), Arc::new(AtomicBool::new(false)));
    let until = profile.time.map(|time| begun + time);
    let troupes = profile.troupes.map(|troupe| {
        let (stage, stop) = (stage.clone(), stop.clone());
        let random = fastrand::Rng::with_seed(random.u64(..));
        tokio::spawn(Nemesis::new(stage, troupe, random, until, stop).run_scene())
    });
    let acts: u64 = profile.troupes.iter().filter_map(|troupe| troupe.count).sum();
    let mut said = begun;
    let mut is_first_half = profile.sync == Sync::Both;
    let playing = |troupes: &[JoinHandle<_>]| troupes.iter().any(|troupe| !troupe.is_finished());
    let submitting = || profile.tasks.is_some() && !stage.processes().has_submitted_all();
    while playing(&troupes) || submitting() || until.is_some_and(|until| Instant::now() < until) {
        sleep(TEND_EVERY).await;
        stage.processes().tend()?;
        let half_over = match profile.time {
            Some(time) => begun.elapsed() > time / 2,
            None => stage.acts.load(Ordering::Relaxed) * 2 >= acts,
        };
        if is_first_half && half_over {
            is_first_half = false;
            stage.sync_every_second().await?;
        }
        if said.elapsed() > SAY_EVERY {
            said = Instant::now();
            println!("{:>5.0} s", begun.elapsed().as_secs_f64());
        }
    }
    stop.store(true, Ordering::Relaxed);
    let mut done = Done::new();
    for troupe in troupes {
        for (act, victims) in troupe.await.context("a nemesis")?? {
            *done.entry(act).or_default() += victims;
        }
    }
    Ok(done)
}

/// Ends what disturbs, and lets the clients finish.
async fn heal(stage: &Arc<Stage>) -> anyhow::Result<()> {
    for (_, proxy) in &stage.proxies {
        proxy.pass();
    }
    stage.set_clock(0).await?;
    let stage = stage.clone();
    tokio::task::spawn_blocking(move || {
        stage.processes().tend()?;
        stage.processes().dismiss_clients()
    })
    .await?
}
