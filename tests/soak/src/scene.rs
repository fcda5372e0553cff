//! Each run, from the first process to the verdict: [`run_scenes`].

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use optimus_testkit::history::{HistoryLog, What, now_ns};
use optimus_testkit::{FaultProxy, has_faketime};
use redis::Value;
use tokio::runtime::Builder;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::agent::{Load, PARTS_LIMIT, PARTS_MAX, Role, Settings};
use crate::nemesis::{Act, Done, Nemesis};
use crate::options::Options;
use crate::outcome::{self, Outcome};
use crate::processes::{NUMBERS_EACH, Processes, Who};
use crate::profile::{Profile, Sync};
use crate::stall::StallWatch;
use crate::store::Store;

/// The range of task numbers of a client's place. All processes in that place share it.
const NUMBERS_A_PLACE: u64 = NUMBERS_EACH << 16;
/// The clock errors of one worker and of one client.
const AHEAD: &str = "+1d";
const BEHIND: &str = "-1d";
const TEND_EVERY: Duration = Duration::from_millis(100);
const SAY_EVERY: Duration = Duration::from_secs(30);

/// Everything on which a nemesis can act.
pub(crate) struct Environment {
    pub(crate) store: Store,
    /// The workers' lease.
    pub(crate) lease: Duration,
    pub(crate) load: Load,
    /// The proxies. Some agents reach Redis through one of them.
    pub(crate) proxies: Vec<(Who, FaultProxy)>,
    pub(crate) log: Arc<HistoryLog>,
    /// The number of acts so far.
    pub(crate) acts: AtomicU64,
    processes: Mutex<Processes>,
    synced_always: AtomicBool,
}

impl Environment {
    pub(crate) fn processes(&self) -> MutexGuard<'_, Processes> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_synced_always(&self) -> bool {
        self.synced_always.load(Ordering::Relaxed)
    }

    /// Sets when Redis syncs its file. A restarted Redis loses this setting.
    ///
    /// # Errors
    ///
    /// When Redis is not available.
    pub(crate) async fn apply_sync(&self) -> anyhow::Result<()> {
        if !self.is_synced_always() {
            let words = ["CONFIG", "SET", "appendfsync", "everysec"];
            self.store.command::<Value>(&words).await.context("appendfsync")?;
        }
        Ok(())
    }

    /// Sets the clock of Redis to this many seconds off the machine's clock, if the system supports
    /// that.
    ///
    /// # Errors
    ///
    /// When the clock's file can't be written.
    pub(crate) async fn set_clock(&self, off_s: i64) -> anyhow::Result<bool> {
        let since = now_ns();
        let Some(by_s) = self.store.server().await.set_clock(off_s)? else { return Ok(false) };
        self.log.write(What::ClockSet { since, by_ms: by_s * 1_000 });
        Ok(true)
    }

    /// Records that a kill may now lose the acknowledged writes of the last two seconds.
    async fn sync_every_second(&self) -> anyhow::Result<()> {
        self.synced_always.store(false, Ordering::Relaxed);
        let _server = self.store.server().await;
        self.apply_sync().await
    }
}

/// Causes the faults and checks the tasks, for one profile after the other. Returns `false` if a
/// promise was broken.
///
/// # Errors
///
/// When a run itself can't be carried out.
pub(crate) fn run_scenes(options: &Options) -> anyhow::Result<bool> {
    for profile in &options.profiles {
        if !run_scene(options, profile)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn run_scene(options: &Options, profile: &Profile) -> anyhow::Result<bool> {
    let folder = tempfile::Builder::new().prefix("optimus-soak-").tempdir()?;
    println!("profile {}, seed {}", profile.name, options.seed);
    if has_faketime() {
        println!("clocks: one worker's {AHEAD}, one client's {BEHIND}");
    } else {
        println!("clocks: all correct, because libfaketime is missing");
    }
    let runtime = Builder::new_multi_thread().worker_threads(4).enable_all().build()?;
    let outcome = runtime.block_on(run(options.seed, profile, folder.path()));
    let good = outcome.as_ref().is_ok_and(Outcome::is_good);
    if let Ok(outcome) = &outcome {
        println!("{outcome}");
    }
    println!("profile {}, seed {}", profile.name, options.seed);
    if options.keep || !good {
        println!("histories: {}", folder.keep().display());
    }
    outcome.map(|_| good)
}

async fn run(seed: u64, profile: &Profile, folder: &Path) -> anyhow::Result<Outcome> {
    let begun = Instant::now();
    let mut random = fastrand::Rng::with_seed(seed);
    let environment = Arc::new(set(profile, folder, &mut random).await?);
    if profile.sync == Sync::EverySec {
        environment.sync_every_second().await?;
    }
    let _watch = StallWatch::start(environment.log.clone());
    let done = disturb(&environment, profile, &mut random).await?;
    println!("the disturbances have ended after {:.0?}; now the backlog drains", begun.elapsed());
    heal(&environment).await?;
    outcome::find(&environment, folder, done, begun).await
}

/// Starts Redis, the proxies and the agents. Half of the workers and of the clients reach Redis
/// through proxies.
async fn set(
    profile: &Profile,
    folder: &Path,
    random: &mut fastrand::Rng,
) -> anyhow::Result<Environment> {
    let sets_clock = profile.acts().any(|act| act == Act::SetClock);
    let store = if sets_clock { Store::with_settable_clock() } else { Store::start() };
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
            load: profile.load,
        };
        let clock = wrong_clock(client, profile.clients, BEHIND);
        clients.push(Settings { url, folder: folder_of(), clock, role });
    }
    let log = Arc::new(HistoryLog::open(folder)?);
    let (max_working, limit) = (PARTS_MAX.into(), PARTS_LIMIT.to_owned());
    log.write(What::Rule { interval_us: 0, burst: 0, max_working, limit });
    let processes = Mutex::new(Processes::start(folder, workers, clients)?);
    let (acts, synced_always) = (AtomicU64::new(0), AtomicBool::new(true));
    let (lease, load) = (profile.lease, profile.load);
    Ok(Environment { store, lease, load, proxies, log, acts, processes, synced_always })
}

/// Returns the error of an agent's clock. The last of several agents has a wrong clock, because the
/// clock of an agent must not matter.
fn wrong_clock(index: usize, count: usize, offset: &str) -> Option<String> {
    (index > 0 && index + 1 == count).then(|| offset.to_owned())
}

/// Lets the nemeses run until the time is over, or until they and the clients are done.
async fn disturb(
    environment: &Arc<Environment>,
    profile: &Profile,
    random: &mut fastrand::Rng,
) -> anyhow::Result<Done> {
    let (begun, stop) = (Instant::now(), Arc::new(AtomicBool::new(false)));
    let until = profile.time.map(|time| begun + time);
    let nemeses = profile.plans.map(|plan| {
        let (environment, stop) = (environment.clone(), stop.clone());
        let random = fastrand::Rng::with_seed(random.u64(..));
        tokio::spawn(Nemesis::new(environment, plan, random, until, stop).run())
    });
    let acts: u64 = profile.plans.iter().filter_map(|plan| plan.count).sum();
    let mut said = begun;
    let mut is_first_half = profile.sync == Sync::Both;
    let running = |all: &[JoinHandle<_>]| all.iter().any(|nemesis| !nemesis.is_finished());
    let submitting = || profile.tasks.is_some() && !environment.processes().has_submitted_all();
    while running(&nemeses) || submitting() || until.is_some_and(|until| Instant::now() < until) {
        sleep(TEND_EVERY).await;
        environment.processes().tend()?;
        let half_over = match profile.time {
            Some(time) => begun.elapsed() > time / 2,
            None => environment.acts.load(Ordering::Relaxed) * 2 >= acts,
        };
        if is_first_half && half_over {
            is_first_half = false;
            environment.sync_every_second().await?;
        }
        if said.elapsed() > SAY_EVERY {
            said = Instant::now();
            println!("{:>5.0} s", begun.elapsed().as_secs_f64());
        }
    }
    stop.store(true, Ordering::Relaxed);
    let mut done = Done::new();
    for nemesis in nemeses {
        for (act, victims) in nemesis.await.context("a nemesis")?? {
            *done.entry(act).or_default() += victims;
        }
    }
    Ok(done)
}

/// Ends the disturbances, and lets the clients finish.
async fn heal(environment: &Arc<Environment>) -> anyhow::Result<()> {
    for (_, proxy) in &environment.proxies {
        proxy.pass();
    }
    environment.set_clock(0).await?;
    let environment = environment.clone();
    tokio::task::spawn_blocking(move || {
        environment.processes().tend()?;
        environment.processes().dismiss_clients()
    })
    .await?
}
