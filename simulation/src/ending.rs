//! Heals all, drains the queue, looks where every task is, and judges.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use optimus_core::{Client, Error, TaskId, TaskState};
use optimus_fsck::{check_lifetimes, fsck};
use optimus_testkit::history::{Found, Rules, What, check_events};
use tokio::time::{Instant, sleep, timeout};

use crate::dump::dump;
use crate::nemesis::Nemesis;
use crate::network::Network;
use crate::user::{Shared, queue};
use crate::weather::Fair;
use crate::world::{LEASE, Setup, World};

/// A task that nobody knew waits for up to a minute; all else is far quicker.
const DRAINS_WITHIN: Duration = Duration::from_secs(180);
/// A handle looks every 5 s.
const HEARS_WITHIN: Duration = Duration::from_secs(15);
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// From here on nothing goes wrong. Waits until nothing is under way, and complains if that does
/// not come about.
pub async fn drain(world: &Arc<World>, shared: &Shared, nemesis: &mut Nemesis) {
    let network = &world.network;
    network.set_weather(Fair);
    network.heal();
    while network.is_late() {
        sleep(LOOK_EVERY).await;
    }
    let client = judge(world).await;
    if let Err(problem) = client.resume(&queue()).await {
        network.complain(format!("the queue can't be resumed: {problem}"));
    }
    let setup = Setup {
        concurrency: 8,
        poll: Duration::from_millis(500),
        grace: Duration::from_secs(5),
        knows_all: true,
    };
    // Who does not know every task could keep one from who does.
    nemesis.dismiss(Duration::from_secs(60)).await;
    let mut helper = world.worker(setup);
    let deadline = Instant::now() + DRAINS_WITHIN;
    loop {
        match client.inspector().counts(&queue()).await {
            Ok(counts) if counts.ready + counts.delayed + counts.retry + counts.working == 0 => {
                break;
            }
            answer if Instant::now() > deadline => {
                network.complain(format!("the queue does not run empty: {answer:?}"));
                break;
            }
            _ => sleep(LOOK_EVERY).await,
        }
        if helper.main.is_finished() {
            helper = world.worker(setup);
        }
    }
    for (process, task, wait) in shared.take_waits() {
        if network.is_alive(process) && timeout(HEARS_WITHIN, wait).await.is_err() {
            network.complain(format!("the handle of task {task} hears nothing"));
        }
    }
    world.ask_to_end(helper.process);
    match timeout(Duration::from_secs(40), helper.main).await {
        Ok(Ok(Ok(()))) => {}
        other => network.complain(format!("a worker does not end well: {other:?}")),
    }
}

/// Judges a run whose processes have ended.
pub async fn judge_all(world: &Arc<World>) {
    let network = &world.network;
    let client = judge(world).await;
    if let Err(problem) = look(network, &client).await {
        network.complain(format!("nobody can look: {problem}"));
    }
    check_structure(network);
    let verdict = check_events(network.journal.events(), &Rules { lease: LEASE });
    network.count_tasks(&verdict);
    for finding in &verdict.findings {
        network.complain(finding);
    }
}

/// Complains of what is wrong with the keys.
pub fn check_structure(network: &Network) {
    let (dump, lifetimes) = dump(&network.store);
    let wrong = fsck(&dump).into_iter().chain(check_lifetimes(&dump, &lifetimes));
    // Scripts ring only if nobody has; a worker that passes a ring on does not ask.
    for wrong in wrong.filter(|wrong| !wrong.starts_with("the doorbell holds")) {
        network.complain(format!("fsck: {wrong}"));
    }
}

/// The one who looks from outside.
async fn judge(world: &Arc<World>) -> Client {
    world.client(0).await.expect("nothing goes wrong for the judge")
}

/// Writes down where each task is that has an id.
async fn look(network: &Network, client: &Client) -> Result<(), Error> {
    let mut ids: BTreeMap<u64, String> = BTreeMap::new();
    for event in network.journal.events() {
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
