//! Changes tasks that are named one by one, in paced batches: [`Act`], [`change`].

use std::io::{self, IsTerminal, Write};

use optimus_core::{
    CancelAnswer, DeleteAnswer, Error, OperationAct, PACED, Pace, RunNowAnswer, TaskId,
};
use tokio::time::Instant;

use crate::{
    failure::Failure,
    operation,
    output::{Out, text},
    session::Session,
    tally::{Fate, Tally},
};

/// How many ids the audit names.
const AUDITED_MAX: usize = 100;

/// What is done with a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Retry,
    Cancel,
    Delete,
    RunNow,
}

impl Act {
    /// The act in the audit.
    fn verb(self) -> &'static str {
        match self {
            Self::Retry => "task.retry",
            Self::Cancel => "task.cancel",
            Self::Delete => "task.delete",
            Self::RunNow => "task.run_now",
        }
    }

    /// The same act on all tasks that match a filter.
    pub(crate) fn of_many(self) -> OperationAct {
        match self {
            Self::Retry => OperationAct::Requeue,
            Self::Cancel => OperationAct::Cancel,
            Self::Delete => OperationAct::Delete,
            Self::RunNow => OperationAct::RunNow,
        }
    }

    /// Asks about so many tasks.
    pub(crate) fn question(self, tasks: &str) -> String {
        match self {
            Self::Retry => format!("Retry {tasks}? They get new attempts."),
            Self::Cancel => format!("Cancel {tasks}?"),
            Self::Delete => format!("Delete {tasks}, forever?"),
            Self::RunNow => format!("Run {tasks} now?"),
        }
    }

    /// The words of a command line that means all tasks in a state.
    pub(crate) fn example(self) -> &'static str {
        match self {
            Self::Retry => "retry --state cancelled",
            Self::Cancel => "cancel --state ready",
            Self::Delete => "delete --state cancelled",
            Self::RunNow => "run-now --state retry",
        }
    }

    /// What was done, for the tally.
    pub(crate) fn done(self) -> &'static str {
        operation::verb(self.of_many())
    }
}

/// Changes these tasks. If Redis goes away, the others are left.
pub(crate) async fn change(
    session: &Session<'_>,
    act: Act,
    ids: &[TaskId],
    tally: &mut Tally,
) -> Result<(), Failure> {
    let named: Vec<_> = ids.iter().take(AUDITED_MAX).map(TaskId::to_string).collect();
    let more = match ids.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let target = format!("{}{more}", named.join(" "));
    let changing = async {
        change_all(session, act, ids, tally).await?;
        Ok::<_, Failure>(tally.text(act.done()))
    };
    session.audited_as(act.verb(), target, changing, String::clone).await?;
    Ok(())
}

async fn change_all(
    session: &Session<'_>,
    act: Act,
    ids: &[TaskId],
    tally: &mut Tally,
) -> Result<(), Failure> {
    let progress = Progress::new(ids.len(), session.out);
    let (begun, before) = (Instant::now(), tally.seen());
    let pace = Pace::default();
    for (number, batch) in ids.chunks(PACED).enumerate() {
        let asked = Instant::now();
        for (id, fate) in batch.iter().zip(ask(session, act, batch).await) {
            tally.add(id, fate);
        }
        if tally.is_stopped() {
            let asked = ids.len().min((number + 1) * PACED);
            tally.leave(ids.len() - asked);
            break;
        }
        progress.show(tally.seen() - before, begun.elapsed());
        if (number + 1) * PACED < ids.len() {
            pace.rest(asked).await;
        }
    }
    progress.clear();
    Ok(())
}

async fn ask(session: &Session<'_>, act: Act, ids: &[TaskId]) -> Vec<Result<Fate, Error>> {
    let (client, ids) = (&session.client, ids.iter().cloned());
    match act {
        Act::Retry => {
            let answers = client.requeue_all(ids).await;
            answers.into_iter().map(|answer| answer.map(|()| Fate::Done)).collect()
        }
        Act::Cancel => {
            let fate = |answer| match answer {
                CancelAnswer::AskedToStop => Fate::AskedToStop,
                _ => Fate::Done,
            };
            client.cancel_all(ids).await.into_iter().map(|answer| answer.map(fate)).collect()
        }
        Act::Delete => {
            let fate = |answer| match answer {
                DeleteAnswer::NothingThere => Fate::Gone,
                _ => Fate::Done,
            };
            client.delete_all(ids).await.into_iter().map(|answer| answer.map(fate)).collect()
        }
        Act::RunNow => {
            let fate = |answer| match answer {
                RunNowAnswer::Started => Fate::Started,
                _ => Fate::Done,
            };
            client.run_now_all(ids).await.into_iter().map(|answer| answer.map(fate)).collect()
        }
    }
}

/// A line that says how far it is, on a terminal.
struct Progress {
    of: usize,
    is_shown: bool,
}

impl Progress {
    fn new(of: usize, out: &Out) -> Self {
        Self { of, is_shown: of > PACED && !out.is_json() && io::stderr().is_terminal() }
    }

    fn show(&self, done: u64, since: std::time::Duration) {
        if !self.is_shown {
            return;
        }
        let ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX).max(1);
        let rate = text::number(done * 1_000 / ms);
        let of = text::number(self.of as u64);
        // A terminal that can't be written to needs no progress.
        let _ = write!(io::stderr(), "\r\u{1b}[K{} of {of} · {rate}/s", text::number(done));
    }

    fn clear(&self) {
        if self.is_shown {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }
}
