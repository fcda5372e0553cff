//! Changes many tasks by a stored operation: [`change`], [`follow`].

use std::{
    io::{self, IsTerminal, Write},
    pin::pin,
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use optimus_core::{
    Operation, OperationAct, OperationError, OperationFilter, OperationState, Operations,
    broker::Keep,
};

use crate::{
    advice::advice,
    consent::expect,
    failure::{Exit, Failure, exit_of},
    operation_text,
    output::{Out, clean, text},
    session::Session,
    tally::Tally,
};

/// How many tasks and names are shown before the question.
const SHOWN: usize = 5;

/// What was done, for the tally.
pub(crate) fn verb(act: OperationAct) -> &'static str {
    match act {
        OperationAct::Requeue => "requeued",
        OperationAct::Cancel => "cancelled",
        OperationAct::Delete => "deleted",
        _ => "due now",
    }
}

impl From<OperationError> for Failure {
    fn from(problem: OperationError) -> Self {
        let exit = match &problem {
            OperationError::Unknown { .. } => Exit::NotFound,
            OperationError::Store(problem) => exit_of(problem),
            _ => Exit::Refused,
        };
        Self::of(exit, problem)
    }
}

/// Counts the tasks, asks, and changes them. `question` is asked about the counted operation.
pub(crate) async fn change(
    session: &Session<'_>,
    act: OperationAct,
    filter: OperationFilter,
    expected: Option<u64>,
    question: impl Fn(&str) -> String,
) -> Result<Exit, Failure> {
    let why = &session.reason;
    let operation = count(session, why, act, filter).await?;
    change_counted(session, why, operation, (expected, question)).await
}

/// Counts the tasks that an operation has cancelled, asks, and requeues them. Those that were
/// removed since, or have gone on, make it a part of the undo.
pub(crate) async fn undo(
    session: &Session<'_>,
    cancelled: &Operation,
    filter: OperationFilter,
    expected: Option<u64>,
) -> Result<Exit, Failure> {
    let Operation { id, done, asked_to_stop, .. } = cancelled;
    let default = format!("undo of {id}");
    let why = if session.reason.is_empty() { &default } else { &session.reason };
    let operation = count(session, why, OperationAct::Requeue, filter).await?;
    let reached = done + asked_to_stop;
    let missing = reached.saturating_sub(operation.matched);
    if missing > 0 && *asked_to_stop > 0 {
        session.out.hint(&format!(
            "not cancelled now: {} of the {} that it has cancelled or asked to stop. Such a task \
             still runs, has ended in another way, or was removed, deleted or requeued since",
            text::number(missing),
            text::count(reached, "task")
        ));
    } else if missing > 0 {
        session.out.hint(&format!(
            "{} of the {} that it has cancelled are not cancelled any more: they were removed, \
             deleted or requeued since",
            text::number(missing),
            text::count(*done, "task")
        ));
    }
    let question = |count: &str| format!("Requeue {count} that were cancelled?");
    let exit = change_counted(session, why, operation, (expected, question)).await?;
    Ok(if missing > 0 && exit == Exit::Done { Exit::Partly } else { exit })
}

/// Counts the tasks of a new operation.
async fn count(
    session: &Session<'_>,
    why: &str,
    act: OperationAct,
    filter: OperationFilter,
) -> Result<Operation, Failure> {
    let operations = session.client.operations();
    let id = operations.add(act, filter, session.by.clone(), why).await?;
    let operation = counted(session, &id, None).await?;
    failed(&operation).map_or(Ok(operation), Err)
}

/// Asks about an operation that was just counted, and changes its tasks. One that changes nothing
/// is cancelled.
async fn change_counted(
    session: &Session<'_>,
    why: &str,
    operation: Operation,
    (expected, question): (Option<u64>, impl Fn(&str) -> String),
) -> Result<Exit, Failure> {
    let operations = session.client.operations();
    let Operation { act, matched, .. } = operation;
    let kept = Keep::DEFAULT.tasks as u64;
    if act == OperationAct::Cancel && matched > kept {
        session.out.hint(&format!(
            "`optimus op undo` brings back what is still kept: the cancelled tasks of the last \
             hour and the latest {} of a queue, unless `keep_ended` says otherwise, and at most {} \
             of them",
            text::number(kept),
            text::size(Keep::DEFAULT.bytes)
        ));
    }
    if let Err(problem) = agree(session, &operation, expected, question) {
        operations.cancel(&operation.id).await?;
        return Err(problem);
    }
    if matched == 0 {
        operations.cancel(&operation.id).await?;
        session.known(operation.filter.named_queues()).await?;
        return Tally::of(&operation).print(session.out, verb(act));
    }
    begin(session, &operation, why).await
}

/// Asks about an operation that somebody has counted, and changes its tasks.
pub(crate) async fn confirm(
    session: &Session<'_>,
    operation: Operation,
    expected: Option<u64>,
) -> Result<Exit, Failure> {
    let operation = counted(session, &operation.id.clone(), Some(operation)).await?;
    let Operation { id, state, .. } = operation.clone();
    let Some(until) = operation.confirm_until() else {
        return Err(OperationError::WrongState { id, state, what: "confirmed" }.into());
    };
    if until < session.now().await? {
        return Err(OperationError::Late { id }.into());
    }
    session.out.hint(&clean::line(&operation_text::what(&operation)));
    agree(session, &operation, expected, |count| format!("Confirm it for {count}?"))?;
    begin(session, &operation, &session.reason).await
}

/// Confirms a counted operation, and carries it on to its end.
async fn begin(session: &Session<'_>, operation: &Operation, why: &str) -> Result<Exit, Failure> {
    let (operations, id) = (session.client.operations(), &operation.id);
    let confirming = operations.confirm(id, operation.matched, why.to_owned());
    let target = format!("{id}: {}", operation_text::audited(operation));
    session.audited("operation.confirm", target, confirming).await?;
    follow(session, id).await
}

/// Counts the rest of the tasks, unless the operation is known to be counted.
pub(crate) async fn counted(
    session: &Session<'_>,
    id: &str,
    known: Option<Operation>,
) -> Result<Operation, Failure> {
    if let Some(operation) = known.filter(|known| known.state != OperationState::Counting) {
        return Ok(operation);
    }
    let (mut carrier, progress) =
        (session.client.operations().carrier(id), Progress::new(session.out));
    loop {
        match carrier.step().await {
            Ok(found) if found.state != OperationState::Counting => {
                carrier.leave().await;
                progress.clear();
                return Ok(found);
            }
            Ok(found) => progress.show(&format!(
                // The line stays if the command is ended: it says which operation is left.
                "{} match so far · {id} has changed no task yet",
                text::number(found.matched)
            )),
            Err(problem) => {
                progress.clear();
                if !matches!(problem, OperationError::Unknown { .. }) {
                    session.out.hint(&format!(
                        "no task was changed. `optimus op confirm {id}` counts on and asks, and \
                         `optimus op cancel {id}` drops the operation"
                    ));
                }
                return Err(problem.into());
            }
        }
    }
}

/// Refuses another number of tasks than expected, and asks.
fn agree(
    session: &Session<'_>,
    operation: &Operation,
    expected: Option<u64>,
    question: impl Fn(&str) -> String,
) -> Result<(), Failure> {
    expect(expected, operation.matched)?;
    if operation.matched == 0 {
        return Ok(());
    }
    session.out.hint(&summary(operation));
    for line in &operation.unread {
        session.out.hint(&clean::line(line));
    }
    session.consent.ask(&question(&text::count(operation.matched, "task")))
}

/// Carries an operation on to its end, prints what was done, and returns the exit code.
pub(crate) async fn follow(session: &Session<'_>, id: &str) -> Result<Exit, Failure> {
    let operations = session.client.operations();
    let progress = Progress::new(session.out);
    let (operation, is_over) = match carry(&operations, id, session.out, &progress).await {
        Ok(found) => found,
        Err(problem) => {
            progress.clear();
            if !matches!(problem, OperationError::Unknown { .. }) {
                session.out.hint(&ways_on(id));
            }
            return Err(problem.into());
        }
    };
    progress.clear();
    if let Some(problem) = failed(&operation) {
        return Err(problem);
    }
    let exit = Tally::of(&operation).print(session.out, verb(operation.act))?;
    if operation.undo().is_some() {
        session
            .out
            .hint(&format!("{} brings them back while they are kept", advice("op undo", [id])));
    }
    if !is_over {
        session.out.hint(&ways_on(id));
    }
    Ok(exit)
}

/// Returns why an operation has failed, if it has.
fn failed(operation: &Operation) -> Option<Failure> {
    let why = operation.failure.as_ref()?;
    Some(Failure::new(format!("operation {} has failed: {why}", operation.id)))
}

/// Says how an operation that is not over goes on.
fn ways_on(id: &str) -> String {
    format!(
        "operation {id} is not over: a worker carries it on within three minutes. `optimus op \
         follow {id}` carries it on here, and `optimus op cancel {id}` stops it."
    )
}

/// Carries an operation on until it is over or Ctrl-C. Returns whether it is over.
async fn carry(
    operations: &Operations,
    id: &str,
    out: &Out,
    progress: &Progress,
) -> Result<(Operation, bool), OperationError> {
    let (mut carrier, mut silence) = (operations.carrier(id), Silence::default());
    let mut interrupt = pin!(tokio::signal::ctrl_c());
    loop {
        let mut is_interrupted = false;
        let operation = {
            // A step that was begun ends, so that another process can go on at once.
            let mut step = pin!(carrier.step());
            tokio::select! {
                biased;
                operation = &mut step => operation?,
                _ = &mut interrupt => {
                    is_interrupted = true;
                    step.await?
                }
            }
        };
        let Operation { matched, rate_s, state, .. } = &operation;
        let is_under_way = matches!(state, OperationState::Counting | OperationState::Running);
        if is_interrupted || !is_under_way && !carrier.is_held() {
            carrier.leave().await;
            let is_over = state.is_over();
            return Ok((operation, is_over));
        }
        if silence.is_new(&operation, carrier.other_lease()) {
            progress.clear();
            let left = text::duration(carrier.other_lease().unwrap_or_default());
            out.hint(&format!(
                "operation {id}: waiting for another process, which has not gone on for a second; \
                 unless it does, its lease ends in {left}, and this command goes on"
            ));
        }
        let done = text::number(matched - operation.left());
        progress.show(&format!("{done} of {} · {rate_s:.0}/s", text::number(*matched)));
    }
}

/// A pause of another carrier that is longer than this is said.
const SILENT: Duration = Duration::from_secs(1);

/// For how long another carrier has been silent.
#[derive(Default)]
struct Silence {
    /// When the operation was changed last, and since when this is seen.
    seen: Option<(DateTime<Utc>, Instant)>,
    is_said: bool,
}

impl Silence {
    /// Returns whether another carrier is silent, once.
    fn is_new(&mut self, operation: &Operation, lease: Option<Duration>) -> bool {
        let updated = operation.updated;
        match &self.seen {
            Some((before, since)) if *before == updated && lease.is_some() => {
                let is_new = !self.is_said && since.elapsed() > SILENT;
                self.is_said |= is_new;
                is_new
            }
            _ => {
                (self.seen, self.is_said) = (Some((updated, Instant::now())), false);
                false
            }
        }
    }
}

/// Describes the tasks before the question: how many of each name, and some of them.
pub(crate) fn summary(operation: &Operation) -> String {
    let names = operation.by_task.iter().take(SHOWN);
    let names: Vec<String> =
        names.map(|(name, count)| format!("{} {name}", text::number(*count))).collect();
    let mut lines = vec![names.join(" · ")];
    for sample in operation.samples.iter().take(SHOWN) {
        let error = sample.error.as_ref().map_or("", |error| error.message.as_str());
        let error = error.lines().next().unwrap_or_default();
        let name = sample.task.as_deref().unwrap_or("(unreadable)");
        lines.push(format!("  {}  {name}  {error}", sample.id));
    }
    if operation.matched > SHOWN as u64 {
        lines.push("  …".to_owned());
    }
    lines.iter().map(|line| clean::line(line)).collect::<Vec<_>>().join("\n")
}

/// A line that says how far it is, on a terminal.
pub(crate) struct Progress {
    is_shown: bool,
}

impl Progress {
    pub(crate) fn new(out: &Out) -> Self {
        Self { is_shown: !out.is_json() && io::stderr().is_terminal() }
    }

    pub(crate) fn show(&self, text: &str) {
        if self.is_shown {
            // A terminal that can't be written to needs no progress.
            let _ = write!(io::stderr(), "\r\u{1b}[K{text}");
        }
    }

    pub(crate) fn clear(&self) {
        self.show("");
    }
}
