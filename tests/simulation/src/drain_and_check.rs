//! Removes all faults, drains the queues, finds the state of every task, and checks the run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use optimus_core::{Client, Counts, Error, TaskId, TaskState};
use optimus_fsck::{Basis, check, check_lifetimes};
use optimus_testkit::history::{Event, Found, Rules, What, check_events};
use tokio::time::{Instant, sleep, timeout};

use crate::calm::TRIAL;
use crate::dump::dump;
use crate::fault_plan::Fair;
use crate::flow_limits::release;
use crate::hostile::misrecorded;
use crate::leftovers::Stuck;
use crate::load::Load;
use crate::nemesis::Nemesis;
use crate::network::Network;
use crate::queues::ALL;
use crate::relay;
use crate::sources::{Sources, remove_schedules};
use crate::sweep::release_all;
use crate::user::Shared;
use crate::world::{LEASE, Member, Setup, World};

/// The time limit of a drain. A task that no worker knows waits for up to a minute, and all other
/// tasks are far quicker.
const DRAINS_WITHIN: Duration = Duration::from_secs(180);
/// After this time, every task that waits for others has given up.
const GIVE_UP_MS: u64 = 3_600_000;
/// The time limit of a wait for a result, because a handle checks every 5 s.
const ANSWERS_WITHIN: Duration = Duration::from_secs(15);
const CHECK_EVERY: Duration = Duration::from_millis(500);
/// The time limit for workers that were asked to end.
const ENDS_WITHIN: Duration = Duration::from_secs(60);
/// A helper: a worker that always exists.
const HELPER: Setup = Setup {
    concurrency: 8,
    poll: Duration::from_secs(5),
    grace: Duration::from_secs(5),
    knows_all: true,
    lease: LEASE,
    serves: ALL,
    sources: Sources::Nothing,
    keep_ended: None,
};

/// Removes all faults and waits until no task is left. Complains if tasks remain. Workers that may
/// stay do so, because earlier faults must have no effect. Returns the helper.
pub async fn drain(
    world: &Arc<World>,
    (shared, load): (&Shared, Load),
    (nemesis, stays): (&mut Nemesis, impl Fn(&Setup) -> bool),
) -> Member {
    let network = &world.network;
    network.set_fault_plan(Fair);
    network.heal();
    while network.is_late() {
        sleep(CHECK_EVERY).await;
    }
    let client = observer(world).await;
    for queue in world.queues.names() {
        network.journal.write(0, What::Resume { queue: queue.to_string() });
        if let Err(problem) = client.resume(queue).await {
            network.complain(format!("queue {queue} can't be resumed: {problem}"));
        }
    }
    // A store that was rolled back may have limits and pauses again.
    release_all(client.broker()).await;
    if load == Load::Flows {
        release(client.broker(), world.queues.names(), &network.journal).await;
    }
    nemesis.dismiss(|setup| !stays(setup), ENDS_WITHIN).await;
    // Otherwise they submit tasks forever.
    remove_schedules(&client, world.queues.names()).await;
    let mut helper = world.worker(HELPER);
    let begun = Instant::now();
    let deadline = begun + DRAINS_WITHIN;
    let (mut is_known_stuck, mut gives_up) = (false, false);
    while let Some(left) = is_left(world, &client).await {
        if Instant::now() > deadline {
            network.complain(format!("does not become empty: {left}"));
            break;
        }
        // Tasks whose prerequisites were never stored give up in the end.
        let mut ahead_ms = if begun.elapsed() < DRAINS_WITHIN / 3 { 0 } else { GIVE_UP_MS };
        if load == Load::Flows && ahead_ms > 0 {
            let stuck = Stuck { world, client: &client };
            if !is_known_stuck {
                is_known_stuck = true;
                stuck.expect_reasons().await;
            }
            // Otherwise a task gives up the one that is about to run, and dies without a reason.
            if stuck.unblock_lanes().await > 0 {
                ahead_ms = 0;
            }
            if begun.elapsed() > DRAINS_WITHIN / 2 {
                stuck.cancel_blocked().await;
            }
        }
        if ahead_ms > 0 && !std::mem::replace(&mut gives_up, true) {
            network.journal.write(0, What::GiveUps);
        }
        relay::turn(&client, world.queues.names(), ahead_ms).await;
        // Tasks of flows wait for one another, so the drain takes long, and frequent checks would
        // cost time.
        let is_long = load == Load::Flows && begun.elapsed() > DRAINS_WITHIN / 18;
        sleep(if is_long { 8 * CHECK_EVERY } else { CHECK_EVERY }).await;
        if helper.main.is_finished() {
            helper = world.worker(HELPER);
        }
    }
    for (process, task, wait) in shared.take_waits() {
        if network.is_alive(process) && timeout(ANSWERS_WITHIN, wait).await.is_err() {
            network.complain(format!("the handle of task {task} receives no result"));
        }
    }
    helper
}

/// Asks all workers to end, and complains if one does not.
pub async fn dismiss(world: &Arc<World>, nemesis: &mut Nemesis, helper: Member) {
    nemesis.dismiss(|_| true, ENDS_WITHIN).await;
    world.ask_to_end(helper.process);
    match timeout(Duration::from_secs(40), helper.main).await {
        Ok(Ok(Ok(()))) => {}
        other => {
            world.network.complain(format!("a worker does not end without an error: {other:?}"));
        }
    }
}

/// Returns a queue that is not empty, and its counts. Returns none if all queues are empty.
async fn is_left(world: &World, client: &Client) -> Option<String> {
    for queue in world.queues.names() {
        match client.inspector().counts(queue).await {
            Ok(counts) if waiting(&counts) + counts.working == 0 => {}
            answer => return Some(format!("{queue}: {answer:?}")),
        }
    }
    None
}

fn waiting(counts: &Counts) -> u64 {
    counts.ready + counts.blocked + counts.delayed + counts.retry
}

/// Checks a run whose processes have ended.
pub async fn check_run(world: &Arc<World>) {
    let network = &world.network;
    let client = observer(world).await;
    if let Err(problem) = record_states(network, &client).await {
        network.complain(format!("the states of tasks can't be read: {problem}"));
    }
    check_structure(network);
    let events = events(network);
    let verdict = check_events(events, &Rules { lease: LEASE });
    network.count_tasks(&verdict);
    for finding in &verdict.findings {
        network.complain(finding);
    }
}

/// Returns the events without those of a trial, which checks its tasks itself.
fn events(network: &Network) -> impl Iterator<Item = Event> {
    let events = network.journal.events().into_iter();
    events.filter(|event| event.what.task().is_none_or(|task| task < TRIAL))
}

/// Complains about each problem of the keys.
pub fn check_structure(network: &Network) {
    for (queue, dump) in dump(&network.store) {
        let lifetimes = check_lifetimes(&dump.keys, &dump.lifetimes);
        let wrong = check(&dump.keys).into_iter().chain(lifetimes);
        // A script adds a wakeup only if the list is empty. But a worker that passes a wakeup on
        // does not check that.
        for wrong in wrong.filter(|wrong| wrong.basis != Basis::Rest) {
            network.complain(format!("fsck: {queue}: {wrong}"));
        }
    }
}

/// Connects the client that observes the run from outside.
async fn observer(world: &Arc<World>) -> Client {
    world.client(0).await.expect("the observer has no faults")
}

/// Records the state of each task that has an id.
async fn record_states(network: &Network, client: &Client) -> Result<(), Error> {
    let mut ids: BTreeMap<u64, String> = BTreeMap::new();
    for event in events(network) {
        match event.what {
            What::Acked { task, id } | What::Begin { task, id, .. } => drop(ids.insert(task, id)),
            _ => {}
        }
    }
    for (task, id) in ids {
        let id: TaskId = id.parse()?;
        let state = client.handle::<u64>(id.clone()).status().await?;
        let mut fence = 0;
        if state == TaskState::Success
            && let Some(json) = client.broker().result(&id).await?
        {
            let text = String::from_utf8_lossy(&json);
            match text.parse() {
                Ok(kept) => fence = kept,
                Err(_) => network.complain(format!("task {task} has the result {text:?}")),
            }
        }
        if state == TaskState::Dead
            && let Some(view) = client.inspector().get(&id).await?
            && let Some(wrong) = misrecorded(&view)
        {
            network.complain(wrong);
        }
        let state = match state {
            TaskState::Success => Found::Success,
            TaskState::Dead => Found::Dead,
            TaskState::Cancelled => Found::Cancelled,
            TaskState::Forgotten => Found::Forgotten,
            _ => Found::Live,
        };
        network.journal.write(0, What::Found { task, state, fence });
    }
    Ok(())
}
