//! Other queues, compared with Optimus: the same task, the same Redis, the same counts.
//!
//! Each peer is used from its own language, by a runner in `benches/peers/`. The README there
//! describes the messages between the runners and this harness, and the best settings of each peer.

mod catalog;
mod folders;
mod install;
mod measure;
mod processes;
mod program;
mod program_error;
mod runner_messages;

use anyhow::Context as _;

use self::catalog::{PEERS, Peer};
use self::folders::Places;
use self::measure::Trial;
use crate::bench::Bench;
use crate::options::Options;
use crate::row::Row;

/// The name for all peers.
const ALL: &str = "all";

/// The results of a peer.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The rows of the peer in the results.
    Rows(Vec<Row>),
    /// The peer, or one of its measurements, failed for this reason.
    Skipped { peer: String, reason: String },
}

/// Measures the selected peers, one after the other. Installs missing peers.
pub(crate) fn run(options: &Options, bench: &Bench) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for name in &options.peers {
        let chosen: Vec<&Peer> =
            PEERS.iter().filter(|peer| name == peer.name || name == ALL).collect();
        if chosen.is_empty() {
            outcomes.push(unknown(name));
        }
        outcomes.extend(chosen.into_iter().flat_map(|peer| outcomes_of(peer, options, bench)));
    }
    outcomes
}

fn outcomes_of(peer: &Peer, options: &Options, bench: &Bench) -> Vec<Outcome> {
    eprintln!("{}: another queue, for comparison", peer.name);
    let installed = Places::find().and_then(|places| {
        install::install(peer.runner, &places).context("the peer could not be installed")?;
        Ok(places)
    });
    match installed {
        Ok(places) => Trial { peer, bench, places: &places }.outcomes(options),
        Err(error) => vec![Outcome::skipped(peer.name, &error)],
    }
}

fn unknown(name: &str) -> Outcome {
    let known: Vec<&str> = PEERS.iter().map(|peer| peer.name).collect();
    let reason = format!("there is no such peer; there are {}, and {ALL}", known.join(", "));
    Outcome::Skipped { peer: name.to_owned(), reason }
}

impl Outcome {
    fn skipped(peer: &str, error: &anyhow::Error) -> Self {
        Self::Skipped { peer: peer.to_owned(), reason: format!("{error:#}") }
    }
}
