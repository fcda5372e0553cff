//! The command line: what all commands share, and the tree of commands.

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::{
    command::{
        audit::AuditCommand, completions::Completions, console::ConsoleArguments,
        dead::DeadCommand, dev::Dev, dispenser::DispenserCommand, doctor::Doctor,
        exporter::Exporter, flow::FlowCommand, group::GroupCommand, history::HistoryCommand,
        lane::LaneCommand, limit::LimitCommand, man::Man, namespace::NamespaceCommand,
        op::OpCommand, process::ProcessCommand, queue::QueueCommand, schedule::ScheduleCommand,
        search::Search, shard::ShardCommand, source::SourceCommand, stats::StatsArguments,
        task::TaskCommand, top::Top, worker::WorkerCommand,
    },
    failure::EXITS,
};

/// Look at an Optimus system, and operate it.
#[derive(Debug, Parser)]
#[command(name = "optimus", version, after_help = EXITS, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What all commands share.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// The store, such as `redis://127.0.0.1/` [default: `OPTIMUS_URL`, else `REDIS_URL`]. Put
    /// a URL with a password into the variable: other users of the machine see command lines.
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The prefix of all keys [default: `OPTIMUS_NAMESPACE`, else `optimus`].
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Print JSON: one object, or one line for each row. Errors are JSON, too, on stderr, but not
    /// those of the command line itself, which end with 2.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Replace what looks like a secret by `[redacted]`, in arguments, headers, errors and logs
    /// [default: whether `OPTIMUS_REDACT` is 1].
    #[arg(long, global = true)]
    pub(crate) redact: bool,
    /// Do what would be asked about. Needed without a terminal.
    #[arg(long, short = 'y', global = true)]
    pub(crate) yes: bool,
    /// Why you pause something or change many tasks, for people who see it later.
    #[arg(long, global = true, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Who you are, for people who see later who has paused or changed something [default: the
    /// name of your user, else the machine].
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) operator: Option<String>,
    /// When to use colours. `NO_COLOR` turns them off, too.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal.
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Queues: what waits in them, and pauses.
    #[command(subcommand)]
    Queue(QueueCommand),
    /// Tasks: list, look, explain, submit, retry, cancel, delete.
    #[command(subcommand)]
    Task(TaskCommand),
    /// Dead tasks, in bulk: retry, delete, export.
    #[command(subcommand)]
    Dead(DeadCommand),
    /// Operations on many tasks, which `dead retry` and others begin: list, follow,
    /// confirm, cancel, undo.
    #[command(subcommand)]
    Op(OpCommand),
    /// Workers, and what they run.
    #[command(subcommand)]
    Worker(WorkerCommand),
    /// Processes that run workers: look, quiet, resume, stop.
    #[command(subcommand)]
    Process(ProcessCommand),
    Stats(StatsArguments),
    /// What succeeded and died on a day, for queues that keep a history.
    #[command(subcommand)]
    History(HistoryCommand),
    /// Lanes in which tasks wait, and their widths.
    #[command(subcommand)]
    Lane(LaneCommand),
    /// Limits and pauses of queues, task names, lanes and named limits.
    #[command(subcommand)]
    Limit(LimitCommand),
    /// Schedules: cron and intervals.
    #[command(subcommand)]
    Schedule(ScheduleCommand),
    /// Shards of `#[sharded]` functions.
    #[command(subcommand)]
    Shard(ShardCommand),
    /// Sources, which find the rows of a database that need a task.
    #[command(subcommand)]
    Source(SourceCommand),
    /// Dispensers, which hand out items to people.
    #[command(subcommand)]
    Dispenser(DispenserCommand),
    /// Groups of tasks that end together.
    #[command(subcommand)]
    Group(GroupCommand),
    /// Flows: what a task waits for, and what that waits for.
    #[command(subcommand)]
    Flow(FlowCommand),
    /// What operators have done: who, when, what and why.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Namespaces: which ones a Redis holds.
    #[command(subcommand)]
    Namespace(NamespaceCommand),
    Search(Search),
    Top(Top),
    Doctor(Doctor),
    Exporter(Exporter),
    Console(ConsoleArguments),
    Dev(Dev),
    Completions(Completions),
    Man(Man),
}
