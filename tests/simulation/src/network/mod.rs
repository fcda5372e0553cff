//! The network between all processes and the store: [`Network`].

mod world_faults;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use optimus_core::broker::script_texts;
use optimus_embedded::simulation::{Snapshot, VirtualTime};
use optimus_embedded::{Connection, Store};
use optimus_testkit::history::Verdict;
use redis::aio::ConnectionLike as _;
use redis::{Cmd, RedisResult, Value};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::drain_and_check::check_structure;
use crate::exchange_fault::{Fault, Silence};
use crate::fault_plan::{Exchange, Fair, FaultPlan, Latency};
use crate::item_journal::ItemJournal;
use crate::journal::Journal;
use crate::post_journal::PostJournal;
use crate::rows::Rows;
use crate::script_probe::Probe;
use crate::tally::Tally;
use crate::tick_journal::TickJournal;
use crate::trace::Trace;

/// The number of copies of the store that are kept for a rollback.
const COPIES_MAX: usize = 8;

/// The store as the processes reach it, with the faults of the network.
pub struct Network {
    pub(crate) store: Store,
    pub(crate) time: Arc<VirtualTime>,
    /// The changing part of the network.
    pub journal: Arc<Journal>,
    /// The instants of schedules.
    pub ticks: TickJournal,
    /// Who works on which post.
    pub posts: PostJournal,
    /// The items of dispensers.
    pub items: ItemJournal,
    /// The rows that a source reads.
    pub rows: Rows,
    pub(crate) probe: Probe,
    /// The store without keys.
    empty: Snapshot,
    state: Mutex<State>,
}

struct State {
    fault_plan: Box<dyn FaultPlan>,
    /// Whether no fault occurs any more.
    faults_are_over: bool,
    trace: Trace,
    tally: Tally,
    exchanges: u64,
    lives: BTreeMap<u32, Life>,
    /// Cancelled when every connection breaks. A new token then replaces this one.
    reset: CancellationToken,
    /// The store before each of the last script calls, with the time.
    copies: Option<VecDeque<(u64, Snapshot)>>,
    /// The connections, with the number of failovers before the first use of each.
    connections: HashMap<u64, u64>,
    /// The times at which processes were asked to end.
    asked: BTreeMap<u32, u64>,
    /// The number of commands that will still arrive, though no caller waits for their replies.
    late: usize,
    cuts: Vec<Cut>,
    /// The current offset of the store's clock.
    clock_ms: i64,
    /// The keys are checked after each of this many script calls. They are never checked if this is
    /// 0.
    check_every: u64,
    wrong: Vec<String>,
    verbs: HashMap<Vec<u8>, &'static str>,
}

/// A process that is or was alive.
#[derive(Default)]
struct Life {
    death: CancellationToken,
    main: Option<AbortHandle>,
}

/// An interval in which no exchange arrives.
struct Cut {
    of: Option<u32>,
    since: u64,
    until: Instant,
}

/// The decisions about an exchange when it begins.
pub(crate) struct Passage {
    pub(crate) number: u64,
    /// Whether the exchange is a heartbeat.
    pub(crate) beats: bool,
    pub(crate) fault: Option<Fault>,
    pub(crate) latency: Option<Latency>,
    pub(crate) death: CancellationToken,
    pub(crate) reset: CancellationToken,
}

impl Network {
    /// Returns a network without faults, with an empty store.
    pub fn new(store: Store, time: Arc<VirtualTime>, journal: Arc<Journal>) -> Arc<Self> {
        let probe = Probe::default();
        store.observe(probe.clone());
        let verbs = script_texts().flat_map(|(name, text, sha)| {
            [(sha.as_bytes().to_vec(), name), (text.as_bytes().to_vec(), name)]
        });
        let state = State {
            fault_plan: Box::new(Fair),
            faults_are_over: false,
            trace: Trace::default(),
            tally: Tally::default(),
            exchanges: 0,
            lives: BTreeMap::new(),
            reset: CancellationToken::new(),
            copies: None,
            connections: HashMap::new(),
            asked: BTreeMap::new(),
            late: 0,
            cuts: Vec::new(),
            clock_ms: 0,
            check_every: 0,
            wrong: Vec::new(),
            verbs: verbs.collect(),
        };
        Arc::new(Self {
            empty: store.snapshot(),
            store,
            time,
            journal,
            ticks: TickJournal::default(),
            posts: PostJournal::default(),
            items: ItemJournal::default(),
            rows: Rows::default(),
            probe,
            state: Mutex::new(state),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the plan that decides about faults from now on.
    pub fn set_fault_plan(&self, fault_plan: impl FaultPlan + 'static) {
        self.state().fault_plan = Box::new(fault_plan);
    }

    /// Ends all faults. An exchange that began under another fault plan and still waits for its
    /// reply has no fault either. A wait for work may last 40 s.
    pub fn end_faults(&self) {
        let mut state = self.state();
        state.fault_plan = Box::new(Fair);
        state.faults_are_over = true;
    }

    /// Returns whether the fault of an exchange that began earlier must not occur any more.
    pub(crate) fn are_faults_over(&self) -> bool {
        self.state().faults_are_over
    }

    /// Keeps a copy of the store before each script call from now on.
    pub fn keep_copies(&self) {
        self.state().copies = Some(VecDeque::new());
    }

    /// Prints every command, reply and fault from now on.
    pub fn be_loud(&self) {
        self.state().trace.loud = true;
        self.journal.be_loud();
    }

    /// Returns the hash of all commands and replies so far.
    pub fn trace(&self) -> u64 {
        self.state().trace.hash()
    }

    /// Returns the number of exchanges that have begun.
    pub fn exchanges(&self) -> u64 {
        self.state().exchanges
    }

    /// Returns the counts so far.
    pub fn tally(&self) -> Tally {
        let mut tally = self.state().tally.clone();
        tally.coverage = self.probe.coverage();
        tally
    }

    /// Returns the number of faults.
    pub fn faults(&self) -> u64 {
        self.state().tally.faults.iter().sum()
    }

    /// Returns whether commands without a waiting caller may still arrive.
    pub fn is_late(&self) -> bool {
        self.state().late > 0
    }

    /// Records a broken promise.
    pub fn complain(&self, what: impl Into<String>) {
        let (at_us, what) = (self.time.now_us(), what.into());
        let mut state = self.state();
        // A lasting problem is reported once.
        if !state.wrong.contains(&what) {
            state.trace.note(at_us, 0, &what);
            state.wrong.push(what);
        }
    }

    /// Returns the broken promises so far.
    pub fn wrong(&self) -> Vec<String> {
        self.state().wrong.clone()
    }

    /// Registers a process with this main task. The number of the process must be new.
    pub fn begin(&self, process: u32, main: AbortHandle) {
        self.state().lives.entry(process).or_default().main = Some(main);
    }

    /// Records that a process was asked to end.
    pub fn note_asked(&self, process: u32) {
        let since = self.journal.now_ns();
        self.state().asked.entry(process).or_insert(since);
    }

    /// Returns whether the process has not been killed.
    pub fn is_alive(&self, process: u32) -> bool {
        self.state().lives.get(&process).is_none_or(|life| !life.death.is_cancelled())
    }

    /// Checks the structure of the keys after each of this many script calls, from now on.
    pub fn check_every(&self, calls: u64) {
        self.state().check_every = calls;
    }

    /// Stops the copies of the store and the checks of the keys, because the following load is
    /// large.
    pub fn be_quick(&self) {
        let mut state = self.state();
        state.check_every = 0;
        state.copies = None;
    }

    /// Counts the tasks of the checker's verdict.
    pub fn count_tasks(&self, verdict: &Verdict) {
        let mut state = self.state();
        state.tally.submitted += verdict.submitted;
        state.tally.executions += verdict.executions;
    }

    /// Decides about an exchange that begins.
    pub(crate) fn depart(&self, process: u32, connection: u64, commands: &[Cmd]) -> Passage {
        self.note_ended_cuts();
        let at_us = self.time.now_us();
        let mut state = self.state();
        let scripts = commands.iter().filter(|command| is_script(command)).count();
        let number = state.exchanges;
        // The observer is not part of the run.
        state.exchanges += u64::from(process != 0);
        let verb = commands.first().map_or("", |command| state.verb(command));
        let exchange = Exchange { number, commands: commands.len(), scripts, verb };
        let (mut fault, mut latency) = (None, None);
        if process != 0 {
            fault = state.fault_plan.fault(&exchange);
            latency = state.fault_plan.latency();
            if state.cuts.iter().any(|cut| cut.of.is_none_or(|of| of == process)) {
                fault = Some(Fault::RequestLost(Silence::Broken));
            }
        }
        if let Some(fault) = fault {
            state.tally.faults[fault.kind()] += 1;
            state.trace.note(at_us, process, &format!("{number} {fault:?}"));
        }
        // A connection from before a failover is broken, even if its process has not noticed that
        // yet.
        let failovers = state.tally.rollbacks;
        if *state.connections.entry(connection).or_insert(failovers) != failovers && process != 0 {
            fault = Some(Fault::RequestLost(Silence::Broken));
        }
        let death = state.lives.entry(process).or_default().death.clone();
        let beats = verb == "renew";
        Passage { number, beats, fault, latency, death, reset: state.reset.clone() }
    }

    /// Lets the store perform commands, one after the other.
    pub(crate) async fn perform(
        &self,
        (process, number): (u32, u64),
        behind: &Connection,
        commands: &[Cmd],
    ) -> RedisResult<Vec<Value>> {
        let mut answers = Vec::with_capacity(commands.len());
        let mut scripts = 0;
        for command in commands {
            if is_script(command) {
                self.probe.enter(number, scripts);
                scripts += 1;
            }
            let verb = self.before(command);
            let answer = behind.clone().req_packed_command(command).await?;
            let at_us = self.time.now_us();
            let is_check_due = {
                let mut state = self.state();
                state.trace.command(at_us, process, verb, command, &answer);
                let every = state.check_every;
                is_script(command) && every > 0 && state.tally.script_calls.is_multiple_of(every)
            };
            let now_ns = self.journal.now_ns();
            if let Some(wrong) = self.ticks.observe(now_ns, verb, command, &answer) {
                self.complain(wrong);
            }
            if is_check_due {
                check_structure(self);
            }
            answers.push(answer);
        }
        Ok(answers)
    }

    /// Counts a command, and copies the store if it is a script. Returns its name.
    fn before(&self, command: &Cmd) -> &'static str {
        let mut state = self.state();
        state.tally.commands += 1;
        if is_script(command) {
            state.tally.script_calls += 1;
            if let Some(copies) = &mut state.copies {
                if copies.len() == COPIES_MAX {
                    copies.pop_front();
                }
                copies.push_back((self.journal.now_ns(), self.store.snapshot()));
            }
        }
        state.verb(command)
    }

    /// Adds to the number of commands without a waiting caller. `by` may be negative.
    pub(crate) fn count_late(&self, by: isize) {
        let mut state = self.state();
        state.late = state.late.saturating_add_signed(by);
    }
}

impl State {
    /// Returns the name of the script that a command calls. For other commands, returns only
    /// `BLPOP` or `plain`.
    fn verb(&self, command: &Cmd) -> &'static str {
        match word(command, 0) {
            b"BLPOP" => "BLPOP",
            _ => self.verbs.get(word(command, 1)).copied().unwrap_or("plain"),
        }
    }
}

pub(crate) fn is_script(command: &Cmd) -> bool {
    matches!(word(command, 0), b"EVALSHA" | b"EVAL")
}

fn word(command: &Cmd, at: usize) -> &[u8] {
    match command.args_iter().nth(at) {
        Some(redis::Arg::Simple(bytes)) => bytes,
        _ => b"",
    }
}
