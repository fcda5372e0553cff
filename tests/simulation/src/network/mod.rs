//! What lies between all processes and the store: [`Network`].

mod harm;

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

use crate::ending::check_structure;
use crate::fault::{Fault, Silence};
use crate::fault_plan::{Exchange, Fair, FaultPlan, Latency};
use crate::journal::Journal;
use crate::probe::Probe;
use crate::tally::Tally;
use crate::trace::Trace;

/// So many copies of the store are kept to roll back to.
const COPIES_MAX: usize = 8;

/// The store as all processes reach it, and what goes wrong on the way.
pub struct Network {
    pub(crate) store: Store,
    pub(crate) time: Arc<VirtualTime>,
    /// What has happened so far.
    pub journal: Arc<Journal>,
    pub(crate) probe: Probe,
    state: Mutex<State>,
}

struct State {
    fault_plan: Box<dyn FaultPlan>,
    trace: Trace,
    tally: Tally,
    exchanges: u64,
    lives: BTreeMap<u32, Life>,
    /// Told when every connection breaks; then there is a new one.
    reset: CancellationToken,
    /// The store before each of the last script calls, and when that was.
    copies: Option<VecDeque<(u64, Snapshot)>>,
    /// Connections, and how many failovers there had been when each was used first.
    connections: HashMap<u64, u64>,
    /// When each process was asked to end.
    asked: BTreeMap<u32, u64>,
    /// Commands that will still arrive, though nobody waits for their answers.
    late: usize,
    cuts: Vec<Cut>,
    /// By how much the store's clock was set.
    clock_ms: i64,
    /// After so many script calls the keys are looked at; never, if it is 0.
    check_every: u64,
    wrong: Vec<String>,
    verbs: HashMap<Vec<u8>, &'static str>,
}

/// A process that is alive, or was.
#[derive(Default)]
struct Life {
    death: CancellationToken,
    main: Option<AbortHandle>,
}

/// A time in which nothing arrives.
struct Cut {
    of: Option<u32>,
    since: u64,
    until: Instant,
}

/// What was decided about an exchange as it began.
pub(crate) struct Passage {
    pub(crate) number: u64,
    pub(crate) fault: Option<Fault>,
    pub(crate) latency: Option<Latency>,
    pub(crate) death: CancellationToken,
    pub(crate) reset: CancellationToken,
}

impl Network {
    /// A network in which nothing goes wrong, before an empty store.
    pub fn new(store: Store, time: Arc<VirtualTime>, journal: Arc<Journal>) -> Arc<Self> {
        let probe = Probe::default();
        store.observe(probe.clone());
        let verbs = script_texts().flat_map(|(name, text, sha)| {
            [(sha.as_bytes().to_vec(), name), (text.as_bytes().to_vec(), name)]
        });
        let state = State {
            fault_plan: Box::new(Fair),
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
        Arc::new(Self { store, time, journal, probe, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on this decides what goes wrong.
    pub fn set_fault_plan(&self, fault_plan: impl FaultPlan + 'static) {
        self.state().fault_plan = Box::new(fault_plan);
    }

    /// From now on a copy is kept of the store before each script call.
    pub fn keep_copies(&self) {
        self.state().copies = Some(VecDeque::new());
    }

    /// Prints all that passes.
    pub fn be_loud(&self) {
        self.state().trace.loud = true;
        self.journal.be_loud();
    }

    /// The hash of all that has passed.
    pub fn trace(&self) -> u64 {
        self.state().trace.hash()
    }

    /// How many exchanges have begun.
    pub fn exchanges(&self) -> u64 {
        self.state().exchanges
    }

    /// What was counted.
    pub fn tally(&self) -> Tally {
        let mut tally = self.state().tally.clone();
        tally.coverage = self.probe.coverage();
        tally
    }

    /// How many faults there were.
    pub fn faults(&self) -> u64 {
        self.state().tally.faults.iter().sum()
    }

    /// Whether commands may still arrive that nobody waits for.
    pub fn is_late(&self) -> bool {
        self.state().late > 0
    }

    /// Notes that something must not be.
    pub fn complain(&self, what: impl Into<String>) {
        let (at_us, what) = (self.time.now_us(), what.into());
        let mut state = self.state();
        // What stays wrong is told once.
        if !state.wrong.contains(&what) {
            state.trace.note(at_us, 0, &what);
            state.wrong.push(what);
        }
    }

    /// What must not be, so far.
    pub fn wrong(&self) -> Vec<String> {
        self.state().wrong.clone()
    }

    /// A process begins, whose main task this is. Its number was never used before.
    pub fn begin(&self, process: u32, main: AbortHandle) {
        self.state().lives.entry(process).or_default().main = Some(main);
    }

    /// A process was asked to end.
    pub fn note_asked(&self, process: u32) {
        let since = self.journal.now_ns();
        self.state().asked.entry(process).or_insert(since);
    }

    /// Whether the process has not been killed.
    pub fn is_alive(&self, process: u32) -> bool {
        self.state().lives.get(&process).is_none_or(|life| !life.death.is_cancelled())
    }

    /// From now on the structure of the keys is looked at after each so many script calls.
    pub fn check_every(&self, calls: u64) {
        self.state().check_every = calls;
    }

    /// From now on no copies are kept, and the keys are not looked at: what comes is a lot.
    pub fn be_quick(&self) {
        let mut state = self.state();
        state.check_every = 0;
        state.copies = None;
    }

    /// Counts what the checker found of tasks.
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
        // The judge looks from outside.
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
        // A connection from before a failover is broken, whoever has not noticed yet.
        let failovers = state.tally.rollbacks;
        if *state.connections.entry(connection).or_insert(failovers) != failovers && process != 0 {
            fault = Some(Fault::RequestLost(Silence::Broken));
        }
        let death = state.lives.entry(process).or_default().death.clone();
        Passage { number, fault, latency, death, reset: state.reset.clone() }
    }

    /// Has the store do commands, one after the other.
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
            let looks = {
                let mut state = self.state();
                state.trace.command(at_us, process, verb, command, &answer);
                let every = state.check_every;
                is_script(command) && every > 0 && state.tally.script_calls.is_multiple_of(every)
            };
            if looks {
                check_structure(self);
            }
            answers.push(answer);
        }
        Ok(answers)
    }

    /// Counts a command, and copies the store if it is a script. Its name.
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

    /// So many more commands are on their way without anybody waiting; or fewer.
    pub(crate) fn count_late(&self, by: isize) {
        let mut state = self.state();
        state.late = state.late.saturating_add_signed(by);
    }
}

impl State {
    /// The name of the script that a command calls; of others only whether they listen.
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
