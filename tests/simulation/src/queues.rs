//! The queues of a world, and the way in which its workers share them: [`Queues`].

use std::sync::Arc;

use optimus_core::QueueName;
use optimus_worker::WorkerBuilder;

/// The first queue of each world. Tasks that name no queue use it.
pub const QUEUE: &str = "work";
/// The maximum number of queues in a world. A worker selects its queues by the bits of a number.
pub const QUEUES_MAX: usize = 40;
/// Selects all queues of a world.
pub const ALL: u64 = u64::MAX;

const WEIGHTS: [u32; 8] = [1, 1, 1, 2, 3, 5, 10, 100];

/// The queues of one world.
#[derive(Clone, Debug)]
pub struct Queues {
    names: Arc<[QueueName]>,
    weights: Arc<[u32]>,
    /// Whether the order is strict, so that a queue gets only the slots that earlier queues leave.
    pub strict: bool,
}

impl Queues {
    /// Returns one queue for each weight.
    ///
    /// # Panics
    /// If there are more than [`QUEUES_MAX`].
    pub fn of(weights: &[u32]) -> Self {
        assert!(weights.len() <= QUEUES_MAX, "a world has up to {QUEUES_MAX} queues");
        let names = (0..weights.len()).map(name).collect();
        Self { names, weights: weights.into(), strict: false }
    }

    /// Draws queues. Half of all worlds have one queue, and the others have up to [`QUEUES_MAX`].
    pub fn random(random: &mut fastrand::Rng) -> Self {
        let count = match random.u8(..8) {
            0..4 => 1,
            4..7 => random.usize(2..13),
            _ => random.usize(13..=QUEUES_MAX),
        };
        let alike = random.bool();
        let mut weight = || if alike { 1 } else { WEIGHTS[random.usize(..WEIGHTS.len())] };
        let weights: Vec<u32> = (0..count).map(|_| weight()).collect();
        Self { strict: random.u8(..4) == 0, ..Self::of(&weights) }
    }

    /// Returns the names of the queues.
    pub fn names(&self) -> &[QueueName] {
        &self.names
    }

    /// Returns the weights of the queues.
    pub fn weights(&self) -> &[u32] {
        &self.weights
    }

    /// Draws one of the queues. The first ones are more likely, so that they have many tasks.
    pub fn pick(&self, random: &mut fastrand::Rng) -> &QueueName {
        let all = self.names.len();
        let among = if random.bool() { all.min(2) } else { all };
        &self.names[random.usize(..among)]
    }

    /// Returns the index of the queue with that name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|queue| queue.as_str() == name)
    }

    /// Makes a worker serve the queues whose bits are set.
    pub(crate) fn serve(&self, builder: WorkerBuilder, serves: u64) -> WorkerBuilder {
        let chosen = (0..self.names.len()).filter(|at| serves >> at & 1 == 1);
        let chosen = chosen.map(|at| (self.names[at].as_str(), self.weights[at]));
        if self.strict {
            builder.strict(chosen.map(|(name, _)| name))
        } else {
            builder.weighted(chosen)
        }
    }
}

impl Default for Queues {
    fn default() -> Self {
        Self::of(&[1])
    }
}

/// Returns the first queue of each world.
pub fn queue() -> QueueName {
    name(0)
}

fn name(at: usize) -> QueueName {
    let name = if at == 0 { QUEUE.to_owned() } else { format!("{QUEUE}{at}") };
    QueueName::new(name).expect("the name is valid")
}
