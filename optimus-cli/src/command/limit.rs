//! `optimus limit`: limits and pauses of queues, task names, lanes and named limits.

use chrono::{DateTime, Utc};
use clap::{ArgGroup, Subcommand};
use optimus_core::{
    Gate, GateAnswer, LIMIT_REMOVE, LIMIT_SET, Limit, LimitDetails, LimitSetters, PAGE_MAX,
    QueueName, Rate,
};
use serde::Serialize;
use serde_json::json;

use crate::{
    failure::{Exit, Failure},
    limit_setting::LimitSetting,
    output::{
        Row,
        paint::Tone,
        table::{Cell, Column},
        text,
    },
    pause::Pause,
    queue_names::QueueNames,
    session::Session,
};

#[derive(Debug, Subcommand)]
pub(crate) enum LimitCommand {
    /// List the limits of queues that are set, declared by tasks, paused, or keep tasks waiting.
    List {
        #[command(flatten)]
        queues: QueueNames,
    },
    /// Set a limit, instead of the one that tasks declare.
    #[command(group(
        ArgGroup::new("limit").required(true).multiple(true).args(["rate", "max_working"])
    ))]
    Set {
        queue: QueueName,
        /// Where it applies: queue, task:NAME, lane:KEY or limit:NAME.
        gate: Gate,
        /// How many tasks may start in a time, such as 100/s, 10/m, 5/h.
        #[arg(long, value_name = "RATE")]
        rate: Option<Rate>,
        /// How many of them may start at once after a pause.
        #[arg(long, value_name = "N", requires = "rate")]
        burst: Option<u32>,
        /// How many tasks may run at once, over all workers.
        #[arg(long, value_name = "N")]
        max_working: Option<u32>,
    },
    /// Remove a limit that was set, so that those of the tasks apply.
    Remove {
        queue: QueueName,
        /// Where it applies: queue, task:NAME, lane:KEY or limit:NAME.
        gate: Gate,
    },
    /// Stop the starts of its tasks. Running tasks continue.
    Pause {
        queue: QueueName,
        /// What to pause: queue, task:NAME, lane:KEY or limit:NAME.
        gate: Gate,
    },
    /// End a pause, also that of a task's `Retry`.
    Resume {
        queue: QueueName,
        /// What to resume: queue, task:NAME, lane:KEY or limit:NAME.
        gate: Gate,
    },
}

#[derive(Debug, Serialize)]
struct LimitRow {
    queue: QueueName,
    gate: String,
    rate: Option<String>,
    burst: Option<u32>,
    max_working: Option<u32>,
    is_set: bool,
    /// Who has set it, if the audit still has it.
    set: Option<LimitSetting>,
    working: u64,
    waiting: u64,
    /// How many may start now.
    may_start: Option<u64>,
    #[serde(rename = "next_ms", with = "chrono::serde::ts_milliseconds_option")]
    next: Option<DateTime<Utc>>,
    paused: bool,
    pause: Option<Pause>,
}

impl Row for LimitRow {
    const COLUMNS: &'static [Column] = &[
        Column::text("QUEUE"),
        Column::text("LIMIT"),
        Column::number("RATE"),
        Column::number("BURST"),
        Column::number("WORKING"),
        Column::number("WAITING"),
        Column::text("FROM"),
        Column::text(""),
    ];

    fn cells(&self, now: DateTime<Utc>) -> Vec<Cell> {
        let next = self.next.filter(|_| self.waiting > 0);
        let next = next.map(|next| format!("the next starts {}", text::relative(next, now)));
        let paused = self.pause.as_ref().map(|pause| pause.at(now));
        let working = match self.max_working {
            Some(max) => format!("{}/{max}", self.working),
            None => "-".to_owned(),
        };
        vec![
            Cell::new(&self.queue),
            Cell::new(&self.gate),
            Cell::or_dash(self.rate.clone()),
            Cell::or_dash(self.burst.map(|burst| burst.to_string())),
            Cell::new(working),
            Cell::number(self.waiting),
            Cell::new(match (&self.set, self.is_set, &self.rate, self.max_working) {
                (Some(set), ..) => set.at(now),
                (None, true, ..) => "operator".to_owned(),
                (None, false, None, None) => "-".to_owned(),
                _ => "code".to_owned(),
            }),
            Cell::new(paused.or(next).unwrap_or_default()).tone(Tone::Warning),
        ]
    }
}

fn row(queue: &QueueName, found: &LimitDetails, setters: &LimitSetters) -> LimitRow {
    let rate = found.limit.rate_limit();
    let set = setters.of(queue, &found.gate, &found.limit).filter(|_| found.is_set);
    LimitRow {
        queue: queue.clone(),
        gate: found.gate.text(),
        rate: rate.map(|rate| rate.to_string()),
        burst: rate.map(|_| found.limit.burst_limit()),
        max_working: found.limit.max_working_limit(),
        is_set: found.is_set,
        set: set.map(LimitSetting::of),
        working: found.working,
        waiting: found.waiting,
        may_start: found.tokens,
        next: found.next,
        paused: found.shut.is_some(),
        pause: found.shut.as_ref().map(Pause::of),
    }
}

pub(crate) async fn run(command: LimitCommand, session: &Session<'_>) -> Result<Exit, Failure> {
    match command {
        LimitCommand::List { queues } => list(session, queues.named()).await,
        LimitCommand::Set { queue, gate, rate, burst, max_working } => {
            let mut limit = Limit::new();
            limit = rate.into_iter().fold(limit, Limit::rate);
            limit = burst.into_iter().fold(limit, Limit::burst);
            limit = max_working.into_iter().fold(limit, Limit::max_working);
            limit.check()?;
            let handle = session.client.gate(&queue, gate.clone());
            act(session, LIMIT_SET, (&queue, &gate), Done::Set(limit), handle.set(limit)).await
        }
        LimitCommand::Remove { queue, gate } => {
            let handle = session.client.gate(&queue, gate.clone());
            act(session, LIMIT_REMOVE, (&queue, &gate), Done::Removed, handle.remove()).await
        }
        LimitCommand::Pause { queue, gate } => pause(session, &queue, gate).await,
        LimitCommand::Resume { queue, gate } => resume(session, &queue, gate).await,
    }
}

async fn list(session: &Session<'_>, named: &[QueueName]) -> Result<Exit, Failure> {
    let (now, queues) = (session.now().await?, session.queues(named).await?);
    let read = async |inspector: optimus_core::Inspector, queue: QueueName| {
        let limits = inspector.limits(&queue, PAGE_MAX).await?;
        Ok(limits.into_iter().map(|found| (queue.clone(), found)).collect::<Vec<_>>())
    };
    let parts = session.each_queue(&queues, read).await?;
    for (queue, _) in parts.iter().filter(|part| part.len() >= PAGE_MAX).filter_map(|p| p.first()) {
        session.out.hint(&format!("queue {queue} may have more limits than these"));
    }
    let seen: Vec<_> = parts.into_iter().flatten().collect();
    let setters = if seen.iter().any(|(_, found)| found.is_set) {
        session.inspector().limit_setters().await?
    } else {
        LimitSetters::default()
    };
    let rows: Vec<LimitRow> =
        seen.iter().map(|(queue, found)| row(queue, found, &setters)).collect();
    session.known_if_empty(&rows, named).await?;
    session.out.rows(&rows, now, "There is no limit and no pause.")?;
    Ok(Exit::Done)
}

/// Pauses what has to pass the gate.
pub(crate) async fn pause(
    session: &Session<'_>,
    queue: &QueueName,
    gate: Gate,
) -> Result<Exit, Failure> {
    let handle = session.client.gate(queue, gate.clone());
    let pausing = handle.pause(&session.by, &session.reason);
    act(session, "limit.pause", (queue, &gate), Done::Paused, pausing).await
}

/// Ends a pause.
pub(crate) async fn resume(
    session: &Session<'_>,
    queue: &QueueName,
    gate: Gate,
) -> Result<Exit, Failure> {
    let handle = session.client.gate(queue, gate.clone());
    act(session, "limit.resume", (queue, &gate), Done::Resumed, handle.resume()).await
}

/// What was done with a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Done {
    /// It was set to this.
    Set(Limit),
    Removed,
    Paused,
    Resumed,
}

impl Done {
    fn word(&self) -> &'static str {
        match self {
            Self::Set(_) => "set",
            Self::Removed => "removed",
            Self::Paused => "paused",
            Self::Resumed => "resumed",
        }
    }

    /// Returns what the audit says of it.
    fn outcome(&self) -> String {
        match self {
            Self::Set(limit) => LimitSetters::outcome(limit),
            done => done.word().to_owned(),
        }
    }
}

/// Does an act that the audit shows, and says what has changed.
async fn act(
    session: &Session<'_>,
    verb: &str,
    (queue, gate): (&QueueName, &Gate),
    done: Done,
    doing: impl Future<Output = Result<GateAnswer, optimus_core::Error>>,
) -> Result<Exit, Failure> {
    let target = LimitSetters::target(queue, gate);
    let answer = session.audited_as(verb, target, doing, |_| done.outcome()).await?;
    changed(session, (queue, gate), done, answer)
}

fn changed(
    session: &Session<'_>,
    (queue, gate): (&QueueName, &Gate),
    done: Done,
    answer: GateAnswer,
) -> Result<Exit, Failure> {
    let word = done.word();
    let object = json!({
        "queue": queue,
        "gate": gate.text(),
        "done": word,
        "known": answer.is_known,
        "was_set": answer.was_set,
    });
    let what = match gate {
        Gate::Queue => format!("queue {queue}"),
        gate => format!("{gate} of queue {queue}"),
    };
    let of_it = match gate {
        Gate::Named(_) => what.clone(),
        _ => format!("the limit of {what}"),
    };
    let sentence = match done {
        Done::Set(limit) => format!("{of_it} is {limit}"),
        Done::Removed if answer.was_set => format!("{of_it} is removed"),
        Done::Removed => format!("no limit was set for {what}; what tasks declare stays"),
        Done::Paused | Done::Resumed => format!("{what} is {word}"),
    };
    session.out.done(&object, &sentence)?;
    if !answer.is_known {
        session.out.hint(&format!("it {answer}"));
    }
    Ok(Exit::Done)
}
