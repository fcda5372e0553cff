//! What became of every task, once all is healed: [`Outcome`].

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::bail;
use futures_util::{StreamExt as _, stream};
use optimus::{Client, Error, PAGE_MAX, QueueName, TaskId, TaskState};
use optimus_testkit::history::{self, Found, Rules, Verdict, What, check};
use tokio::time::sleep;

use crate::agent::{COMPLAINTS, Kind, QUEUE};
use crate::fsck;
use crate::nemesis::Done;
use crate::scene::Stage;

/// A backlog drains at thousands a second; who takes longer hangs.
const DRAIN_WITHIN: Duration = Duration::from_secs(180);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Looks at once.
const LOOKS: usize = 128;

/// All that a run has shown.
pub(crate) struct Outcome {
    verdict: Verdict,
    done: Done,
    /// What is wrong with the structure, and errors that no user should see.
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

/// Waits until all is done, looks where every task is, and judges.
///
/// # Errors
/// When Redis or the histories can't be read.
pub(crate) async fn find(
    stage: &Stage,
    folder: &Path,
    done: Done,
    begun: Instant,
) -> anyhow::Result<Outcome> {
    let client = Client::connect(stage.store.url()).await?;
    let healed = Instant::now();
    let mut wrong = Vec::new();
    if let Err(problem) = drain(stage, &client).await {
        wrong.push(format!("{problem:#}"));
    }
    let drained = healed.elapsed();
    look(stage, &client, folder).await?;
    wrong.extend(fsck::check(&stage.store, &client.inspector()).await?);
    let complaints = std::fs::read_to_string(folder.join(COMPLAINTS)).unwrap_or_default();
    wrong.extend(complaints.lines().take(LOOKS).map(|line| format!("a user saw: {line}")));
    let verdict = check(folder, &Rules { lease: stage.lease })?;
    let redis = client.inspector().server().await?.version.unwrap_or_default();
    Ok(Outcome { verdict, done, wrong, redis, drained, took: begun.elapsed() })
}

async fn drain(stage: &Stage, client: &Client) -> anyhow::Result<()> {
    let (begun, queue) = (Instant::now(), QueueName::new(QUEUE)?);
    loop {
        let counts = client.inspector().counts(&queue).await?;
        if counts.ready + counts.delayed + counts.retry + counts.working == 0 {
            return Ok(());
        }
        if begun.elapsed() > DRAIN_WITHIN {
            bail!("not drained within {DRAIN_WITHIN:?}: {counts:?}");
        }
        stage.processes().tend()?;
        sleep(LOOK_EVERY).await;
    }
}

/// Writes down where each task is that has an id. Success has a short memory: what is nowhere
/// else has ended well, or never was, and the history must show which.
async fn look(stage: &Stage, client: &Client, folder: &Path) -> anyhow::Result<()> {
    let mut ids: HashMap<u64, String> = HashMap::new();
    history::read_history(folder, |event| match event.what {
        What::Acked { task, id } | What::Begin { task, id, .. } => drop(ids.insert(task, id)),
        _ => {}
    })?;
    let mut states = HashMap::new();
    for (state, found) in [
        (TaskState::Dead, Found::Dead),
        (TaskState::Cancelled, Found::Cancelled),
        (TaskState::Ready, Found::Live),
        (TaskState::Delayed, Found::Live),
        (TaskState::Retry, Found::Live),
        (TaskState::Working, Found::Live),
        (TaskState::Success, Found::Success),
    ] {
        for id in list(client, state).await? {
            states.insert(id.to_string(), found);
        }
    }
    let mut looks = stream::iter(ids)
        .map(|(task, id)| {
            let known = states.get(&id).copied().unwrap_or(Found::Forgotten);
            async move { found(client, task, &id, known).await }
        })
        .buffer_unordered(LOOKS);
    while let Some(found) = looks.next().await {
        stage.log.write(found?);
    }
    Ok(())
}

/// All tasks in a state.
async fn list(client: &Client, state: TaskState) -> anyhow::Result<Vec<TaskId>> {
    let (queue, mut all, mut after) = (QueueName::new(QUEUE)?, Vec::new(), None);
    loop {
        let page = client.inspector().list(&queue, state, after.as_ref(), PAGE_MAX).await?;
        all.extend(page.rows.into_iter().map(|row| row.id));
        after = page.next;
        if after.is_none() {
            return Ok(all);
        }
    }
}

/// With the fence of the attempt whose result is kept.
async fn found(client: &Client, task: u64, id: &str, state: Found) -> anyhow::Result<What> {
    let has_result = matches!(state, Found::Success | Found::Forgotten);
    let kept = if has_result && Kind::of(task) == Kind::Answering {
        client.broker().result(&id.parse::<TaskId>()?).await.map_err(Error::from)?
    } else {
        None
    };
    let fence = kept.map_or(Ok(0), |json| serde_json::from_slice(&json))?;
    Ok(What::Found { task, state, fence })
}
