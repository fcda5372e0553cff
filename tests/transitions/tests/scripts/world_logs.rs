//! The logs of the world, and the calls that add to them.

use optimus_core::broker::{BrokerError, SaidLines};

use crate::{
    bench::{Bench, START},
    world::{NOW, World},
};

/// The logs are so old that a purge looks at them.
const BEFORE: u64 = 2 * 86_400_000;
const FENCE: u64 = 7_000;

/// Returns lines of the task of that name, the last of which has that number.
fn lines(world: &World, name: &str, last: u64) -> SaidLines {
    let text = format!("{START} 1 copied\n{START} 1 or moved");
    SaidLines { id: world.id(name).clone(), fence: FENCE, last, count: 2, text }
}

impl World {
    /// Adds lines to the logs of tasks in several states.
    pub(crate) async fn log_some(&self, bench: &Bench) {
        let said = ["held", "ready", "dead", "done"].map(|name| lines(self, name, 2));
        let broker = bench.now().at(START - BEFORE);
        broker.annotate(&bench.queue, &said).await.expect("nothing refuses it");
    }

    pub(crate) async fn log_in(&self, bench: &Bench, situation: &str) -> Result<(), BrokerError> {
        let said = match situation {
            "a repeat" => vec![lines(self, "held", 2), lines(self, "dead", 1)],
            _ => vec![lines(self, "held", 4), lines(self, "large", 9)],
        };
        bench.at(NOW).annotate(&bench.queue, &said).await
    }
}
