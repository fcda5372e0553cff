//! The processes that submit and work. Each of them is this program, started again.
//!
//! They end when they are asked to (SIGTERM), or when they are killed. The parent process reads
//! their histories.

mod client;
mod flow_client;
mod flow_tasks;
mod load;
mod mix;
mod tasks;
mod worker;

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use tokio::runtime::Builder;

pub(crate) use client::COMPLAINTS;
pub(crate) use flow_client::{PARTS_LIMIT, QUEUES};
pub(crate) use flow_tasks::PARTS_MAX;
pub(crate) use load::Load;
pub(crate) use mix::Kind;
pub(crate) use tasks::QUEUE;

/// Threads of an agent's runtime.
const THREADS: usize = 2;

/// The settings of an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) url: String,
    /// The folder for its history.
    pub(crate) folder: PathBuf,
    /// The error of the agent's clock, such as `+1d`, if the system supports that.
    pub(crate) clock: Option<String>,
    pub(crate) role: Role,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Role {
    /// The agent submits tasks, numbered from `first`.
    Client { first: u64, count: Option<u64>, per_s: u64, seed: u64, load: Load },
    /// The agent runs tasks.
    Worker { slots: usize, lease_ms: u64 },
}

/// Runs the role in the settings, which are JSON.
///
/// # Errors
///
/// When the settings can't be read, or Redis is not available at the start.
pub(crate) fn serve(args: &[String]) -> anyhow::Result<()> {
    let [settings] = args else { bail!("an agent has one argument; the soak starts it") };
    let settings: Settings =
        serde_json::from_str(settings).context("can't read the settings of the agent")?;
    let runtime = Builder::new_multi_thread().worker_threads(THREADS).enable_all().build()?;
    match settings.role {
        Role::Client { load: Load::Tasks, .. } => runtime.block_on(client::run(&settings)),
        Role::Client { load: Load::Flows, .. } => runtime.block_on(flow_client::run(&settings)),
        Role::Worker { .. } => runtime.block_on(worker::run(&settings)),
    }
}
