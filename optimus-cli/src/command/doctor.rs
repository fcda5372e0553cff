//! `optimus doctor`: what may be wrong with a system.

use std::time::Duration;

use clap::Args;
use optimus_core::QueueName;

use crate::{
    doctor::{self, Level},
    failure::{Exit, Failure},
    output::paint::Tone,
    parse,
    session::Session,
};

/// Check what often goes wrong, in Redis and in the queues.
///
/// Redis: its version, its settings, its memory, its disk and its clock. Queues: whether they are
/// served, paused or late, whether all their workers are quiet, whether tasks wait for a paused
/// name, for a limit that lets nothing start for long, or for a step that is dead, and whether
/// workers know their tasks. Processes: whether handlers go on after their timeouts, and whether
/// processes were lost lately. Schedules: whether they are overdue. Shards: whether the leases of
/// all their workers are over, which ones are paused, and whether their rounds fail. Sources:
/// whether the leases of all their workers are over, whether they are paused, or read little
/// because their tasks fail. Operations on many tasks: whether they go on. Exits with 8 if
/// something needs a look.
///
/// `--deep` also reads the keys of each queue and checks that they agree: each task is in one
/// state, each index and each count is right, nothing is left behind. It changes nothing, and no
/// step holds Redis up for more than a few ms. A queue above 4 MiB is read in steps, so its counts
/// and indexes are not compared; above 256 MiB, only the names and types of its keys are checked.
/// Tasks may run meanwhile: it prints only what three reads have found, 300 ms apart.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Warn if the first ready or blocked task of a queue waits for longer than this, if a limit
    /// lets none start for longer, or if an operation has not come further for longer.
    #[arg(long, value_name = "TIME", value_parser = parse::duration, default_value = "5m")]
    late: Duration,
    /// Print only what needs a look.
    #[arg(long, short)]
    quiet: bool,
    /// Also check that the keys in Redis are sound.
    #[arg(long)]
    deep: bool,
    /// A queue whose keys `--deep` checks; may be repeated [default: all, and what is shared].
    #[arg(long = "queue", value_name = "QUEUE", allow_hyphen_values = true, requires = "deep")]
    queues: Vec<QueueName>,
}

pub(crate) async fn run(options: &Doctor, session: &Session<'_>) -> Result<Exit, Failure> {
    let mut findings = doctor::server::check(session).await?;
    findings.extend(doctor::queues::check(session, options.late).await?);
    findings.extend(doctor::processes::check(session).await?);
    findings.extend(doctor::shards::check(session).await?);
    findings.extend(doctor::sources::check(session).await?);
    findings.extend(doctor::operations::check(session, options.late).await?);
    if options.deep {
        findings.extend(doctor::deep::check(session, &options.queues).await?);
    }
    let is_bad = findings.iter().any(|finding| finding.level == Level::Warning);
    if options.quiet {
        findings.retain(|finding| finding.level == Level::Warning);
    }
    session.out.labelled(&findings, |finding| match finding.level {
        Level::Ok => (Tone::Good, "ok", &finding.text),
        Level::Note => (Tone::Plain, "note", &finding.text),
        Level::Warning => (Tone::Warning, "warning", &finding.text),
    })?;
    Ok(if is_bad { Exit::Warned } else { Exit::Done })
}
