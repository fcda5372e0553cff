//! One noun, one file: the arguments of its commands, and what they do.

pub(crate) mod audit;
pub(crate) mod completions;
pub(crate) mod console;
pub(crate) mod dead;
pub(crate) mod dev;
pub(crate) mod dispenser;
pub(crate) mod doctor;
pub(crate) mod exporter;
mod fingerprint_row;
pub(crate) mod flow;
pub(crate) mod group;
pub(crate) mod history;
mod history_row;
pub(crate) mod lane;
pub(crate) mod limit;
pub(crate) mod man;
pub(crate) mod namespace;
pub(crate) mod op;
pub(crate) mod process;
pub(crate) mod queue;
mod queue_show;
pub(crate) mod schedule;
mod schedule_row;
pub(crate) mod search;
pub(crate) mod shard;
pub(crate) mod source;
pub(crate) mod stats;
pub(crate) mod task;
mod task_log;
mod task_row;
mod task_show;
mod task_submit;
pub(crate) mod top;
pub(crate) mod worker;

pub(crate) use self::process::{mode as process_mode, percent};
use crate::{
    arguments::{Command, Global},
    failure::{Exit, Failure},
    output::Out,
    session::Session,
};

/// Runs a command, and returns its exit code.
pub(crate) async fn run(command: Command, global: &Global, out: &Out) -> Result<Exit, Failure> {
    // These need no store.
    match command {
        Command::Dev(command) => return Box::pin(dev::run(command, global, out)).await,
        Command::Completions(command) => return completions::run(&command),
        Command::Man(command) => return man::run(&command, out),
        Command::Top(ref command) => top::check(command, global)?,
        _ => {}
    }
    let session = Session::open(global, out).await?;
    let exit = Box::pin(operate(command, &session)).await?;
    Ok(session.exit(exit))
}

async fn operate(command: Command, session: &Session<'_>) -> Result<Exit, Failure> {
    match command {
        Command::Queue(command) => queue::run(command, session).await,
        Command::Task(command) => task::run(command, session).await,
        Command::Dead(command) => dead::run(command, session).await,
        Command::Op(command) => Box::pin(op::run(command, session)).await,
        Command::Worker(command) => worker::run(command, session).await,
        Command::Process(command) => process::run(command, session).await,
        Command::Stats(command) => stats::run(command, session).await,
        Command::History(command) => history::run(command, session).await,
        Command::Lane(command) => lane::run(command, session).await,
        Command::Limit(command) => limit::run(command, session).await,
        Command::Schedule(command) => schedule::run(command, session).await,
        Command::Shard(command) => shard::run(command, session).await,
        Command::Source(command) => source::run(command, session).await,
        Command::Dispenser(command) => dispenser::run(command, session).await,
        Command::Group(command) => group::run(command, session).await,
        Command::Flow(command) => flow::run(command, session).await,
        Command::Audit(command) => audit::run(command, session).await,
        Command::Namespace(command) => namespace::run(command, session).await,
        Command::Search(command) => search::run(command, session).await,
        Command::Doctor(command) => doctor::run(&command, session).await,
        Command::Exporter(command) => exporter::run(command, session).await,
        Command::Top(command) => top::run(command, session).await,
        Command::Console(command) => console::run(command, session).await,
        Command::Dev(_) | Command::Completions(_) | Command::Man(_) => Ok(Exit::Done),
    }
}
