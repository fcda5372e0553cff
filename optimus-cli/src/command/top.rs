//! `optimus top`: queues, processes and causes of deaths, live.

use std::{
    io::{self, IsTerminal},
    time::Duration,
};

use clap::Args;
use optimus_core::QueueName;

use crate::{
    arguments::Global,
    failure::{Exit, Failure},
    parse,
    session::Session,
    top,
};

/// The shortest time between two reads.
const EVERY_MIN: Duration = Duration::from_secs(1);

/// Watch queues, processes and causes of deaths on the terminal.
///
/// `q` leaves. Tab goes to the next page, the arrows or `j` and `k` move, `s` changes the order,
/// and `/` keeps only rows with a text. It changes nothing in Redis. A read is 1 to 16 short
/// commands a queue; if it takes long, the next one is later, so that reads take a fifth of the
/// time at most. The causes of deaths are read only while their page is shown.
#[derive(Debug, Args)]
pub(crate) struct Top {
    /// The time between two reads of Redis.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse::duration)]
    every: Duration,
    /// The queues; may be repeated [default: all].
    #[arg(long = "queue", value_name = "QUEUE", allow_hyphen_values = true)]
    queues: Vec<QueueName>,
}

/// Refuses to draw on what is no terminal.
pub(super) fn check(command: &Top, global: &Global) -> Result<(), Failure> {
    if command.every < EVERY_MIN {
        return Err(Failure::usage("write --every 1s or more"));
    }
    if global.json {
        return Err(Failure::usage(
            "`optimus top` has no JSON; `optimus queue list --json` and `optimus process list \
             --json` print what it shows",
        ));
    }
    if io::stdout().is_terminal() && io::stdin().is_terminal() {
        return Ok(());
    }
    Err(Failure::usage(
        "`optimus top` draws on a terminal, and its input or output is none; `optimus queue list` \
         and `optimus process list` print the same once, also as JSON",
    ))
}

pub(super) async fn run(command: Top, session: &Session<'_>) -> Result<Exit, Failure> {
    let Top { every, queues } = command;
    top::watch(session, queues, every).await?;
    Ok(Exit::Done)
}
