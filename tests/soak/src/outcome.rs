//! The outcome of every task, after all faults are removed: [`Outcome`].

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::bail;
use futures_util::{StreamExt as _, stream};
use optimus::{Client, Error, PAGE_MAX, QueueName, TaskId, TaskState};
use optimus_testkit::history::{self, Found, Rules, Verdict, What, check};
use tokio::time::sleep;

use crate::agent::{COMPLAINTS, Kind, Load, QUEUES};
use crate::fsck;
use crate::nemesis::Done;
use crate::scene::Environment;

/// The time limit of the drain. A backlog drains at thousands of tasks per second, so a longer time
/// is a hang.
const DRAIN_WITHIN: Duration = Duration::from_secs(180);
const CHECK_EVERY: Duration = Duration::from_millis(100);
/// The number of concurrent checks.
const CHECKS: usize = 128;

/// The results of a run.
pub(crate) struct Outcome {
    verdict: Verdict,
    done: Done,
    /// The problems of the structure, and the errors that no user should see.
    wrong: Vec<String>,
    redis: String,
    drained: Duration,
    took: Duration,
}

impl Outcome {
    pub(crate) fn is_good(&self) -> bool {
        self.verdict.is_good() && self.wrong.is_empty()
    }
}

impl Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nRedis {}; took {:.0?}", self.redis, self.took)?;
        writeln!(f, "drained within {:.1?} after the end of the last disturbance", self.drained)?;
        for (act, victims) in &self.done {
            writeln!(f, "  {:<34} {victims:>12}", format!("{act:?}"))?;
        }
        write!(f, "\n{}", self.verdict)?;
        for wrong in &self.wrong {
            writeln!(f, "WRONG {wrong}")?;
        }
        write!(f, "\n{}", if self.is_good() { "no promise was broken" } else { "BROKEN" })
    }
}

/// Waits until all tasks are done, reads the state of every task, and checks the histories.
///
/// # Errors
///
/// When Redis or the histories can't be read.
pub(crate) async fn find(
    environment: &Environment,
    folder: &Path,
    done: Done,
    begun: Instant,
) -> anyhow::Result<Outcome> {
    let client = Client::connect(environment.store.url()).await?;
    let healed = Instant::now();
    let mut wrong = Vec::new();
    if let Err(problem) = drain(environment, &client).await {
        wrong.push(format!("{problem:#}"));
    }
    let drained = healed.elapsed();
    record_states(environment, &client, folder).await?;
    for queue in QUEUES {
        wrong.extend(fsck::check(&environment.store, &client.inspector(), queue).await?);
    }
    let complaints = std::fs::read_to_string(folder.join(COMPLAINTS)).unwrap_or_default();
    wrong.extend(complaints.lines().take(CHECKS).map(|line| format!("a user saw: {line}")));
    let verdict = check(folder, &Rules { lease: environment.lease })?;
    let redis = client.inspector().server().await?.version.unwrap_or_default();
    Ok(Outcome { verdict, done, wrong, redis, drained, took: begun.elapsed() })
}

async fn drain(environment: &Environment, client: &Client) -> anyhow::Result<()> {
    let begun = Instant::now();
    loop {
        let mut left = Vec::new();
        for queue in QUEUES {
            let counts = client.inspector().counts(&QueueName::new(queue)?).await?;
            let waits = counts.ready + counts.delayed + counts.retry + counts.blocked;
            if waits + counts.working > 0 {
                left.push(counts);
            }
        }
        if left.is_empty() {
            return Ok(());
        }
        if begun.elapsed() > DRAIN_WITHIN {
            bail!("not drained within {DRAIN_WITHIN:?}: {left:?}");
        }
        environment.processes().tend()?;
        sleep(CHECK_EVERY).await;
    }
}

/// Records the state of each task that has an id. A success is kept only for a short time, so a
/// task in no state has succeeded or never existed. The history must show which of the two is true.
async fn record_states(
    environment: &Environment,
    client: &Client,
    folder: &Path,
) -> anyhow::Result<()> {
    let mut ids: HashMap<u64, String> = HashMap::new();
    history::read_history(folder, |event| match event.what {
        What::Acked { task, id } | What::Begin { task, id, .. } => drop(ids.insert(task, id)),
        _ => {}
    })?;
    let (mut states, load) = (HashMap::new(), environment.load);
    for (state, found) in [
        (TaskState::Dead, Found::Dead),
        (TaskState::Cancelled, Found::Cancelled),
        (TaskState::Ready, Found::Live),
        (TaskState::Delayed, Found::Live),
        (TaskState::Retry, Found::Live),
        (TaskState::Working, Found::Live),
        (TaskState::Blocked, Found::Live),
        (TaskState::Success, Found::Success),
    ] {
        for queue in QUEUES {
            for id in list(client, queue, state).await? {
                states.insert(id.to_string(), found);
            }
        }
    }
    let mut checks = stream::iter(ids)
        .map(|(task, id)| {
            let known = states.get(&id).copied().unwrap_or(Found::Forgotten);
            async move { found((client, load), task, &id, known).await }
        })
        .buffer_unordered(CHECKS);
    while let Some(found) = checks.next().await {
        environment.log.write(found?);
    }
    Ok(())
}

/// Returns all tasks in a state.
async fn list(client: &Client, queue: &str, state: TaskState) -> anyhow::Result<Vec<TaskId>> {
    let (queue, mut all, mut after) = (QueueName::new(queue)?, Vec::new(), None);
    loop {
        let page = client.inspector().list(&queue, state, after.as_ref(), PAGE_MAX).await?;
        all.extend(page.rows.into_iter().map(|row| row.id));
        after = page.next;
        if after.is_none() {
            return Ok(all);
        }
    }
}

/// Adds the fence of the attempt whose result is kept.
async fn found(
    (client, load): (&Client, Load),
    task: u64,
    id: &str,
    state: Found,
) -> anyhow::Result<What> {
    let id: TaskId = id.parse()?;
    let has_result = matches!(state, Found::Success | Found::Forgotten);
    let kept = if has_result && load == Load::Tasks && Kind::of(task) == Kind::Answering {
        client.broker().result(&id).await.map_err(Error::from)?
    } else {
        None
    };
    let fence = kept.map_or(Ok(0), |json| serde_json::from_slice(&json))?;
    Ok(What::Found { task, state, fence })
}
